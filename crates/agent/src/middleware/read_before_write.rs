//! Refuses to overwrite a file that the model has not seen as it is now.
//!
//! Invariant: a file that exists is overwritten only by someone who read or wrote exactly what is in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hart_kernel::{
    Command, HookError, Middleware, RunContext, Schema, State, StateError, ToolNext, ToolOutcome,
    ToolRequest, Update, async_trait,
};
use hart_sandbox::{Sandbox, SandboxProvider, VPath};
use hart_tools::{FileAccess, ReadMarks, changed_since, file_access, never_read};
use hart_types::{Message, ToolStatus};

#[derive(Debug)]
pub struct ReadBeforeWrite {
    sandboxes: Arc<dyn SandboxProvider>,
}

impl ReadBeforeWrite {
    pub fn new(sandboxes: Arc<dyn SandboxProvider>) -> Self {
        Self { sandboxes }
    }

    /// Where the call leads, if it leads anywhere; otherwise the tool itself says what is wrong.
    async fn place(&self, cx: &RunContext, text: &str) -> Option<(Arc<dyn Sandbox>, VPath)> {
        let sandbox = self.sandboxes.acquire(&cx.thread_id, &cx.user_id).await.ok()?;
        let path = sandbox.path(text).ok()?;
        Some((sandbox, path))
    }
}

#[async_trait]
impl Middleware for ReadBeforeWrite {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ReadMarks>()?;
        Ok(())
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let Some((access, text)) = file_access(&call.name, &call.args) else {
            return next.run(request).await;
        };
        let Some((sandbox, path)) = self.place(cx, text).await else { return next.run(request).await };
        let seen = cx.scratch.get_or_default::<Seen>();
        // One after the other for each file: the calls of one answer run side by side, and each changes the mark.
        let lock = seen.lock_of(&path);
        let _held = lock.lock().await;
        let known = seen.mark(&path, &request.state);
        let now = sandbox.mark(&path).await.ok();
        if access == FileAccess::Overwrites
            && let Some(now) = &now
            && known.as_ref() != Some(now)
            && !is_empty(sandbox.as_ref(), &path).await
        {
            let why = if known.is_some() { changed_since(&path) } else { never_read(&path) };
            let id = call.id.clone().unwrap_or_else(|| "".into());
            let message = Message::tool(&id, &call.name, ToolStatus::Error, format!("Error: {why}"));
            return Ok(ToolOutcome { message, command: Command::none() });
        }
        let mut outcome = next.run(request).await?;
        let succeeded =
            outcome.message.as_tool_result().is_some_and(|result| result.status == ToolStatus::Success);
        if !succeeded {
            return Ok(outcome);
        }
        let after = sandbox.mark(&path).await.ok();
        let knows_all = match access {
            // If it changed while it was read, nobody knows which of the two was shown.
            FileAccess::Reads => after == now,
            FileAccess::Overwrites => true,
            FileAccess::Extends => now.is_none() || known == now,
        };
        if let (true, Some(mark)) = (knows_all, after) {
            seen.set(&path, &mark);
            let marks = BTreeMap::from([(path.as_str().to_owned(), mark)]);
            outcome.command.update.extend(Update::none().set::<ReadMarks>(marks));
        }
        Ok(outcome)
    }
}

/// There is nothing to lose.
async fn is_empty(sandbox: &dyn Sandbox, path: &VPath) -> bool {
    sandbox.stat(path).await.is_ok_and(|stat| stat.size == 0)
}

/// What this run has seen; ahead of the state, which learns of it after the batch.
#[derive(Default)]
struct Seen {
    marks: Mutex<HashMap<String, String>>,
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Seen {
    fn mark(&self, path: &VPath, state: &State) -> Option<String> {
        let live = held(&self.marks).get(path.as_str()).cloned();
        live.or_else(|| state.get::<ReadMarks>()?.get(path.as_str()).cloned())
    }

    fn set(&self, path: &VPath, mark: &str) {
        held(&self.marks).insert(path.as_str().to_owned(), mark.to_owned());
    }

    fn lock_of(&self, path: &VPath) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(held(&self.locks).entry(path.as_str().to_owned()).or_default())
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
