//! The checkpointer port: a thread's log of durable steps.
//!
//! Invariant: a step holds what was written, not what resulted, so its size does not grow with the thread. The log
//! is the truth; state is the fold of it.

use async_trait::async_trait;
use hart_types::{CheckpointId, RunId, ThreadId};
use serde::{Deserialize, Serialize};

use crate::LoggedWrite;

/// Stores steps in order. `append` returns once the step would survive a crash.
#[async_trait]
pub trait Checkpointer: Send + Sync {
    async fn append(&self, thread: &ThreadId, step: Step) -> Result<(), CheckpointError>;

    /// All steps of a thread, oldest first; empty for a thread nobody wrote to.
    async fn load(&self, thread: &ThreadId) -> Result<Vec<Step>, CheckpointError>;
}

/// One durable step: a model call or a batch of tool results, with the hook writes before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub id: CheckpointId,
    pub run_id: RunId,
    pub source: StepSource,
    pub created_at: jiff::Timestamp,
    /// Updates by state key, in the order they were applied.
    pub writes: Vec<LoggedWrite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepSource {
    Input,
    Model,
    Tools,
    Pause,
    End,
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CheckpointError {
    pub message: String,
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
