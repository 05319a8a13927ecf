//! Steps: the log of a thread's state.
//!
//! Invariant: a step is never changed; it is read, followed by another, or gone with its run or thread.

use std::sync::Arc;

use async_trait::async_trait;
use hart_kernel::{Step, StepSource, Timestamp};
use hart_types::{CheckpointId, RunId, ThreadId};
use serde_json::{Map, Value};

use super::{Lease, StoreError, StoredEvent};

#[async_trait]
pub trait Steps {
    /// Written by hand, in order; the last one becomes the thread's newest, and says what the thread is from then on, if
    /// nothing happens on it.
    async fn append_steps(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), StoreError>;

    /// What the lease's run has come to, all of it or nothing.
    async fn append_progress(&self, progress: Progress, lease: &Lease) -> Result<(), StoreError>;

    /// The steps that lead to `at`, or to the newest one, oldest first.
    async fn steps(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, StoreError>;

    /// The steps that lead to `at`, oldest first: those behind `known`, if that is on the way.
    async fn steps_since(
        &self,
        thread: &ThreadId,
        at: &CheckpointId,
        known: Option<&CheckpointId>,
    ) -> Result<Lineage, StoreError>;

    /// Oldest first; empty for a call that nobody works in.
    async fn child_steps(&self, thread: &ThreadId, call: &str) -> Result<Vec<Step>, StoreError>;

    /// Leaves the thread's newest state as one step of nobody's, `run`, without the way there. Whether there is such a
    /// thread, and nothing happens on it.
    async fn forget_history(&self, thread: &ThreadId, run: &RunId) -> Result<bool, StoreError>;

    /// Steps without their writes, newest first, all branches.
    async fn history(&self, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<StepInfo>, StoreError>;
}

/// Steps of a run, in order, and the events that tell of them.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The call whose agent they are of; none for the thread's own, the last of which becomes its newest. The others are
    /// kept until nothing of the thread waits any more.
    pub call: Option<String>,
    pub steps: Arc<[Step]>,
    pub events: Vec<StoredEvent>,
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
    /// What is said about the run; nothing once it is gone.
    pub run_metadata: Map<String, Value>,
    pub source: StepSource,
    /// From -1, the state before anything was said, upwards.
    pub number: i64,
    pub created_at: Timestamp,
    pub next: Option<String>,
    /// Whether its run was, so that only what came later still needs it. The one that the thread is at never is.
    pub deleted: bool,
}
