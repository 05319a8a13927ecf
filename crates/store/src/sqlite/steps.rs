//! Steps in SQLite: small writes in their row, large ones once each, found by what they hold.
//!
//! Invariant: a blob is there as long as a write points to it, and no longer.

use std::collections::HashMap;

use async_trait::async_trait;
use hart_kernel::{LoggedWrite, Step, StepSource, Timestamp};
use hart_runtime::Run;
use hart_runtime::port::{HistoryQuery, Lease, StepInfo, Steps, StoreError};
use hart_types::{CheckpointId, ThreadId};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

use super::row::{get_optional_text, get_text, get_time, json, time};
use super::{SqliteStore, child_steps, leases, threads};

/// From this many bytes a value is worth a row of its own.
const LARGE: usize = 1024;

#[async_trait]
impl Steps for SqliteStore {
    async fn append_steps(
        &self,
        thread: &ThreadId,
        steps: Vec<Step>,
        lease: Option<&Lease>,
    ) -> Result<(), StoreError> {
        let missing = match lease {
            Some(lease) => StoreError::Lost(lease.run.clone()),
            None => StoreError::NoThread(thread.clone()),
        };
        let (thread, lease) = (thread.clone(), lease.cloned());
        let appended = self.write(move |db| {
            if let Some(lease) = lease
                && !leases::is_held(db, &lease)?
            {
                return Ok(None);
            }
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(None) };
            for step in &steps {
                append(db, n, step)?;
            }
            Ok(Some(()))
        });
        appended.await?.ok_or(missing)
    }

    async fn steps(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, StoreError> {
        let (thread, at) = (thread.clone(), at.cloned());
        self.read(move |db| {
            let Some((n, thread)) = threads::find(db, &thread)? else { return Ok(Vec::new()) };
            let Some(at) = at.or(thread.head) else { return Ok(Vec::new()) };
            lineage(db, n, at)?.into_iter().map(|(n, info)| whole(db, n, info)).collect()
        })
        .await
    }

    async fn append_child_steps(
        &self,
        thread: &ThreadId,
        call: &str,
        steps: Vec<Step>,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        self.put_child_steps(thread, call, steps, lease).await
    }

    async fn child_steps(&self, thread: &ThreadId, call: &str) -> Result<Vec<Step>, StoreError> {
        self.get_child_steps(thread, call).await
    }

    async fn history(&self, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<StepInfo>, StoreError> {
        let (thread, query) = (thread.clone(), query.clone());
        self.read(move |db| {
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(Vec::new()) };
            db.prepare_cached(
                "SELECT * FROM steps
                 WHERE thread = ?1 AND (?2 IS NULL OR n < (SELECT n FROM steps WHERE thread = ?1 AND id = ?2))
                   AND (?3 IS NULL OR id = ?3) AND (?4 IS NULL OR run = ?4)
                 ORDER BY n DESC LIMIT ?5",
            )?
            .query_map(
                params![
                    n,
                    query.before.as_ref().map(CheckpointId::as_str),
                    query.only.as_ref().map(CheckpointId::as_str),
                    query.run.as_ref().map(|run| run.as_str()),
                    i64::try_from(query.limit).unwrap_or(i64::MAX),
                ],
                info,
            )?
            .collect()
        })
        .await
    }
}

fn append(db: &Connection, thread: i64, step: &Step) -> rusqlite::Result<()> {
    let parent = step.parent.as_ref().map(CheckpointId::as_str);
    let number: Option<i64> = db
        .prepare_cached("SELECT number FROM steps WHERE thread = ?1 AND id = ?2")?
        .query_row(params![thread, parent], |row| row.get(0))
        .optional()?;
    db.prepare_cached(
        "INSERT INTO steps (thread, id, parent, run, source, number, created_at, next)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        thread,
        step.id.as_str(),
        parent,
        step.run_id.as_str(),
        json(&step.source),
        number.map_or(-1, |number| number + 1),
        time(step.created_at),
        step.next,
    ])?;
    let n = db.last_insert_rowid();
    for (place, LoggedWrite { key, value, private }) in (0_i64..).zip(&step.writes) {
        let text = value.to_string();
        let (inline, blob) =
            if text.len() < LARGE { (Some(text), None) } else { (None, Some(keep(db, &text)?)) };
        db.prepare_cached(
            "INSERT INTO writes (step, place, key, private, value, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![n, place, key, private, inline, blob])?;
    }
    db.prepare_cached("UPDATE threads SET head = ?2, state_updated_at = ?3, updated_at = ?3 WHERE n = ?1")?
        .execute(params![thread, step.id.as_str(), time(step.created_at)])?;
    Ok(())
}

