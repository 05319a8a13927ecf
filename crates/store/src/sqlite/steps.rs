//! Steps in SQLite: small writes in their row, large ones once each, found by what they hold.
//!
//! Invariant: a blob is there as long as a write points to it, and no longer.

use std::collections::HashMap;

use async_trait::async_trait;
use hart_kernel::{LoggedWrite, Step, StepSource, Timestamp};
use hart_runtime::Run;
use hart_runtime::port::{HistoryQuery, Lease, Lineage, Progress, StepInfo, Steps, StoreError};
use hart_types::{CheckpointId, RunId, ThreadId, ThreadStatus};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::row::{json, time, unreadable};
use super::sum::{check_sum, sum};
use super::{SqliteStore, child_steps, events, leases, runs, threads};

/// From this many bytes a value is worth a row of its own.
const LARGE: usize = 1024;

#[async_trait]
impl Steps for SqliteStore {
    async fn append_steps(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), StoreError> {
        let (missing, thread) = (StoreError::NoThread(thread.clone()), thread.clone());
        let appended = self.write(move |db| {
            let Some(n) = threads::number(db, &thread)? else { return Ok(None) };
            append(db, n, &steps)?;
            if !runs::is_busy(db, n)? {
                let status = rest_status(db, n)?;
                db.prepare_cached("UPDATE threads SET status = ?2, error = NULL WHERE n = ?1")?
                    .execute(params![n, status.as_str()])?;
            }
            if let Some(last) = steps.last() {
                db.prepare_cached("UPDATE threads SET updated_at = ?2 WHERE n = ?1")?
                    .execute(params![n, time(last.created_at)])?;
            }
            Ok(Some(()))
        });
        appended.await?.ok_or(missing)
    }

    async fn append_progress(&self, progress: Progress, lease: &Lease) -> Result<(), StoreError> {
        let lost = StoreError::Lost(lease.run.clone());
        let lease = lease.clone();
        let newest = progress.events.last().map_or(0, |event| event.id.seq);
        let appended = self.write(move |db| {
            let Some(place) = leases::held(db, &lease)? else { return Ok(None) };
            let Progress { call, steps, events } = progress;
            events::insert(db, place, &events)?;
            match call {
                Some(call) => child_steps::append(db, place.thread, &call, &lease.run, &steps)?,
                None => append(db, place.thread, &steps)?,
            }
            Ok(Some(()))
        });
        appended.await?.ok_or(lost)?;
        self.mark.raise(newest);
        Ok(())
    }

    async fn steps(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, StoreError> {
        let (thread, at) = (thread.clone(), at.cloned());
        self.read(move |db| {
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(Vec::new()) };
            let line = match at {
                Some(at) => lineage(db, n, at)?,
                None => newest_line(db, n)?,
            };
            line.into_iter().map(|(n, info)| whole(db, n, info)).collect()
        })
        .await
    }

    async fn steps_since(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
        known: Option<&CheckpointId>,
    ) -> Result<Lineage, StoreError> {
        let (thread, at, known) = (thread.clone(), at.clone(), known.cloned());
        self.read(move |db| {
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(Lineage::Whole(Vec::new())) };
            let way = match &known {
                Some(known) => way_from(db, n, &at, known)?,
                None => None,
            };
            let read = |line: Vec<(i64, StepInfo)>| {
                line.into_iter().map(|(n, info)| whole(db, n, info)).collect::<rusqlite::Result<Vec<_>>>()
            };
            Ok(match way {
                Some(line) => Lineage::Since(read(line)?),
                None => Lineage::Whole(read(lineage(db, n, at)?)?),
            })
        })
        .await
    }

    async fn child_steps(&self, thread: &ThreadId, call: &str) -> Result<Vec<Step>, StoreError> {
        self.get_child_steps(thread, call).await
    }

    async fn forget_history(&self, thread: &ThreadId, run: &RunId) -> Result<bool, StoreError> {
        let (thread, run) = (thread.clone(), run.clone());
        self.write(move |db| {
            let Some((n, thread)) = threads::find(db, &thread)? else { return Ok(false) };
            if runs::is_busy(db, n)? {
                return Ok(false);
            }
            if let Some(head) = thread.head {
                fold(db, n, head, run)?;
            }
            Ok(true)
        })
        .await
    }

    async fn history(&self, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<StepInfo>, StoreError> {
        let (thread, query) = (thread.clone(), query.clone());
        let by_id = query.only.is_some();
        let find = move |db: &Connection| {
            let Some(n) = threads::number(db, &thread)? else { return Ok(Vec::new()) };
            db.prepare_cached(&format!(
                "SELECT {STEP}, (SELECT metadata FROM runs WHERE runs.id = steps.run) AS run_metadata,
                        deleted AND id IS NOT (SELECT head FROM threads WHERE n = ?1) AS is_deleted
                 FROM steps
                 WHERE thread = ?1 AND (?2 IS NULL OR n < (SELECT n FROM steps WHERE thread = ?1 AND id = ?2))
                   AND (?3 IS NULL OR id = ?3) AND (?4 IS NULL OR run = ?4)
                 ORDER BY n DESC LIMIT ?5"
            ))?
            .query_map(
                params![
                    n,
                    query.before.as_ref().map(CheckpointId::as_str),
                    query.only.as_ref().map(CheckpointId::as_str),
                    query.run.as_ref().map(|run| run.as_str()),
                    i64::try_from(query.limit).unwrap_or(i64::MAX),
                ],
                |row| {
                    let (run_metadata, deleted) = (run_metadata(row)?, row.get("is_deleted")?);
                    Ok(StepInfo { run_metadata, deleted, ..info(row)?.1 })
                },
            )?
            .collect()
        };
        if by_id { self.look_up(find).await } else { self.read(find).await }
    }
}

