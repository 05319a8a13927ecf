//! Recordings in SQLite.
//!
//! Invariant: records have no commit of their own: they go with that of the next work that is handed in, and what cannot be
//! written there fails no work that comes later.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use hart_kernel::Timestamp;
use hart_runtime::port::{Lease, Recordings, StoreError, StoredRecord};
use hart_types::RunId;
use rusqlite::{Connection, Row, params};

use super::row::{get_optional_text, time, unsigned};
use super::{SqliteStore, leases};

#[async_trait]
impl Recordings for SqliteStore {
    fn append_records(&self, records: Vec<StoredRecord>, lease: &Lease) {
        self.writer.carry(records, lease.clone());
    }

    async fn recorded_bytes(&self, run: &RunId) -> Result<u64, StoreError> {
        let run = run.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT coalesce(sum(length(payload)), 0) FROM records WHERE run = ?1")?
                .query_row([run.as_str()], |row| row.get::<_, i64>(0))
                .map(unsigned)
        })
        .await
    }

    async fn records(&self, run: &RunId) -> Result<Vec<StoredRecord>, StoreError> {
        let run = run.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT step, payload FROM records WHERE run = ?1 ORDER BY n")?
                .query_map([run.as_str()], read)?
                .collect()
        })
        .await
    }
}

/// What the next commit takes along.
#[derive(Debug, Default)]
pub(super) struct Carried(Mutex<Vec<Batch>>);

pub(super) type Batch = (Vec<StoredRecord>, Lease);

/// What may wait on a disk that is full; runs wait there too, so that little comes.
const MOST: usize = 1024;

impl Carried {
    pub(super) fn add(&self, records: Vec<StoredRecord>, lease: Lease) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST {
            waiting.push((records, lease));
        } else {
            let count = records.len();
            tracing::warn!(run = %lease.run, count, "a part of a recording is left out: too much waits for the disk");
        }
    }

    pub(super) fn take(&self) -> Vec<Batch> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The commit failed: they go with the next.
    pub(super) fn put_back(&self, mut records: Vec<Batch>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        records.append(&mut waiting);
        *waiting = records;
    }
}

/// Inside the open transaction. Fails where a disk that is full or fails has ended that.
pub(super) fn write(db: &Connection, batches: &[Batch]) -> rusqlite::Result<()> {
    for (records, lease) in batches {
        if let Err(error) = insert(db, records, lease) {
            if db.is_autocommit() {
                return Err(error);
            }
            tracing::warn!(run = %lease.run, %error, "a part of a recording could not be written");
        }
    }
    Ok(())
}

fn insert(db: &Connection, records: &[StoredRecord], lease: &Lease) -> rusqlite::Result<()> {
    if leases::held(db, lease)?.is_none() {
        return Ok(());
    }
    db.execute_batch("SAVEPOINT records")?;
    let mut insert = db.prepare_cached("INSERT INTO records (run, step, payload) VALUES (?1, ?2, ?3)")?;
    let written = records.iter().try_for_each(|StoredRecord { step, payload }| {
        let step = step.as_ref().map(|step| step.as_str());
        insert.execute(params![lease.run.as_str(), step, payload.as_ref()]).map(|_| ())
    });
    // The error that ended it is the one to tell of.
    let ended = db.execute_batch(if written.is_ok() {
        "RELEASE records"
    } else {
        "ROLLBACK TO records; RELEASE records"
    });
    written.and(ended)
}

/// Of runs that ended before `before`.
pub(super) fn forget(db: &Connection, before: Timestamp) -> rusqlite::Result<usize> {
    db.prepare_cached(
        "DELETE FROM records WHERE run IN
            (SELECT id FROM runs WHERE status NOT IN ('pending', 'running') AND updated_at < ?1)",
    )?
    .execute([time(before)])
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    let payload: Vec<u8> = row.get("payload")?;
    Ok(StoredRecord { step: get_optional_text(row, "step")?, payload: Bytes::from(payload) })
}
