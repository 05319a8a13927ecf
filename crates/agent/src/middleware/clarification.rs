//! Lets the model ask the user and wait.
//!
//! Invariant: a question ends the run; the user's next message answers it.

use std::sync::Arc;

use hart_kernel::{HookError, Middleware, RunContext, Tool, ToolNext, ToolOutcome, ToolRequest, async_trait};

const TOOL: &str = "ask_clarification";

#[derive(Clone, Copy, Debug)]
pub struct Clarification;

#[async_trait]
impl Middleware for Clarification {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![hart_tools::ask_clarification()]
    }

    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let mut outcome = next.run(request).await?;
        if call.name == TOOL
            && let Some(id) = &call.id
        {
            // Clients find the question, and its form, by this id.
            outcome.message.id = Some(format!("clarification:{id}").into());
        }
        Ok(outcome)
    }
}
