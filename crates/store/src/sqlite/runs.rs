//! Runs in SQLite.
//!
//! Invariant: a unique index, not this code, keeps a second run of a thread from running.

use std::collections::BTreeMap;

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_runtime::port::{
    Admission, AtOnce, Claimed, Deleted, Lease, RunEnd, RunQuery, Runs, StoreError, Used,
};
use hart_runtime::{Run, StartRun, Totals};
use hart_types::{MultitaskStrategy, NodeId, RunId, RunStatus, ThreadId, ThreadStatus};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::row::{get_json, get_optional_json, get_optional_text, get_text, get_time, get_word, json, time};
use super::sum::sum;
use super::{SqliteStore, child_steps, effects, events, leases, outbox, steps, threads};

/// Every column, and the thread's id for its number.
const SELECT: &str =
    "SELECT runs.*, threads.id AS thread_id FROM runs JOIN threads ON threads.n = runs.thread";

/// What the rows of a run are found by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) run: i64,
    pub(super) thread: i64,
}

pub(super) fn place(row: &Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place { run: row.get("n")?, thread: row.get("thread")? })
}

#[async_trait]
impl Runs for SqliteStore {
    async fn admit(&self, run: Run, request: StartRun, node: &NodeId) -> Result<Admission, StoreError> {
        let (node, missing) = (node.clone(), StoreError::NoThread(run.thread.clone()));
        self.write(move |db| admit(db, run, &request, &node)).await?.ok_or(missing)
    }

    async fn admit_at_once(&self, run: Run, request: StartRun, node: &NodeId) -> Result<AtOnce, StoreError> {
        let (node, missing) = (node.clone(), StoreError::NoThread(run.thread.clone()));
        let (admitted, written) = self
            .write_ahead(move |db| {
                let Some(admission) = admit(db, run, &request, &node)? else { return Ok(None) };
                let claimed = match &admission {
                    Admission::Admitted { run, others }
                        if others.is_empty() && run.start_at <= run.created_at =>
                    {
                        Some(leases::start_new(db, run.clone(), request, &node)?)
                    }
                    _ => None,
                };
                Ok(Some((admission, claimed)))
            })
            .await?;
        let (admission, claimed) = admitted.ok_or(missing)?;
        Ok(AtOnce { admission, claimed, written })
    }

