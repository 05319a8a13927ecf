//! Leases: who executes a run, and when others may take it over.
//!
//! Invariant: a run has one holder. Whoever held it before can write nothing more, whatever it believes and whatever
//! any clock says: tokens rise, and a write with an old one is refused in the transaction that would have made it.

use async_trait::async_trait;
use hart_kernel::Timestamp;
use hart_types::{CancelAction, NodeId, RunId, RunStatus, ThreadId};

use super::StoreError;
use crate::{Run, StartRun};

#[async_trait]
pub trait Leases {
    /// Makes the node's death visible to others where the engine can do that at once.
    async fn join(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Shows that the node lives; what it still holds.
    async fn beat(&self, node: &NodeId) -> Result<Vec<Held>, StoreError>;

    /// Runs that wait or are executed, of one thread or of all, oldest first, and what can be seen of their holders.
    async fn holdings(&self, thread: Option<&ThreadId>) -> Result<Vec<Holding>, StoreError>;

    /// Gives a run to another node, unless it has ended or somebody was faster. One that waited still waits.
    async fn take_over(
        &self,
        from: &Lease,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError>;

    /// Lets others have a run that is being executed, as if this attempt had not been.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Asks whoever executes the run to stop it; false when nobody does.
    async fn ask_to_stop(&self, run: &RunId, action: CancelAction) -> Result<bool, StoreError>;

    /// The first of [`NUMBERS`] numbers that nobody was given before; they are above all that were.
    async fn numbers(&self) -> Result<u64, StoreError>;
}

/// How many event numbers are given at once.
pub const NUMBERS: u64 = 1 << 20;

/// The right to write for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub run: RunId,
    pub node: NodeId,
    /// Higher with every claim of any run; 0 while the run waits. It is the first of the [`NUMBERS`] that the run's
    /// events are given.
    pub token: u64,
}

/// A run, and all it takes to execute it.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub run: Run,
    pub lease: Lease,
    /// What was asked; none for runs of a hart that did not keep it.
    pub request: Option<StartRun>,
    /// From 1.
    pub attempt: u32,
    /// How many attempts, this one included, began where the thread stands now.
    pub tries: u32,
    /// Somebody wanted it stopped.
    pub stop: Option<CancelAction>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub lease: Lease,
    /// Somebody wants it stopped.
    pub stop: Option<CancelAction>,
}

/// A run as it looks from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub lease: Lease,
    pub thread: ThreadId,
    pub status: RunStatus,
    pub start_at: Timestamp,
    /// As in [`Claimed`].
    pub tries: u32,
    /// Changes as long as the holder lives and has something to do.
    pub beat: u64,
    pub sign: Sign,
}

/// What can be seen of a holder at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It is certainly no more.
    Gone,
    /// Its process is there; it may hang.
    There,
    /// Nothing: only its beats tell.
    None,
}
