//! The outbox in SQLite.
//!
//! Invariant: the count of attempts is also who may make the next one.

use async_trait::async_trait;
use bytes::Bytes;
use hart_kernel::Timestamp;
use hart_runtime::Run;
use hart_runtime::port::{Letter, Outbox, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::SqliteStore;
use super::row::{get_json, get_text, get_time, json, signed, time, unsigned};

#[async_trait]
impl Outbox for SqliteStore {
    async fn due_letters(&self, now: Timestamp, limit: u64) -> Result<Vec<Letter>, StoreError> {
        self.read(move |db| {
            db.prepare_cached("SELECT * FROM outbox WHERE due <= ?1 ORDER BY due, n LIMIT ?2")?
                .query_map(params![time(now), signed(limit)], read)?
                .collect()
        })
        .await
    }

    async fn next_letter(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|db| {
            db.prepare_cached("SELECT due FROM outbox ORDER BY due LIMIT 1")?
                .query_row([], |row| get_time(row, "due"))
                .optional()
        })
        .await
    }

    async fn put_off(&self, letter: &Letter, attempts: u32, until: Timestamp) -> Result<bool, StoreError> {
        let (id, seen) = (letter.id, letter.attempts);
        self.write(move |db| {
            let changed = db
                .prepare_cached("UPDATE outbox SET attempts = ?3, due = ?4 WHERE n = ?1 AND attempts = ?2")?
                .execute(params![signed(id), seen, attempts, time(until)])?;
            Ok(changed > 0)
        })
        .await
    }

    async fn drop_letter(&self, id: u64) -> Result<(), StoreError> {
        self.write(move |db| {
            db.prepare_cached("DELETE FROM outbox WHERE n = ?1")?.execute([signed(id)])?;
            Ok(())
        })
        .await
    }
}

/// For a run that was asked with a webhook.
pub(super) fn put_in(db: &Connection, run: &Run, values: Option<&Bytes>) -> rusqlite::Result<()> {
    let Some(url) = run.kwargs.get("webhook").and_then(Value::as_str) else { return Ok(()) };
    db.prepare_cached("INSERT INTO outbox (url, run, data, attempts, due) VALUES (?1, ?2, ?3, 0, ?4)")?
        .execute(params![url, json(run), values.map(AsRef::as_ref), time(run.updated_at)])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Letter> {
    let values: Option<Vec<u8>> = row.get("data")?;
    Ok(Letter {
        id: unsigned(row.get("n")?),
        url: get_text(row, "url")?,
        run: get_json(row, "run")?,
        values: values.map(Bytes::from),
        attempts: row.get("attempts")?,
        due: get_time(row, "due")?,
    })
}
