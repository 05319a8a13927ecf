//! Leases in SQLite: columns of the runs, a counter, and locked files beside the database.
//!
//! Invariant: a token is compared in the transaction that writes.

use std::collections::HashMap;

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_runtime::port::{Claimed, Held, Holding, Lease, Leases, NUMBERS, Sign, StoreError};
use hart_runtime::{Run, StartRun};
use hart_types::{CancelAction, CheckpointId, NodeId, RunId, RunStatus, ThreadId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::row::{get_optional_json, get_optional_text, get_text, get_time, get_word, signed, time};
use super::runs::{Place, place};
use super::sum::check_column;
use super::{SqliteStore, failure, runs, threads};

#[async_trait]
impl Leases for SqliteStore {
    async fn join(&self, node: &NodeId) -> Result<(), StoreError> {
        let (presence, node) = (self.presence.clone(), node.clone());
        let joined = self.write(move |db| {
            let mut statement = db.prepare_cached(OWNERS)?;
            let owners = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
            presence.sweep(&owners);
            Ok(presence.join(&node))
        });
        joined.await?.map_err(|error| {
            StoreError::failed("this process cannot be made known beside the database", error)
        })?;
        let tidy = self.write(|db| {
            db.prepare_cached(&format!("DELETE FROM nodes WHERE id NOT IN ({OWNERS})"))?.execute([])
        });
        match tidy.await {
            // Where there is no room to tidy up there is room to read.
            Ok(_) | Err(StoreError::Full) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn beat(&self, node: &NodeId) -> Result<Vec<Held>, StoreError> {
        let node = node.clone();
        self.write(move |db| {
            db.prepare_cached(
                "INSERT INTO nodes (id, beat) VALUES (?1, 1) ON CONFLICT DO UPDATE SET beat = beat + 1",
            )?
            .execute([node.as_str()])?;
            db.prepare_cached(
                "SELECT id, owner, token, stop FROM runs
                 WHERE status IN ('pending', 'running') AND owner = ?1",
            )?
            .query_map([node.as_str()], |row| Ok(Held { lease: lease(row)?, stop: stop(row)? }))?
            .collect()
        })
        .await
    }

    async fn holdings(&self, thread: Option<&ThreadId>) -> Result<Vec<Holding>, StoreError> {
        let (presence, thread) = (self.presence.clone(), thread.cloned());
        self.read(move |db| {
            let mut statement = db.prepare_cached(
                "SELECT runs.id, owner, token, tries, runs.status, start_at, threads.id AS thread_id,
                        coalesce(beat, 0) AS beat
                 FROM runs JOIN threads ON threads.n = runs.thread LEFT JOIN nodes ON nodes.id = owner
                 WHERE runs.status IN ('pending', 'running') AND (?1 IS NULL OR threads.id = ?1) ORDER BY runs.n",
            )?;
            let mut signs: HashMap<NodeId, Sign> = HashMap::new();
            statement
                .query_map([thread.as_ref().map(ThreadId::as_str)], |row| {
                    let lease = lease(row)?;
                    let holder = signs.entry(lease.node.clone());
                    Ok(Holding {
                        sign: *holder.or_insert_with_key(|node| presence.sign(node.as_str())),
                        thread: get_text(row, "thread_id")?,
                        status: get_word(row, "status")?,
                        start_at: get_time(row, "start_at")?,
                        tries: row.get("tries")?,
                        beat: row.get::<_, i64>("beat")?.unsigned_abs(),
                        lease,
                    })
                })?
                .collect()
        })
        .await
    }

    async fn take_over(
        &self,
        from: &Lease,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        let (from, node) = (from.clone(), node.clone());
        self.write(move |db| {
            let Some(run) = runs::find(db, &from.run)?.filter(|run| run.status.is_active()) else {
                return Ok(None);
            };
            if current(db, &from.run)?.as_ref() != Some(&from) {
                return Ok(None);
            }
            match run.status {
                RunStatus::Running => start(db, run, &node, now).map(Some),
                _ => {
                    db.prepare_cached("UPDATE runs SET owner = ?2 WHERE id = ?1")?
                        .execute([run.id.as_str(), node.as_str()])?;
                    claimed(db, run).map(Some)
                }
            }
        })
        .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(move |db| {
            if let Some(Place { run, .. }) = held(db, &lease)? {
                db.prepare_cached("UPDATE runs SET owner = '', tries = max(tries - 1, 0) WHERE n = ?1")?
                    .execute([run])?;
            }
            Ok(())
        })
        .await
    }

    async fn ask_to_stop(&self, run: &RunId, action: CancelAction) -> Result<bool, StoreError> {
        let run = run.clone();
        self.write(move |db| {
            db.prepare_cached("UPDATE runs SET stop = ?2 WHERE id = ?1 AND status = 'running'")?
                .execute([run.as_str(), action.as_str()])
        })
        .await
        .map(|changed| changed > 0)
    }

    async fn numbers(&self) -> Result<u64, StoreError> {
        self.write(next_numbers).await
    }
}

const OWNERS: &str = "SELECT owner FROM runs WHERE status IN ('pending', 'running')";

/// Makes the run running, and the node's.
pub(super) fn start(db: &Connection, run: Run, node: &NodeId, now: Timestamp) -> rusqlite::Result<Claimed> {
    let (_, base) = begin(db, &run, node, now)?;
    claimed(db, Run { status: RunStatus::Running, updated_at: now, base, ..run })
}

/// The run's token, and the step it starts from.
fn begin(
    db: &Connection,
    run: &Run,
    node: &NodeId,
    now: Timestamp,
) -> rusqlite::Result<(u64, Option<CheckpointId>)> {
    let head = threads::find(db, &run.thread)?.and_then(|(_, thread)| thread.head);
    let token = next_numbers(db)?;
    // What an attempt that goes on finds is the work of the ones before it.
    let first = run.status == RunStatus::Pending;
    let base = run.base.clone().or_else(|| head.clone().filter(|_| first));
    db.prepare_cached(
        "UPDATE runs SET status = ?2, updated_at = ?3, base = ?4, owner = ?5, token = ?6, attempt = attempt + 1,
                         tries = CASE WHEN mark IS ?7 THEN tries + 1 ELSE 1 END, mark = ?7
         WHERE id = ?1",
    )?
    .execute(params![
        run.id.as_str(),
        RunStatus::Running.as_str(),
        time(now),
        base.as_ref().map(CheckpointId::as_str),
        node.as_str(),
        i64::try_from(token).unwrap_or(i64::MAX),
        head.as_ref().map(CheckpointId::as_str),
    ])?;
    Ok((token, base))
}

/// As [`start`], of one that was taken in in this transaction and asks for what is at hand.
pub(super) fn start_new(
    db: &Connection,
    run: Run,
    request: StartRun,
    node: &NodeId,
) -> rusqlite::Result<Claimed> {
    let now = run.created_at;
    let (token, base) = begin(db, &run, node, now)?;
    let lease = Lease { run: run.id.clone(), node: node.clone(), token };
    let run = Run { status: RunStatus::Running, updated_at: now, base, ..run };
    Ok(Claimed { run, lease, request: Some(request), attempt: 1, tries: 1, stop: None })
}

/// Where the run's rows are, if it is still the lease's.
pub(super) fn held(db: &Connection, lease: &Lease) -> rusqlite::Result<Option<Place>> {
    db.prepare_cached(
        "SELECT n, thread FROM runs
         WHERE id = ?1 AND owner = ?2 AND token = ?3 AND status IN ('pending', 'running')",
    )?
    .query_row(params![lease.run.as_str(), lease.node.as_str(), signed(lease.token)], place)
    .optional()
}

/// The lease of a run that has not ended.
fn current(db: &Connection, run: &RunId) -> rusqlite::Result<Option<Lease>> {
    db.prepare_cached("SELECT id, owner, token FROM runs WHERE id = ?1 AND status IN ('pending', 'running')")?
        .query_row([run.as_str()], lease)
        .optional()
}

pub(super) fn owner(db: &Connection, run: &RunId) -> rusqlite::Result<Option<NodeId>> {
    Ok(current(db, run)?.map(|lease| lease.node))
}

fn claimed(db: &Connection, run: Run) -> rusqlite::Result<Claimed> {
    let sql = "SELECT id, owner, token, request, request_sum, attempt, tries, stop FROM runs WHERE id = ?1";
    db.prepare_cached(sql)?.query_row([run.id.as_str()], |row| {
        Ok(Claimed {
            lease: lease(row)?,
            request: request(row).unwrap_or_else(|error| {
                // Nobody can do what cannot be read: the run ends, and says why.
                let _ = failure(error);
                None
            }),
            attempt: row.get("attempt")?,
            tries: row.get("tries")?,
            stop: stop(row)?,
            run: run.clone(),
        })
    })
}

fn request(row: &Row<'_>) -> rusqlite::Result<Option<StartRun>> {
    let (id, request): (String, Option<String>) = (row.get("id")?, row.get("request")?);
    let parts = request.as_deref().map(|request| [id.as_bytes(), request.as_bytes()]);
    let what = format!("what run {id} was asked");
    check_column(row, "request_sum", &what, parts.as_ref().map(|parts| parts.as_slice()))?;
    get_optional_json(row, "request")
}

fn lease(row: &Row<'_>) -> rusqlite::Result<Lease> {
    Ok(Lease {
        run: get_text(row, "id")?,
        node: get_optional_text(row, "owner")?.unwrap_or_else(|| "".into()),
        token: row.get::<_, i64>("token")?.unsigned_abs(),
    })
}

fn stop(row: &Row<'_>) -> rusqlite::Result<Option<CancelAction>> {
    match row.get::<_, Option<String>>("stop")? {
        Some(_) => get_word(row, "stop").map(Some),
        None => Ok(None),
    }
}

fn next_numbers(db: &Connection) -> rusqlite::Result<u64> {
    let block = i64::try_from(NUMBERS).unwrap_or(i64::MAX);
    db.prepare_cached("UPDATE counters SET next = next + ?1 WHERE name = 'events' RETURNING next - ?1")?
        .query_row([block], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
}
