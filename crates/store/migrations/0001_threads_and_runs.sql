-- Times are microseconds since 1970. JSON is text. Rows that many others point to have a number of their own, `n`.

CREATE TABLE threads (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state_updated_at INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    config TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    head TEXT,
    temporary INTEGER NOT NULL
) STRICT;
CREATE INDEX threads_by_update ON threads (updated_at);
CREATE INDEX threads_by_creation ON threads (created_at);

-- The top-level words and numbers of a thread's metadata, so that a search for a rare one does not read all threads.
CREATE TABLE thread_tags (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    PRIMARY KEY (key, value, thread)
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_tags_by_thread ON thread_tags (thread);

CREATE TABLE runs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    assistant TEXT NOT NULL,
    user TEXT NOT NULL,
    status TEXT NOT NULL,
    metadata TEXT NOT NULL,
    kwargs TEXT NOT NULL,
    multitask TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    start_at INTEGER NOT NULL,
    error TEXT,
    totals TEXT NOT NULL,
    base TEXT,
    idempotency_key TEXT UNIQUE
) STRICT;
CREATE INDEX runs_by_thread ON runs (thread, n);
CREATE INDEX runs_active ON runs (thread, n) WHERE status IN ('pending', 'running');
-- The rule itself, not a check before it: one run of a thread runs.
CREATE UNIQUE INDEX runs_one_running ON runs (thread) WHERE status = 'running';

CREATE TABLE steps (
    n INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL REFERENCES threads (n) ON DELETE CASCADE,
    id TEXT NOT NULL,
    parent TEXT,
    run TEXT NOT NULL,
    source TEXT NOT NULL,
    number INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next TEXT,
    UNIQUE (thread, id)
) STRICT;
CREATE INDEX steps_by_run ON steps (run);

CREATE TABLE writes (
    step INTEGER NOT NULL REFERENCES steps (n) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    key TEXT NOT NULL,
    private INTEGER NOT NULL,
    -- One of the two: small values stand here, large ones once among the blobs.
    value TEXT,
    blob BLOB,
    PRIMARY KEY (step, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX writes_by_blob ON writes (blob) WHERE blob IS NOT NULL;

CREATE TABLE blobs (
    hash BLOB NOT NULL PRIMARY KEY,
    data TEXT NOT NULL
) STRICT;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    ms INTEGER NOT NULL,
    run TEXT NOT NULL,
    thread TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_run ON events (run, seq);
CREATE INDEX events_by_thread ON events (thread, seq);
