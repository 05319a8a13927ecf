-- The node that is to execute a run, or does. `token` rises with every claim; 0 is a run that waits.
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN token INTEGER NOT NULL DEFAULT 0;
-- What it takes to execute it, until it has ended.
ALTER TABLE runs ADD COLUMN request TEXT;
ALTER TABLE runs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
-- How many attempts began with `mark` as the thread's newest step.
ALTER TABLE runs ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN mark TEXT;
-- Somebody wants it stopped, and how.
ALTER TABLE runs ADD COLUMN stop TEXT;

CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    beat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Where the next numbers begin. A margin behind the newest event: one that a crash kept off the disk may have been seen.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, next)
SELECT 'events', (coalesce(max(seq), 0) / 1048576 + 2) * 1048576 FROM sqlite_sequence WHERE name = 'events';