/// In order; the last one becomes the thread's newest.
fn append(db: &Connection, thread: i64, steps: &[Step]) -> rusqlite::Result<()> {
    for step in steps {
        insert(db, thread, step)?;
    }
    match steps.last() {
        Some(last) => threads::set_head(db, thread, Some(&last.id), last.created_at),
        None => Ok(()),
    }
}

fn insert(db: &Connection, thread: i64, step: &Step) -> rusqlite::Result<()> {
    let parent = step.parent.as_ref().map(CheckpointId::as_str);
    let number: Option<i64> = db
        .prepare_cached("SELECT number FROM steps WHERE thread = ?1 AND id = ?2")?
        .query_row(params![thread, parent], |row| row.get(0))
        .optional()?;
    let first = if step.source == StepSource::Start { -1 } else { 0 };
    let further = i64::from(step.source.goes_further(step.next.as_deref()));
    let (source, number) = (json(&step.source), number.map_or(first, |number| number + further));
    db.prepare_cached(
        "INSERT INTO steps (thread, id, parent, run, source, number, created_at, next, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        thread,
        step.id.as_str(),
        parent,
        step.run_id.as_str(),
        source,
        number,
        time(step.created_at),
        step.next,
        sum(&parts(
            [Some(step.id.as_str()), parent, Some(step.run_id.as_str()), step.next.as_deref(), Some(&source)],
            &[number.to_le_bytes(), time(step.created_at).to_le_bytes()],
        )),
    ])?;
    let n = db.last_insert_rowid();
    for (place, LoggedWrite { key, value, private }) in (0_i64..).zip(&step.writes) {
        let text = value.to_string();
        let whole_sum = sum(&[key.as_bytes(), text.as_bytes(), &[u8::from(*private)], &place.to_le_bytes()]);
        let (inline, blob) =
            if text.len() < LARGE { (Some(text), None) } else { (None, Some(keep(db, &text)?)) };
        db.prepare_cached(
            "INSERT INTO writes (step, place, key, private, value, blob, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![n, place, key, private, inline, blob, whole_sum])?;
    }
    Ok(())
}

