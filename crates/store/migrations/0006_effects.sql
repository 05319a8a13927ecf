-- What a run that has not ended has begun, and what came of it.
CREATE TABLE effects (
    n INTEGER PRIMARY KEY,
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    tool TEXT NOT NULL,
    call TEXT NOT NULL,
    foreseen TEXT,
    outcome TEXT,
    UNIQUE (run, key)
) STRICT;