fn keep(db: &Connection, text: &str) -> rusqlite::Result<Vec<u8>> {
    let hash = Sha256::digest(text).to_vec();
    db.prepare_cached("INSERT INTO blobs (hash, data) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![hash, text])?;
    Ok(hash)
}

/// From the first step to `at`, each with its number.
fn lineage(db: &Connection, thread: i64, at: CheckpointId) -> rusqlite::Result<Vec<(i64, StepInfo)>> {
    let mut statement = db.prepare_cached("SELECT * FROM steps WHERE thread = ?1")?;
    let rows = statement.query_map([thread], |row| Ok((row.get::<_, i64>("n")?, info(row)?)))?;
    let mut all: HashMap<CheckpointId, (i64, StepInfo)> =
        rows.map(|row| row.map(|(n, info)| (info.id.clone(), (n, info)))).collect::<Result<_, _>>()?;
    let mut line = Vec::new();
    let mut wanted = Some(at);
    // Taking each out of the map ends the walk even if somebody drew a circle.
    while let Some((n, info)) = wanted.and_then(|id| all.remove(&id)) {
        wanted = info.parent.clone();
        line.push((n, info));
    }
    line.reverse();
    Ok(line)
}

fn whole(db: &Connection, n: i64, info: StepInfo) -> rusqlite::Result<Step> {
    let mut statement = db.prepare_cached(
        "SELECT key, private, coalesce(value, data) AS value FROM writes LEFT JOIN blobs ON hash = blob
         WHERE step = ?1 ORDER BY place",
    )?;
    let writes = statement.query_map([n], |row| {
        let value = super::row::get_json(row, "value")?;
        Ok(LoggedWrite { key: row.get("key")?, value, private: row.get("private")? })
    })?;
    Ok(Step {
        id: info.id,
        parent: info.parent,
        run_id: info.run,
        source: info.source,
        created_at: info.created_at,
        writes: writes.collect::<Result<_, _>>()?,
        next: info.next,
    })
}

fn info(row: &Row<'_>) -> rusqlite::Result<StepInfo> {
    let source: StepSource = super::row::get_json(row, "source")?;
    Ok(StepInfo {
        id: get_text(row, "id")?,
        parent: get_optional_text(row, "parent")?,
        run: get_text(row, "run")?,
        source,
        number: row.get("number")?,
        created_at: get_time(row, "created_at")?,
        next: row.get("next")?,
    })
}

/// Another thread with the same steps; the large values are shared.
pub(super) fn copy(db: &Connection, from: i64, to: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO steps (thread, id, parent, run, source, number, created_at, next)
         SELECT ?2, id, parent, run, source, number, created_at, next FROM steps WHERE thread = ?1 ORDER BY n",
    )?
    .execute([from, to])?;
    db.prepare_cached(
        "INSERT INTO writes (step, place, key, private, value, blob)
         SELECT copy.n, place, key, private, value, blob
         FROM writes JOIN steps AS original ON original.n = step JOIN steps AS copy ON copy.id = original.id
         WHERE original.thread = ?1 AND copy.thread = ?2",
    )?
    .execute([from, to])?;
    child_steps::copy(db, from, to)
}

/// Takes a run's steps away; the thread is where the run found it.
pub(super) fn undo(db: &Connection, run: &Run, now: Timestamp) -> rusqlite::Result<()> {
    let Some((thread, row)) = threads::find(db, &run.thread)? else { return Ok(()) };
    let blobs = {
        let mut statement = db.prepare_cached(
            "SELECT DISTINCT blob FROM writes JOIN steps ON steps.n = step
             WHERE thread = ?1 AND run = ?2 AND blob IS NOT NULL",
        )?;
        statement
            .query_map(params![thread, run.id.as_str()], |row| row.get(0))?
            .collect::<Result<Vec<Vec<u8>>, _>>()?
    };
    let head_is_its: bool = db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM steps WHERE thread = ?1 AND run = ?2 AND id = ?3)")?
        .query_row(params![thread, run.id.as_str(), row.head.as_ref().map(CheckpointId::as_str)], |row| {
            row.get(0)
        })?;
    db.prepare_cached("DELETE FROM steps WHERE thread = ?1 AND run = ?2")?
        .execute(params![thread, run.id.as_str()])?;
    child_steps::undo(db, thread, &run.id)?;
    if head_is_its {
        db.prepare_cached("UPDATE threads SET head = ?2, state_updated_at = ?3 WHERE n = ?1")?
            .execute(params![thread, run.base.as_ref().map(CheckpointId::as_str), time(now)])?;
    }
    drop_unused(db, blobs)
}

pub(super) fn blobs_of_thread(db: &Connection, thread: i64) -> rusqlite::Result<Vec<Vec<u8>>> {
    db.prepare_cached(
        "SELECT DISTINCT blob FROM writes JOIN steps ON steps.n = step WHERE thread = ?1 AND blob IS NOT NULL",
    )?
    .query_map([thread], |row| row.get(0))?
    .collect()
}

pub(super) fn drop_unused(db: &Connection, blobs: Vec<Vec<u8>>) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(
        "DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM writes WHERE blob = ?1)",
    )?;
    for hash in blobs {
        statement.execute([hash])?;
    }
    Ok(())
}
