-- What a row must add up to, so that a bit that fell over on the disk is noticed. Rows of before have none.
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE steps ADD COLUMN sum INTEGER;
ALTER TABLE writes ADD COLUMN sum INTEGER;
