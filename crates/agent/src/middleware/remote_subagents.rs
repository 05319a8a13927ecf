//! Lets the agent work with agents on other servers, which go on by themselves while it does something else.
//!
//! Invariant: a task that was started is in the state, so it is found again after any restart of either side.

mod tools;

use std::fmt;
use std::sync::Arc;

use hart_kernel::{Middleware, Schema, StateError, Tool, async_trait};

use crate::remote::{AsyncTasks, RemoteAgents};
use tools::{Asynchronous, Verb};

/// Brings `start_async_task`, `check_async_task`, `update_async_task`, `cancel_async_task` and `list_async_tasks`; the
/// tasks are in the state key `async_tasks`. Names and shapes are DeepAgents'.
///
/// A task runs on the other server until it is done, also when this run has ended; a later run finds it in the list. What
/// comes back is sealed as foreign text.
#[derive(Clone)]
pub struct RemoteSubagents {
    remote: Arc<dyn RemoteAgents>,
}

impl RemoteSubagents {
    pub fn new(remote: Arc<dyn RemoteAgents>) -> Self {
        Self { remote }
    }
}

#[async_trait]
impl Middleware for RemoteSubagents {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<AsyncTasks>()?;
        Ok(())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let verbs = [Verb::Start, Verb::Check, Verb::Update, Verb::Cancel, Verb::List];
        let tool = |verb| Arc::new(Asynchronous::new(verb, Arc::clone(&self.remote))) as Arc<dyn Tool>;
        verbs.map(tool).to_vec()
    }
}

impl fmt::Debug for RemoteSubagents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSubagents").field("agents", &self.remote.agents()).finish()
    }
}