    async fn claim(
        &self,
        thread: &ThreadId,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        let (thread, node) = (thread.clone(), node.clone());
        self.write(move |db| {
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(None) };
            let waiting = active(db, n)?;
            if waiting.iter().any(|run| run.status == RunStatus::Running) {
                return Ok(None);
            }
            let Some(run) = waiting.into_iter().find(|run| run.start_at <= now) else { return Ok(None) };
            if leases::owner(db, &run.id)?.as_ref() != Some(&node) {
                return Ok(None);
            }
            leases::start(db, run, &node, now).map(Some)
        })
        .await
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let id = id.clone();
        self.look_up(move |db| find(db, &id)).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        let query = query.clone();
        self.read(move |db| {
            let statuses: Vec<&str> = query.status.iter().map(|status| status.as_str()).collect();
            let sql = format!(
                "{SELECT} WHERE (?1 IS NULL OR threads.id = ?1)
                   AND (?2 = '[]' OR runs.status IN (SELECT value FROM json_each(?2)))
                 ORDER BY runs.n DESC LIMIT ?3 OFFSET ?4"
            );
            db.prepare_cached(&sql)?
                .query_map(
                    params![
                        query.thread.as_ref().map(ThreadId::as_str),
                        json(&statuses),
                        i64::try_from(query.limit).unwrap_or(i64::MAX),
                        i64::try_from(query.offset).unwrap_or(i64::MAX),
                    ],
                    read,
                )?
                .collect()
        })
        .await
    }

    async fn thread_totals(&self, thread: &ThreadId) -> Result<(Totals, u64), StoreError> {
        let thread = thread.clone();
        self.read(move |db| {
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(Default::default()) };
            let sql = "SELECT totals FROM runs WHERE thread = ?1 AND status NOT IN ('pending', 'running')";
            let (mut all, mut count) = (Totals::default(), 0);
            for one in db.prepare_cached(sql)?.query_map([n], |row| get_json::<Totals>(row, "totals"))? {
                all.add(&one?);
                count += 1;
            }
            Ok((all, count))
        })
        .await
    }

    async fn usage(&self, since: Timestamp, east: i64) -> Result<Vec<Used>, StoreError> {
        self.read(move |db| {
            let sql = "SELECT runs.totals, runs.created_at, threads.id AS thread_id
                 FROM runs JOIN threads ON threads.n = runs.thread
                 WHERE runs.created_at >= ?1 AND runs.status NOT IN ('pending', 'running')";
            let row = |row: &Row<'_>| {
                let day = (get_time(row, "created_at")?.as_second() + east).div_euclid(86_400);
                Ok((day, get_text::<ThreadId>(row, "thread_id")?, get_json::<Totals>(row, "totals")?))
            };
            let mut days: BTreeMap<(i64, ThreadId), (u64, Totals)> = BTreeMap::new();
            for one in db.prepare_cached(sql)?.query_map([time(since)], row)? {
                let (day, thread, used) = one?;
                let (runs, totals) = days.entry((day, thread)).or_default();
                *runs += 1;
                totals.add(&used);
            }
            let used = |((day, thread), (runs, totals))| Used { day, thread, runs, totals };
            Ok(days.into_iter().map(used).collect())
        })
        .await
    }

    async fn end_run(
        &self,
        id: &RunId,
        end: RunEnd,
        lease: Option<&Lease>,
    ) -> Result<Option<Run>, StoreError> {
        let (id, lease) = (id.clone(), lease.cloned());
        let newest = end.events.iter().map(|event| event.id.seq).max().unwrap_or(0);
        let ended = self.write(move |db| {
            let Some(run) = find(db, &id)?.filter(|run| run.status.is_active()) else { return Ok(None) };
            let Some(place) = writable(db, &run, lease.as_ref())? else { return Ok(None) };
            let RunEnd { status, error, totals, at, base, events, values } = end;
            let base = base.or(run.base.clone());
            db.prepare_cached(
                "UPDATE runs SET status = ?2, error = ?3, totals = ?4, updated_at = ?5, base = ?6, request = NULL,
                                 request_sum = NULL
                 WHERE n = ?1",
            )?
            .execute(params![
                place.run,
                status.as_str(),
                error.as_ref().map(json),
                json(&totals),
                time(at),
                base.as_ref().map(|base| base.as_str())
            ])?;
            events::insert(db, place, &events)?;
            effects::forget(db, &id)?;
            db.prepare_cached("UPDATE threads SET error = ?2 WHERE n = ?1")?
                .execute(params![place.thread, error.as_ref().map(json)])?;
            let_rest(db, place.thread, at)?;
            let ended = Run { status, error, totals, updated_at: at, base, ..run };
            outbox::put_in(db, &ended, values.as_ref())?;
            Ok(Some(ended))
        });
        let ended = ended.await?;
        if ended.is_some() {
            self.mark.raise(newest);
        }
        Ok(ended)
    }

    async fn undo_run(&self, id: &RunId, now: Timestamp, lease: Option<&Lease>) -> Result<bool, StoreError> {
        let (id, lease) = (id.clone(), lease.cloned());
        self.write(move |db| {
            let Some(run) = find(db, &id)? else { return Ok(false) };
            let Some(place) = writable(db, &run, lease.as_ref())? else { return Ok(false) };
            steps::undo(db, &run, now)?;
            forget(db, place.run)?;
            let_rest(db, place.thread, now)?;
            Ok(true)
        })
        .await
    }

    async fn delete_run(&self, id: &RunId, now: Timestamp) -> Result<Deleted, StoreError> {
        let id = id.clone();
        self.write(move |db| {
            let Some(run) = find(db, &id)? else { return Ok(Deleted::Missing) };
            if run.status.is_active() {
                return Ok(Deleted::Active);
            }
            let Some(Place { run: n, thread }) = find_place(db, &id)? else { return Ok(Deleted::Missing) };
            let last = !is_followed(db, thread, n)? && !is_busy(db, thread)?;
            let undone = last && !steps::carries_others(db, thread, &id)?;
            forget(db, n)?;
            if !undone {
                steps::mark_deleted(db, thread, &id)?;
                return Ok(Deleted::Forgotten);
            }
            steps::undo(db, &run, now)?;
            db.prepare_cached("UPDATE threads SET error = NULL WHERE n = ?1")?.execute([thread])?;
            let_rest(db, thread, now)?;
            Ok(Deleted::Undone)
        })
        .await
    }
}

