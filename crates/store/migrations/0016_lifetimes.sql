-- How long a thread stays that nobody uses, what is left of it then, and when that was seen to.
ALTER TABLE threads ADD COLUMN lifetime INTEGER;
ALTER TABLE threads ADD COLUMN remains TEXT;
ALTER TABLE threads ADD COLUMN expired_at INTEGER;
CREATE INDEX threads_that_expire ON threads (n) WHERE lifetime IS NOT NULL;
