//! The steps from an empty file to the newest shape of it.
//!
//! Invariant: a migration that was ever handed out is never changed; a new shape is a new migration.

use std::cmp::Ordering;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::OpenError;

const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_threads_and_runs.sql"),
    include_str!("../../migrations/0002_items.sql"),
    include_str!("../../migrations/0003_assistants.sql"),
    include_str!("../../migrations/0004_leases.sql"),
    include_str!("../../migrations/0005_crons.sql"),
    include_str!("../../migrations/0006_effects.sql"),
    include_str!("../../migrations/0007_outbox.sql"),
    include_str!("../../migrations/0008_records.sql"),
    include_str!("../../migrations/0009_child_steps.sql"),
    include_str!("../../migrations/0010_sums.sql"),
    include_str!("../../migrations/0011_feedback.sql"),
    include_str!("../../migrations/0012_keys_of_requests.sql"),
    include_str!("../../migrations/0013_more_sums.sql"),
    include_str!("../../migrations/0014_leaner_indexes.sql"),
    include_str!("../../migrations/0015_events_in_rows.sql"),
    include_str!("../../migrations/0016_lifetimes.sql"),
    include_str!("../../migrations/0017_states_of_deleted_runs.sql"),
];

pub(super) fn apply(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    if !are_missing(connection, path)? {
        return Ok(());
    }
    let failed = |source| OpenError::of(path, source);
    // All of them or none, in one sync. Another process may be doing the same: whoever has the file looks again how far
    // it is.
    let all = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found: u32 = all.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    for (version, migration) in (1_u32..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        all.execute_batch(migration).map_err(failed)?;
        all.pragma_update(None, "user_version", version).map_err(failed)?;
    }
    all.commit().map_err(failed)
}

/// Whether the file is of an older hart; of a newer one it is not for this one.
pub(super) fn are_missing(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let failed = |source| OpenError::of(path, source);
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if found == 0 && has_tables(connection).map_err(failed)? {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    match found.cmp(&known) {
        Ordering::Greater => Err(OpenError::Newer { path: path.to_owned(), found, known }),
        ordering => Ok(ordering == Ordering::Less),
    }
}

fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
