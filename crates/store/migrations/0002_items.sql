-- A namespace is its labels, each followed by U+001F: a prefix of labels is then a prefix of the text.
CREATE TABLE items (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;
