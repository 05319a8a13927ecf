CREATE TABLE assistants (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The version it is now, one of its own.
    version INTEGER NOT NULL,
    system INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX assistants_by_creation ON assistants (created_at);

CREATE TABLE assistant_versions (
    assistant INTEGER NOT NULL REFERENCES assistants (n) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    graph TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    config TEXT NOT NULL,
    context TEXT NOT NULL,
    metadata TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (assistant, version)
) STRICT, WITHOUT ROWID;
