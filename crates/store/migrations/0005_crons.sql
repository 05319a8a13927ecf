CREATE TABLE crons (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    assistant TEXT NOT NULL,
    thread TEXT,
    user TEXT NOT NULL,
    schedule TEXT NOT NULL,
    timezone TEXT NOT NULL,
    end_time INTEGER,
    payload TEXT NOT NULL,
    metadata TEXT NOT NULL,
    keep_threads INTEGER NOT NULL,
    enabled INTEGER NOT NULL,
    next_run INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX crons_due ON crons (next_run) WHERE enabled = 1 AND next_run IS NOT NULL;
CREATE INDEX crons_by_assistant ON crons (assistant);
CREATE INDEX crons_by_thread ON crons (thread) WHERE thread IS NOT NULL;
