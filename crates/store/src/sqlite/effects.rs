//! Effects in SQLite.
//!
//! Invariant: a token is compared in the transaction that writes.

use async_trait::async_trait;
use hart_kernel::{Begun, EffectKey};
use hart_runtime::port::{Effects, Lease, StoreError};
use hart_types::RunId;
use rusqlite::{Connection, Row, params};
use serde_json::Value;

use super::row::{get_optional_json, json};
use super::sum::{check, check_column, sum};
use super::{SqliteStore, leases};

#[async_trait]
impl Effects for SqliteStore {
    async fn effects(&self, run: &RunId) -> Result<Vec<Begun>, StoreError> {
        let run = run.clone();
        self.read(move |db| {
            db.prepare_cached("SELECT * FROM effects WHERE run = ?1 ORDER BY n")?
                .query_map([run.as_str()], read)?
                .collect()
        })
        .await
    }

    async fn begin_effect(&self, begun: Begun, lease: &Lease) -> Result<(), StoreError> {
        self.held(lease, move |db, run| {
            let foreseen = begun.foreseen.as_ref().map(json);
            db.prepare_cached(
                "INSERT INTO effects (run, key, tool, call, foreseen, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                run.as_str(),
                begun.key.as_str(),
                begun.tool,
                begun.call.as_str(),
                foreseen,
                sum(&parts(
                    run.as_str(),
                    begun.key.as_str(),
                    &begun.tool,
                    begun.call.as_str(),
                    foreseen.as_deref()
                )),
            ])
        })
        .await
    }

    async fn finish_effect(&self, key: &EffectKey, outcome: Value, lease: &Lease) -> Result<(), StoreError> {
        let key = key.clone();
        self.held(lease, move |db, run| {
            let outcome = json(&outcome);
            let sum = sum(&[key.as_str().as_bytes(), outcome.as_bytes()]);
            db.prepare_cached(
                "UPDATE effects SET outcome = ?3, outcome_sum = ?4 WHERE run = ?1 AND key = ?2",
            )?
            .execute(params![run.as_str(), key.as_str(), outcome, sum])
        })
        .await
    }

    async fn withdraw_effect(&self, key: &EffectKey, lease: &Lease) -> Result<(), StoreError> {
        let key = key.clone();
        self.held(lease, move |db, run| {
            db.prepare_cached("DELETE FROM effects WHERE run = ?1 AND key = ?2")?
                .execute([run.as_str(), key.as_str()])
        })
        .await
    }
}

impl SqliteStore {
    /// Writes for a run that is still the lease's.
    async fn held(
        &self,
        lease: &Lease,
        work: impl FnOnce(&Connection, &RunId) -> rusqlite::Result<usize> + Send + 'static,
    ) -> Result<(), StoreError> {
        let (lease, lost) = (lease.clone(), StoreError::Lost(lease.run.clone()));
        let written = self.write(move |db| match leases::held(db, &lease)? {
            Some(_) => work(db, &lease.run).map(Some),
            None => Ok(None),
        });
        written.await?.map(|_| ()).ok_or(lost)
    }
}

/// What a run that has ended did is told by its thread.
pub(super) fn forget(db: &Connection, run: &RunId) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM effects WHERE run = ?1")?.execute([run.as_str()])?;
    Ok(())
}

/// What is written down before the effect.
fn parts<'a>(
    run: &'a str,
    key: &'a str,
    tool: &'a str,
    call: &'a str,
    foreseen: Option<&'a str>,
) -> [&'a [u8]; 5] {
    [run, key, tool, call, foreseen.unwrap_or("-")].map(str::as_bytes)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Begun> {
    let text = |column: &str| row.get::<_, String>(column);
    let (run, key, tool, call) = (text("run")?, text("key")?, text("tool")?, text("call")?);
    let foreseen: Option<String> = row.get("foreseen")?;
    let what = format!("call {call} of `{tool}` in run {run}");
    check(row, &what, &parts(&run, &key, &tool, &call, foreseen.as_deref()), 0)?;
    let outcome: Option<String> = row.get("outcome")?;
    let noted = outcome.as_deref().map(|outcome| [key.as_bytes(), outcome.as_bytes()]);
    check_column(
        row,
        "outcome_sum",
        &format!("what came of {what}"),
        noted.as_ref().map(|parts| parts.as_slice()),
    )?;
    Ok(Begun {
        key: key.into(),
        tool,
        call: call.into(),
        foreseen: get_optional_json(row, "foreseen")?,
        outcome: get_optional_json(row, "outcome")?,
    })
}
