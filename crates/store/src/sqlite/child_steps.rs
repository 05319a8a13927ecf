//! Steps of agents inside calls, in SQLite: one row each, gone when nothing of the thread can come back to them.
//!
//! Invariant: whoever writes has compared the token in the same transaction.

use hart_kernel::Step;
use hart_runtime::port::StoreError;
use hart_types::{RunId, ThreadId};
use rusqlite::{Connection, Row, params};

use super::row::{get_json, json};
use super::sum::{check, sum};
use super::{SqliteStore, threads};

impl SqliteStore {
    pub(super) async fn get_child_steps(
        &self,
        thread: &ThreadId,
        call: &str,
    ) -> Result<Vec<Step>, StoreError> {
        let (thread, call) = (thread.clone(), call.to_owned());
        self.read(move |db| {
            let Some((n, _)) = threads::find(db, &thread)? else { return Ok(Vec::new()) };
            db.prepare_cached("SELECT * FROM child_steps WHERE thread = ?1 AND call = ?2 ORDER BY n")?
                .query_map(params![n, call], read)?
                .collect()
        })
        .await
    }
}

pub(super) fn append(
    db: &Connection,
    thread: i64,
    call: &str,
    run: &RunId,
    steps: &[Step],
) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO child_steps (thread, call, run, step, sum) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let run = run.as_str();
    for step in steps {
        let step = json(step);
        insert.execute(params![thread, call, run, step, sum(&parts(call, run, &step))])?;
    }
    Ok(())
}

fn parts<'a>(call: &'a str, run: &'a str, step: &'a str) -> [&'a [u8]; 3] {
    [call, run, step].map(str::as_bytes)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Step> {
    let text = |column: &str| row.get::<_, String>(column);
    let (call, run, step) = (text("call")?, text("run")?, text("step")?);
    check(row, &format!("a step inside call {call} of run {run}"), &parts(&call, &run, &step), 0)?;
    get_json(row, "step")
}

/// Nothing of the thread waits any more.
pub(super) fn forget(db: &Connection, thread: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM child_steps WHERE thread = ?1")?.execute([thread])?;
    Ok(())
}

/// The run has not happened.
pub(super) fn undo(db: &Connection, thread: i64, run: &RunId) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM child_steps WHERE thread = ?1 AND run = ?2")?
        .execute(params![thread, run.as_str()])?;
    Ok(())
}

pub(super) fn copy(db: &Connection, from: i64, to: i64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO child_steps (thread, call, run, step, sum)
         SELECT ?2, call, run, step, sum FROM child_steps WHERE thread = ?1 ORDER BY n",
    )?
    .execute([from, to])?;
    Ok(())
}
