-- What runs asked of models and tools and were told. `step` is the one it led to; a crash may have kept that off the disk.
CREATE TABLE records (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    step TEXT,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX records_by_run ON records (run, n);
