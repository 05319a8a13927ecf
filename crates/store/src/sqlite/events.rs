//! Events in SQLite.
//!
//! Invariant: a number is the row's key, so it cannot be given twice.

use async_trait::async_trait;
use bytes::Bytes;
use hart_kernel::Timestamp;
use hart_runtime::port::{EventScope, Events, Lease, StoreError, StoredEvent};
use hart_types::{EventId, RunId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::row::{signed, time, unsigned};
use super::sum::{check, sum};
use super::{SqliteStore, leases, recordings};

#[async_trait]
impl Events for SqliteStore {
    async fn append_events(&self, events: Vec<StoredEvent>, lease: &Lease) -> Result<(), StoreError> {
        let (lease, lost) = (lease.clone(), StoreError::Lost(lease.run.clone()));
        let newest = events.iter().map(|event| event.id.seq).max().unwrap_or(0);
        let appended = self.write(move |db| {
            if !leases::is_held(db, &lease)? {
                return Ok(None);
            }
            insert(db, &events).map(Some)
        });
        appended.await?.ok_or(lost)?;
        self.mark.raise(newest);
        Ok(())
    }

    async fn events(
        &self,
        scope: &EventScope,
        after: u64,
        limit: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let (column, id) = match scope {
            EventScope::Run(run) => ("run", run.as_str().to_owned()),
            EventScope::Thread(thread) => ("thread", thread.as_str().to_owned()),
        };
        self.read(move |db| {
            let sql = format!("SELECT * FROM events WHERE {column} = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
            db.prepare_cached(&sql)?.query_map(params![id, signed(after), signed(limit)], read)?.collect()
        })
        .await
    }

    async fn event_bounds(&self, run: &RunId) -> Result<Option<(EventId, EventId)>, StoreError> {
        let run = run.clone();
        self.read(move |db| {
            let end = |order: &str| {
                let sql = format!("SELECT * FROM events WHERE run = ?1 ORDER BY seq {order} LIMIT 1");
                db.prepare_cached(&sql)?.query_row([run.as_str()], |row| Ok(read(row)?.id)).optional()
            };
            Ok(end("ASC")?.zip(end("DESC")?))
        })
        .await
    }

    async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.write(move |db| {
            recordings::forget(db, before)?;
            db.prepare_cached(
                "DELETE FROM events WHERE run IN
                    (SELECT id FROM runs WHERE status NOT IN ('pending', 'running') AND updated_at < ?1)",
            )?
            .execute([time(before)])
        })
        .await
        .map(|count| count as u64)
    }
}

pub(super) fn insert(db: &Connection, events: &[StoredEvent]) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO events (seq, ms, run, thread, payload, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for StoredEvent { id, run, thread, payload } in events {
        insert.execute(params![
            signed(id.seq),
            signed(id.ms),
            run.as_str(),
            thread.as_str(),
            payload.as_ref(),
            sum(&parts(run.as_str(), thread.as_str(), payload, &numbers(*id))),
        ])?;
    }
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let (run, thread): (String, String) = (row.get("run")?, row.get("thread")?);
    let id = EventId { ms: unsigned(row.get("ms")?), seq: unsigned(row.get("seq")?) };
    let payload: Vec<u8> = row.get("payload")?;
    check(row, &format!("event {id}"), &parts(&run, &thread, &payload, &numbers(id)), 3)?;
    Ok(StoredEvent { id, run: run.into(), thread: thread.into(), payload: Bytes::from(payload) })
}

/// The numbers came later into the sum.
fn parts<'a>(run: &'a str, thread: &'a str, payload: &'a [u8], numbers: &'a [u8; 16]) -> [&'a [u8]; 4] {
    [run.as_bytes(), thread.as_bytes(), payload, numbers]
}

fn numbers(id: EventId) -> [u8; 16] {
    (u128::from(id.seq) << 64 | u128::from(id.ms)).to_le_bytes()
}
