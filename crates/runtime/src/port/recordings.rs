//! Recordings: what runs asked of the world and were told.
//!
//! Invariant: a recording goes with its run, and with its run's events. It never delays a run: it is written with
//! whatever is written next.

use async_trait::async_trait;
use bytes::Bytes;
use hart_types::{CheckpointId, RunId};

use super::{Lease, StoreError};

#[async_trait]
pub trait Recordings {
    /// Takes records of the lease's run to be written, in order and before anything that is handed in later. Returns
    /// at once; those of a run that is no longer the lease's are dropped.
    fn append_records(&self, records: Vec<StoredRecord>, lease: &Lease);

    /// How many bytes there are of a run, those that are still to be written not counted.
    async fn recorded_bytes(&self, run: &RunId) -> Result<u64, StoreError>;

    /// In the order they were made.
    async fn records(&self, run: &RunId) -> Result<Vec<StoredRecord>, StoreError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The step it led to; what came behind the last step has none.
    pub step: Option<CheckpointId>,
    /// As the recording spells it.
    pub payload: Bytes,
}
