-- What is still to be told of runs that have ended. The run is kept as it was: it may be gone when the letter arrives.
CREATE TABLE outbox (
    n INTEGER PRIMARY KEY,
    url TEXT NOT NULL,
    run TEXT NOT NULL,
    data BLOB,
    attempts INTEGER NOT NULL,
    due INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_by_due ON outbox (due);