/// None where there is no such thread and none is to be made.
fn admit(
    db: &Connection,
    run: Run,
    request: &StartRun,
    node: &NodeId,
) -> rusqlite::Result<Option<Admission>> {
    if let Some(key) = scoped_key(&run, request)
        && let Some(same) = first(db, "idempotency_key = ?1", params![key])?
    {
        return Ok(Some(match same.fingerprint == run.fingerprint {
            true => Admission::Repeated(same),
            false => Admission::KeyTaken,
        }));
    }
    let thread = match threads::number(db, &run.thread)? {
        Some(thread) => thread,
        None if request.makes_thread() => threads::insert(db, &request.new_thread(&run))?,
        None => return Ok(None),
    };
    let others = active(db, thread)?;
    if run.multitask == MultitaskStrategy::Reject
        && let Some(active) = others.first()
    {
        return Ok(Some(Admission::Rejected { active: active.clone() }));
    }
    insert(db, thread, &run, request, node)?;
    threads::tell(db, &run.thread, run.about())?;
    set_thread(db, thread, ThreadStatus::Busy, run.created_at)?;
    Ok(Some(Admission::Admitted { run, others }))
}

/// Its record and its events; its steps are its thread's.
fn forget(db: &Connection, n: i64) -> rusqlite::Result<()> {
    events::forget_run(db, n)?;
    db.prepare_cached("DELETE FROM runs WHERE n = ?1")?.execute([n])?;
    Ok(())
}

/// Whether a run behind it has come to anything.
fn is_followed(db: &Connection, thread: i64, n: i64) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT EXISTS (
             SELECT 1 FROM runs AS newer JOIN steps ON steps.thread = newer.thread AND steps.run = newer.id
             WHERE newer.thread = ?1 AND newer.n > ?2)",
    )?
    .query_row([thread, n], |row| row.get(0))
}

/// Where its rows are, for whoever may write them: a run that is being executed is its executor's.
fn writable(db: &Connection, run: &Run, lease: Option<&Lease>) -> rusqlite::Result<Option<Place>> {
    match lease {
        Some(lease) => leases::held(db, lease),
        None if run.status == RunStatus::Running => Ok(None),
        None => find_place(db, &run.id),
    }
}

fn find_place(db: &Connection, id: &RunId) -> rusqlite::Result<Option<Place>> {
    db.prepare_cached("SELECT n, thread FROM runs WHERE id = ?1")?.query_row([id.as_str()], place).optional()
}

pub(super) fn find(db: &Connection, id: &RunId) -> rusqlite::Result<Option<Run>> {
    first(db, "runs.id = ?1", params![id.as_str()])
}