fn keep(db: &Connection, text: &str) -> rusqlite::Result<Vec<u8>> {
    let hash = Sha256::digest(text).to_vec();
    db.prepare_cached("INSERT INTO blobs (hash, data) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![hash, text])?;
    Ok(hash)
}

/// From the first step to the thread's newest, each with its number.
fn newest_line(db: &Connection, thread: i64) -> rusqlite::Result<Vec<(i64, StepInfo)>> {
    let Some(head) = threads::head(db, thread)? else { return Ok(Vec::new()) };
    let line = lineage(db, thread, head.clone())?;
    // Nobody has made it up: the thread says that it was there.
    if line.is_empty() { Err(missing(&head)) } else { Ok(line) }
}

/// From the first step to `at`, each with its number; nothing if there is no such step.
fn lineage(db: &Connection, thread: i64, at: CheckpointId) -> rusqlite::Result<Vec<(i64, StepInfo)>> {
    let mut statement = db.prepare_cached(&format!("SELECT {STEP} FROM steps WHERE thread = ?1"))?;
    let rows = statement.query_map([thread], info)?;
    let mut all: HashMap<CheckpointId, (i64, StepInfo)> =
        rows.map(|row| row.map(|(n, info)| (info.id.clone(), (n, info)))).collect::<Result<_, _>>()?;
    let mut line = Vec::new();
    let mut wanted = Some(at);
    // Taking each out of the map ends the walk even if somebody drew a circle.
    while let Some(id) = wanted {
        let (n, info) = match all.remove(&id) {
            Some(found) => found,
            // A step that was asked for and never was is not there; one that others stand on is lost.
            None if line.is_empty() => break,
            None => return Err(missing(&id)),
        };
        wanted = info.parent.clone();
        line.push((n, info));
    }
    line.reverse();
    Ok(line)
}

fn missing(id: &CheckpointId) -> rusqlite::Error {
    unreadable(&format!("step {id}"), "it is missing")
}

/// From behind `known` to `at`; nothing if `known` is not on the way.
fn way_from(
    db: &Connection,
    thread: i64,
    at: &CheckpointId,
    known: &CheckpointId,
) -> rusqlite::Result<Option<Vec<(i64, StepInfo)>>> {
    let mut statement =
        db.prepare_cached(&format!("SELECT {STEP} FROM steps WHERE thread = ?1 AND id = ?2"))?;
    let (mut line, mut wanted, mut above) = (Vec::new(), at.clone(), i64::MAX);
    while wanted != *known {
        let step = statement.query_row(params![thread, wanted.as_str()], info).optional()?;
        // A parent is older than its child, so the walk ends even if somebody drew a circle.
        let Some((n, info)) = step.filter(|(n, _)| *n < above) else { return Ok(None) };
        let Some(parent) = info.parent.clone() else { return Ok(None) };
        (wanted, above) = (parent, n);
        line.push((n, info));
    }
    line.reverse();
    Ok(Some(line))
}

fn whole(db: &Connection, n: i64, info: StepInfo) -> rusqlite::Result<Step> {
    let mut statement = db.prepare_cached(
        "SELECT key, private, place, coalesce(value, data), sum FROM writes LEFT JOIN blobs ON hash = blob
         WHERE step = ?1 ORDER BY place",
    )?;
    let writes = statement.query_map([n], |row| {
        let (key, private, place): (String, bool, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (text, sum): (Option<String>, Option<i64>) = (row.get(3)?, row.get(4)?);
        let what = || format!("`{key}` in step {}", info.id);
        let text = text.ok_or_else(|| unreadable(&what(), "its blob is missing"))?;
        let parts = [key.as_bytes(), text.as_bytes(), &[u8::from(private)], &place.to_le_bytes()];
        check_sum(sum, what, &parts, 2)?;
        let value = serde_json::from_str(&text).map_err(|error| unreadable(&what(), error))?;
        Ok(LoggedWrite { key, value, private })
    })?;
    let writes = writes.collect::<Result<_, _>>()?;
    Ok(Step {
        id: info.id,
        parent: info.parent,
        run_id: info.run,
        source: info.source,
        created_at: info.created_at,
        writes,
        next: info.next,
    })
}

/// What a step says of itself: first what was summed from the beginning (id, parent, run, next).
fn parts<'a>(texts: [Option<&'a str>; 5], [number, created]: &'a [[u8; 8]; 2]) -> [&'a [u8]; 7] {
    let [id, parent, run, next, source] = texts.map(|text| text.unwrap_or("-").as_bytes());
    [id, parent, run, next, source, number, created]
}

/// What [`info`] reads, by place: a long thread has thousands of them, and a name would be looked for in each.
const STEP: &str = "n, id, parent, run, source, number, created_at, next, deleted, sum";

