//! Tells clients where a thread's files are.
//!
//! Invariant: the paths are those of the sandbox, never the machine's.

use hart_kernel::{
    Command, HookResult, Middleware, ReduceError, RunContext, Schema, Scope, State, StateError, StateKey,
    Update, async_trait,
};
use hart_sandbox::{OUTPUTS, UPLOADS, WORKSPACE};
use serde::{Deserialize, Serialize};

/// Fills the state key `thread_data` with the virtual paths of the workspace, the uploads and the outputs, once per
/// thread. Nothing is created: a sandbox makes its folders when a tool first needs them.
#[derive(Clone, Copy, Debug)]
pub struct ThreadData;

/// The value of `thread_data`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPaths {
    pub workspace_path: String,
    pub uploads_path: String,
    pub outputs_path: String,
}

impl ThreadPaths {
    fn of_sandbox() -> Self {
        Self {
            workspace_path: WORKSPACE.to_owned(),
            uploads_path: UPLOADS.to_owned(),
            outputs_path: OUTPUTS.to_owned(),
        }
    }
}

impl StateKey for ThreadData {
    type Value = ThreadPaths;
    type Update = ThreadPaths;
    const NAME: &'static str = "thread_data";
    const SCOPE: Scope = Scope::Shared;

    fn reduce(_: Option<ThreadPaths>, update: ThreadPaths) -> Result<ThreadPaths, ReduceError> {
        Ok(update)
    }
}

#[async_trait]
impl Middleware for ThreadData {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Self>()?;
        Ok(())
    }

    async fn before_agent(&self, _cx: &RunContext, state: &State) -> HookResult {
        let paths = ThreadPaths::of_sandbox();
        if state.get::<Self>() == Some(&paths) {
            return Ok(Command::none());
        }
        Ok(Update::none().set::<Self>(paths).into())
    }
}
