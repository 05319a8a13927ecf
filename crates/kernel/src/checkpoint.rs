//! The checkpointer port: a thread's log of durable steps.
//!
//! Invariant: a step holds what was written, not what resulted, so its size does not grow with the thread. The log
//! is the truth; state is the fold of it.

use std::sync::Arc;

use async_trait::async_trait;
use hart_types::{CheckpointId, RunId, ThreadId};
use serde::{Deserialize, Serialize};

use crate::{LoggedWrite, Node};

/// Stores steps in order. `append` returns once they would survive a crash, all of them or none.
#[async_trait]
pub trait Checkpointer: Send + Sync {
    async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError>;

    /// The steps that lead to `at`, or to the newest one, oldest first; empty for a thread nobody wrote to.
    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError>;

    /// Where an agent that works inside a call keeps its own steps, apart from the thread's. `call` is the same when the
    /// call is made again. Nothing where such steps are not kept: then the agent starts anew.
    fn inside(&self, _call: &str) -> Option<Arc<dyn Checkpointer>> {
        None
    }
}

/// One durable step: a model call or a batch of tool results, with the hook writes before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub id: CheckpointId,
    /// The step it follows; several may follow one.
    #[serde(default)]
    pub parent: Option<CheckpointId>,
    pub run_id: RunId,
    pub source: StepSource,
    pub created_at: jiff::Timestamp,
    /// Updates by state key, in the order they were applied.
    pub writes: Vec<LoggedWrite>,
    /// What comes next: `model`, `tools` or a middleware's hook; nothing at the end.
    #[serde(default)]
    pub next: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepSource {
    /// The state as the run found it, without the question that was left open there.
    Start,
    Input,
    Model,
    Tools,
    Pause,
    End,
    /// Not a run: a client wrote to the state.
    Update,
}

impl StepSource {
    /// Whether a step of this kind comes further: one that leaves calls still to be made, because one of them asks, is in
    /// the history without a number of its own.
    pub fn goes_further(self, next: Option<&str>) -> bool {
        !(self == Self::Pause || self == Self::Tools && next == Node::Tools.name())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CheckpointError {
    pub message: String,
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
