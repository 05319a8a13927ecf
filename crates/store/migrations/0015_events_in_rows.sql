-- Events of one write stand in one row, a line each, and are found by the numbers of their run and thread. Numbers of
-- events are given out by `counters` since leases are there. Rows of before have no sum.
CREATE TABLE lines (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    run INTEGER NOT NULL,
    thread INTEGER NOT NULL,
    text BLOB NOT NULL,
    sum INTEGER
) STRICT;
INSERT INTO lines (first, last, run, thread, text)
SELECT seq, seq, runs.n, runs.thread, CAST(ms || '-' || seq || ' ' || CAST(payload AS TEXT) || char(10) AS BLOB)
FROM events JOIN runs ON runs.id = events.run;
-- The highest number of an event that is not there any more: what was written is not less than that.
INSERT INTO counters (name, next)
VALUES ('written', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0));
DROP TABLE events;
ALTER TABLE lines RENAME TO events;
CREATE INDEX events_by_run ON events (run, first);
CREATE INDEX events_by_thread ON events (thread, first);
