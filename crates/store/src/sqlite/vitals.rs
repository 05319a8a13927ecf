//! How the file and its writer are doing.
//!
//! Invariant: looking is cheap: only runs that have not ended are counted.

use async_trait::async_trait;
use hart_runtime::port::{ActiveRuns, StoreError, Vitals};

use super::SqliteStore;
use super::row::unsigned;

#[async_trait]
impl Vitals for SqliteStore {
    fn waiting_writes(&self) -> u64 {
        self.writer.waiting()
    }

    fn is_full(&self) -> bool {
        self.writer.is_full()
    }

    async fn active_runs(&self) -> Result<ActiveRuns, StoreError> {
        self.read(|db| {
            db.prepare_cached(
                "SELECT coalesce(sum(status = 'pending'), 0), coalesce(sum(status = 'running'), 0)
                 FROM runs WHERE status IN ('pending', 'running')",
            )?
            .query_row([], |row| {
                Ok(ActiveRuns { pending: unsigned(row.get(0)?), running: unsigned(row.get(1)?) })
            })
        })
        .await
    }
}
