//! How a store is doing.
//!
//! Invariant: what waits is known at once, also when the store does not answer.

use async_trait::async_trait;

use super::StoreError;

#[async_trait]
pub trait Vitals {
    /// Writes that wait for the disk, or for their turn.
    fn waiting_writes(&self) -> u64;

    /// Whether there was no room for what was written last.
    fn is_full(&self) -> bool;

    /// How many runs wait and how many are executed, by whichever process.
    async fn active_runs(&self) -> Result<ActiveRuns, StoreError>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveRuns {
    pub pending: u64,
    pub running: u64,
}