/// With the number of its row.
fn info(row: &Row<'_>) -> rusqlite::Result<(i64, StepInfo)> {
    let (n, id, parent): (i64, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (run, source, number): (String, String, i64) = (row.get(3)?, row.get(4)?, row.get(5)?);
    let (created, next): (i64, Option<String>) = (row.get(6)?, row.get(7)?);
    let texts = [Some(id.as_str()), parent.as_deref(), Some(&run), next.as_deref(), Some(&source)];
    let numbers = [number.to_le_bytes(), created.to_le_bytes()];
    check_sum(row.get(9)?, || format!("step {id}"), &parts(texts, &numbers), 4)?;
    let source = serde_json::from_str(&source).map_err(|error| unreadable("source", error))?;
    let created_at = Timestamp::from_microsecond(created).map_err(|error| unreadable("created_at", error))?;
    let info = StepInfo {
        id: id.into(),
        parent: parent.map(CheckpointId::from),
        run: run.into(),
        run_metadata: Map::new(),
        source,
        number,
        created_at,
        next,
        deleted: row.get(8)?,
    };
    Ok((n, info))
}

/// Whoever reads the run is told when it is damaged.
fn run_metadata(row: &Row<'_>) -> rusqlite::Result<Map<String, Value>> {
    let text: Option<String> = row.get("run_metadata")?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Another thread with the same steps; the large values are shared.
pub(super) fn copy(db: &Connection, from: i64, to: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO steps (thread, id, parent, run, source, number, created_at, next, sum, deleted)
         SELECT ?2, id, parent, run, source, number, created_at, next, sum, deleted FROM steps WHERE thread = ?1
         ORDER BY n",
    )?
    .execute([from, to])?;
    db.prepare_cached(
        "INSERT INTO writes (step, place, key, private, value, blob, sum)
         SELECT copy.n, place, key, private, value, blob, writes.sum
         FROM writes JOIN steps AS original ON original.n = step JOIN steps AS copy ON copy.id = original.id
         WHERE original.thread = ?1 AND copy.thread = ?2",
    )?
    .execute([from, to])?;
    child_steps::copy(db, from, to)
}

/// Takes away what does not lead to `head`; the original has it still.
pub(super) fn keep_only(db: &Connection, thread: i64, head: CheckpointId) -> rusqlite::Result<()> {
    let kept: Vec<i64> = lineage(db, thread, head)?.into_iter().map(|(n, _)| n).collect();
    db.prepare_cached("DELETE FROM steps WHERE thread = ?1 AND n NOT IN (SELECT value FROM json_each(?2))")?
        .execute(params![thread, json(&kept)])?;
    Ok(())
}

/// What all steps up to this one wrote, in one step, so the state is the same and has the name that clients know. It is of
/// no run, so none can be undone any more.
pub(super) fn fold(db: &Connection, thread: i64, head: CheckpointId, run: RunId) -> rusqlite::Result<()> {
    let line = lineage(db, thread, head)?;
    let steps = line.into_iter().map(|(n, info)| whole(db, n, info)).collect::<rusqlite::Result<Vec<_>>>()?;
    let named = steps.iter().rev().find(|step| step.source.goes_further(step.next.as_deref()));
    let Some((named, last)) = named.or(steps.last()).cloned().zip(steps.last().cloned()) else {
        return Ok(());
    };
    let writes = steps.into_iter().flat_map(|step| step.writes).collect();
    let blobs = blobs_of_thread(db, thread)?;
    db.prepare_cached("DELETE FROM steps WHERE thread = ?1")?.execute([thread])?;
    append(db, thread, &[Step { parent: None, run_id: run, writes, next: last.next, ..named }])?;
    db.prepare_cached("UPDATE runs SET base = NULL WHERE thread = ?1")?.execute([thread])?;
    drop_unused(db, blobs)
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
        threads::set_head(db, thread, run.base.as_ref(), now)?;
    }
    drop_unused(db, blobs)
}

/// Whether steps that are not the run's stand on one of its own.
pub(super) fn carries_others(db: &Connection, thread: i64, run: &RunId) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT EXISTS (
             SELECT 1 FROM steps AS own JOIN steps AS later ON later.thread = own.thread AND later.parent = own.id
             WHERE own.run = ?2 AND own.thread = ?1 AND later.run <> ?2)",
    )?
    .query_row(params![thread, run.as_str()], |row| row.get(0))
}

/// Its states are not listed any more, but while the thread is at one of them.
pub(super) fn mark_deleted(db: &Connection, thread: i64, run: &RunId) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE steps SET deleted = 1 WHERE run = ?2 AND thread = ?1")?
        .execute(params![thread, run.as_str()])?;
    Ok(())
}

/// What a thread is that nothing happens on: it waits where something is left to do at its newest step, and where nobody
/// can say because that step is lost.
pub(super) fn rest_status(db: &Connection, thread: i64) -> rusqlite::Result<ThreadStatus> {
    let waits: bool = db
        .prepare_cached(
            "SELECT head IS NOT NULL AND NOT EXISTS (
                 SELECT 1 FROM steps WHERE steps.thread = threads.n AND steps.id = threads.head AND steps.next IS NULL)
             FROM threads WHERE n = ?1",
        )?
        .query_row([thread], |row| row.get(0))?;
    Ok(if waits { ThreadStatus::Interrupted } else { ThreadStatus::Idle })
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
