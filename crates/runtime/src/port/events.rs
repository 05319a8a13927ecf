//! Events: the log of what was streamed.
//!
//! Invariant: numbers rise and are never given twice; an event is read exactly as it was written.

use async_trait::async_trait;
use bytes::Bytes;
use hart_types::{EventId, RunId, ThreadId};

use super::{Lease, StoreError};
use hart_kernel::Timestamp;

#[async_trait]
pub trait Events {
    /// All are of the lease's run.
    async fn append_events(&self, events: Vec<StoredEvent>, lease: &Lease) -> Result<(), StoreError>;

    /// Those after number `after`, in order, at most `limit`.
    async fn events(
        &self,
        scope: &EventScope,
        after: u64,
        limit: u64,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    /// Those after number `after`, in order: as many as `room` bytes hold, and one if there is any.
    async fn page_of_events(
        &self,
        scope: &EventScope,
        after: u64,
        room: usize,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    /// The first and the last that are kept of a run.
    async fn event_bounds(&self, run: &RunId) -> Result<Option<(EventId, EventId)>, StoreError>;

    /// Forgets events of runs that ended before `before`, with their recordings; how many.
    async fn forget_events(&self, before: Timestamp) -> Result<u64, StoreError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventScope {
    Run(RunId),
    Thread(ThreadId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    pub id: EventId,
    pub run: RunId,
    pub thread: ThreadId,
    /// As [`crate::LogEvent`] spells itself.
    pub payload: Bytes,
}
