//! Lets the model ask the user and wait.
//!
//! Invariant: a question ends the run; the user's next message answers it.

use std::sync::Arc;

use hart_kernel::{
    Command, HookError, Middleware, RunContext, Tool, ToolNext, ToolOutcome, ToolRequest, async_trait,
};
use hart_types::{Message, ToolStatus};

const TOOL: &str = "ask_clarification";

/// What becomes of a question.
///
/// - [`Clarification::Ask`]: the run ends with it. The result's id is `clarification:{call id}` and its artifact holds
///   the form (`human_input`); the answer is the user's next message, see [`hart_tools::HumanInputResponse`].
/// - [`Clarification::BestJudgement`]: the model is told at once to decide for itself (DeerFlow's
///   `disable_clarification`).
/// - [`Clarification::NotOffered`]: there is no such tool (DeerFlow's `non_interactive`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clarification {
    #[default]
    Ask,
    BestJudgement,
    NotOffered,
}

#[async_trait]
impl Middleware for Clarification {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        match self {
            Self::Ask | Self::BestJudgement => vec![hart_tools::ask_clarification()],
            Self::NotOffered => Vec::new(),
        }
    }

    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        if call.name == TOOL && *self == Self::BestJudgement {
            let id = call.id.clone().unwrap_or_else(|| "".into());
            let text = "Nobody can be asked in this run. Proceed with your best judgement, and say in your answer what \
                you assumed.";
            let message = Message::tool(&id, TOOL, ToolStatus::Success, text);
            return Ok(ToolOutcome { message, command: Command::none() });
        }
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
