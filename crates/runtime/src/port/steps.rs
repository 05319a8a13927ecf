//! Steps: the log of a thread's state.
//!
//! Invariant: a step is never changed; it is read, followed by another, or gone with its run or thread.

use async_trait::async_trait;
use hart_kernel::{Step, StepSource, Timestamp};
use hart_types::{CheckpointId, RunId, ThreadId};

use super::{Lease, StoreError};

#[async_trait]
pub trait Steps {
    /// In order; the last one becomes the thread's newest. A run's own steps come with its lease; others also say what
    /// the thread is from then on, if nothing happens on it.
    async fn append_steps(
        &self,
        thread: &ThreadId,
        steps: Vec<Step>,
        lease: Option<&Lease>,
    ) -> Result<(), StoreError>;

    /// The steps that lead to `at`, or to the newest one, oldest first.
    async fn steps(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, StoreError>;

    /// The steps that lead to `at`, oldest first: those behind `known`, if that is on the way.
    async fn steps_since(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
        known: Option<&CheckpointId>,
    ) -> Result<Lineage, StoreError>;

    /// Steps of an agent inside a call of the thread, in order. They are kept until nothing of the thread waits any more.
    async fn append_child_steps(
        &self,
        thread: &ThreadId,
        call: &str,
        steps: Vec<Step>,
        lease: &Lease,
    ) -> Result<(), StoreError>;

    /// Oldest first; empty for a call that nobody works in.
    async fn child_steps(&self, thread: &ThreadId, call: &str) -> Result<Vec<Step>, StoreError>;

    /// Leaves the thread's newest state as one step of nobody's, `run`, without the way there. Whether there is such a
    /// thread, and nothing happens on it.
    async fn forget_history(&self, thread: &ThreadId, run: &RunId) -> Result<bool, StoreError>;

    /// Steps without their writes, newest first, all branches.
    async fn history(&self, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<StepInfo>, StoreError>;
}

/// How a state was come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Lineage {
    /// All of it; nothing if there is no such step.
    Whole(Vec<Step>),
    /// From behind the step that was known already.
    Since(Vec<Step>),
}

#[derive(Clone, Debug, Default)]
pub struct HistoryQuery {
    /// Only what is older than this step.
    pub before: Option<CheckpointId>,
    /// Only this step.
    pub only: Option<CheckpointId>,
    pub run: Option<RunId>,
    pub limit: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepInfo {
    pub id: CheckpointId,
    pub parent: Option<CheckpointId>,
    pub run: RunId,
    pub source: StepSource,
    /// From -1, the state before anything was said, upwards.
    pub number: i64,
    pub created_at: Timestamp,
    pub next: Option<String>,
}
