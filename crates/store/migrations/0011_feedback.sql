-- What people thought of runs. It goes with its run.
CREATE TABLE feedback (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
    user TEXT NOT NULL,
    -- Empty where it is about the whole run.
    message TEXT NOT NULL,
    rating INTEGER NOT NULL,
    comment TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (run, user, message)
) STRICT;