fn first(db: &Connection, clause: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Option<Run>> {
    db.prepare_cached(&format!("{SELECT} WHERE {clause}"))?.query_row(values, read).optional()
}

/// Pending and running, oldest first.
fn active(db: &Connection, thread: i64) -> rusqlite::Result<Vec<Run>> {
    let sql =
        format!("{SELECT} WHERE runs.thread = ?1 AND runs.status IN ('pending', 'running') ORDER BY runs.n");
    db.prepare_cached(&sql)?.query_map([thread], read)?.collect()
}

/// Whether anything happens on the thread.
pub(super) fn is_busy(db: &Connection, thread: i64) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM runs WHERE thread = ?1 AND status IN ('pending', 'running'))",
    )?
    .query_row([thread], |row| row.get(0))
}

/// What a thread is when a run has left it, however that ended: its log says whether it waits, and no run. What agents
/// inside its calls have done is kept as long as it does.
fn let_rest(db: &Connection, thread: i64, at: Timestamp) -> rusqlite::Result<()> {
    let rest = steps::rest_status(db, thread)?;
    if rest == ThreadStatus::Idle {
        child_steps::forget(db, thread)?;
    }
    let failed: bool = db
        .prepare_cached("SELECT error IS NOT NULL FROM threads WHERE n = ?1")?
        .query_row([thread], |row| row.get(0))?;
    let status = match (is_busy(db, thread)?, failed) {
        (true, _) => ThreadStatus::Busy,
        (false, true) => ThreadStatus::Error,
        (false, false) => rest,
    };
    set_thread(db, thread, status, at)
}

fn set_thread(db: &Connection, n: i64, status: ThreadStatus, at: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE threads SET status = ?2, updated_at = ?3 WHERE n = ?1")?.execute(params![
        n,
        status.as_str(),
        time(at)
    ])?;
    Ok(())
}

/// Keys of one thread are not those of another; runs without a thread have theirs in common. A thread's id has no slash.
fn scoped_key(run: &Run, request: &StartRun) -> Option<String> {
    let scope = if request.thread.is_some() { run.thread.as_str() } else { "" };
    run.idempotency_key.as_ref().map(|key| format!("{scope}/{key}"))
}

fn insert(
    db: &Connection,
    thread: i64,
    run: &Run,
    request: &StartRun,
    node: &NodeId,
) -> rusqlite::Result<()> {
    let stored = json(request);
    db.prepare_cached(
        "INSERT INTO runs (id, thread, assistant, user, status, metadata, kwargs, multitask, created_at, updated_at,
                           start_at, error, totals, base, idempotency_key, fingerprint, request, request_sum, owner)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    )?
    .execute(params![
        run.id.as_str(),
        thread,
        run.assistant.as_str(),
        run.user.as_str(),
        run.status.as_str(),
        json(&run.metadata),
        json(&run.kwargs),
        run.multitask.as_str(),
        time(run.created_at),
        time(run.updated_at),
        time(run.start_at),
        run.error.as_ref().map(json),
        json(&run.totals),
        run.base.as_ref().map(|base| base.as_str()),
        scoped_key(run, request),
        run.fingerprint,
        stored,
        sum(&[run.id.as_str().as_bytes(), stored.as_bytes()]),
        node.as_str(),
    ])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Run> {
    let scoped: Option<String> = row.get("idempotency_key")?;
    let key = scoped.as_deref().and_then(|scoped| scoped.split_once('/')).map(|(_, key)| key.to_owned());
    Ok(Run {
        id: get_text(row, "id")?,
        thread: get_text(row, "thread_id")?,
        assistant: get_text(row, "assistant")?,
        user: get_text(row, "user")?,
        status: get_word(row, "status")?,
        metadata: get_json(row, "metadata")?,
        kwargs: get_json(row, "kwargs")?,
        multitask: get_word(row, "multitask")?,
        created_at: get_time(row, "created_at")?,
        updated_at: get_time(row, "updated_at")?,
        start_at: get_time(row, "start_at")?,
        error: get_optional_json(row, "error")?,
        totals: get_json(row, "totals")?,
        base: get_optional_text(row, "base")?,
        idempotency_key: key,
        fingerprint: row.get("fingerprint")?,
    })
}
