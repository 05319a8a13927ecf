//! Agents on other servers, as tasks that run in the background: the port to them, and what is known of the tasks.
//!
//! Invariant: a task is known by its thread on the other server; what comes back from there is foreign text.

use std::collections::BTreeMap;

use hart_kernel::{ReduceError, Scope, StateKey, Timestamp, async_trait};
use serde::{Deserialize, Serialize};

/// Whatever speaks LangGraph's protocol somewhere else.
#[async_trait]
pub trait RemoteAgents: Send + Sync {
    /// Those there are: names, and what each is for.
    fn agents(&self) -> Vec<(String, String)>;

    /// Starts a task on a thread of this id, which is made; the run's id.
    async fn start(&self, agent: &str, thread: &str, task: &str) -> Result<String, RemoteError>;

    /// The newest run of a thread, if there is one: for whoever does not know whether it started one.
    async fn newest(&self, agent: &str, thread: &str) -> Result<Option<String>, RemoteError>;

    /// How a run stands.
    async fn check(&self, agent: &str, thread: &str, run: &str) -> Result<RemoteStanding, RemoteError>;

    /// Says something more; what is running is interrupted. The new run's id.
    async fn update(&self, agent: &str, thread: &str, message: &str) -> Result<String, RemoteError>;

    async fn cancel(&self, agent: &str, thread: &str, run: &str) -> Result<(), RemoteError>;
}

/// Why another server could not be asked; read by the model.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RemoteError(pub String);

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStanding {
    pub status: RemoteStatus,
    /// The last it said, or what went wrong.
    pub said: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteStatus {
    Running,
    Success,
    Error,
    Cancelled,
    Timeout,
    /// It waits for somebody over there.
    Interrupted,
}

impl RemoteStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The state key `async_tasks`, by the task's id; DeepAgents' shape.
#[derive(Debug)]
pub struct AsyncTasks;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AsyncTask {
    /// Its thread's id.
    pub task_id: String,
    pub agent_name: String,
    pub thread_id: String,
    pub run_id: String,
    pub status: RemoteStatus,
    pub created_at: Timestamp,
    pub last_checked_at: Timestamp,
    pub last_updated_at: Timestamp,
}

impl StateKey for AsyncTasks {
    type Value = BTreeMap<String, AsyncTask>;
    type Update = AsyncTask;
    const NAME: &'static str = "async_tasks";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(current: Option<Self::Value>, task: AsyncTask) -> Result<Self::Value, ReduceError> {
        let mut all = current.unwrap_or_default();
        all.insert(task.task_id.clone(), task);
        Ok(all)
    }
}
