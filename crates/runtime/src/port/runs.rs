//! Runs: let in, claimed, ended, undone.
//!
//! Invariant: at most one run of a thread is running, whoever asks and however often.

use std::fmt;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use hart_kernel::Timestamp;
use hart_types::{CheckpointId, NodeId, RunId, RunStatus, ThreadId};

use super::{Claimed, Lease, StoreError, StoredEvent};
use crate::{Failure, Run, StartRun, Totals};

#[async_trait]
pub trait Runs {
    /// Takes a run in as pending and its thread as busy, decided by its strategy in the same transaction, in which the
    /// thread is made if the request says so, and is told whose run is its last. `node` is the one to execute it, as
    /// long as that lives.
    async fn admit(&self, run: Run, request: StartRun, node: &NodeId) -> Result<Admission, StoreError>;

    /// As [`Runs::admit`]; a run that is due and that nothing is before on its thread is started in the same transaction.
    /// What came of it is known before it is on the disk: what the run writes gets there later, or not at all.
    async fn admit_at_once(&self, run: Run, request: StartRun, node: &NodeId) -> Result<AtOnce, StoreError>;

    /// Starts the oldest pending run of the thread that is due, if it is the node's and none is running.
    async fn claim(
        &self,
        thread: &ThreadId,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Option<Claimed>, StoreError>;

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// Newest first.
    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError>;

    /// What all runs of a thread that ended used, and how many those are.
    async fn thread_totals(&self, thread: &ThreadId) -> Result<(Totals, u64), StoreError>;

    /// What the runs used that began since then and have ended, by thread and by the day they began on, where the clocks
    /// are so many seconds before UTC's.
    async fn usage(&self, since: Timestamp, east: i64) -> Result<Vec<Used>, StoreError>;

    /// Writes how it ended, its last events, and what that makes of its thread: busy where others wait for it, failed
    /// with the run, otherwise what its newest step says. `None` when it had ended before or is
    /// gone, when the lease is lost, and without a lease when it is being executed.
    async fn end_run(
        &self,
        id: &RunId,
        end: RunEnd,
        lease: Option<&Lease>,
    ) -> Result<Option<Run>, StoreError>;

    /// Forgets a run with its steps and its events; the thread is back at the step it started from. Without a lease
    /// one that is being executed stays.
    async fn undo_run(&self, id: &RunId, now: Timestamp, lease: Option<&Lease>) -> Result<bool, StoreError>;

    /// Forgets a run that has ended, decided in one transaction: if nothing has happened on its thread since, it is
    /// undone; otherwise what came later stands on its steps, so only its record and its events go.
    async fn delete_run(&self, id: &RunId, now: Timestamp) -> Result<Deleted, StoreError>;
}

/// What came of taking a run in at once.
pub struct AtOnce {
    pub admission: Admission,
    /// Whoever asked executes it.
    pub claimed: Option<Claimed>,
    /// Whether all of that is on the disk; nobody may be told of it before.
    pub written: BoxFuture<'static, Result<(), StoreError>>,
}

impl fmt::Debug for AtOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { admission, claimed, .. } = self;
        f.debug_struct("AtOnce")
            .field("admission", admission)
            .field("claimed", claimed)
            .finish_non_exhaustive()
    }
}

/// What deleting a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The thread is back at the step that the run started from.
    Undone,
    /// The thread keeps what the run did.
    Forgotten,
    /// It has not ended: nothing was done.
    Active,
    Missing,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// It was pending when it was taken in. `others` were pending or running before it, oldest first.
    Admitted { run: Run, others: Vec<Run> },
    /// A run with its idempotency key exists: that one is meant.
    Repeated(Run),
    /// A run with its idempotency key exists, and is another one.
    KeyTaken,
    /// Another one is on the thread and the strategy is to give way.
    Rejected { active: Run },
}

#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    pub thread: Option<ThreadId>,
    pub status: Vec<RunStatus>,
    pub limit: u64,
    pub offset: u64,
}

/// What one thread used on one day.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// Days since 1970.
    pub day: i64,
    pub thread: ThreadId,
    pub runs: u64,
    pub totals: Totals,
}

#[derive(Clone, Debug)]
pub struct RunEnd {
    pub status: RunStatus,
    pub error: Option<Failure>,
    pub totals: Totals,
    pub at: Timestamp,
    /// The step the run started from, once it is known.
    pub base: Option<CheckpointId>,
    /// What it came to, as JSON, for whoever is to be told of its end.
    pub values: Option<bytes::Bytes>,
    /// The last of its log.
    pub events: Vec<StoredEvent>,
}
