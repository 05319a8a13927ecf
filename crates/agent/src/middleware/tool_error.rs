//! Turns what goes wrong around a tool into a result the model can act on.
//!
//! Invariant: a question and a cancellation pass through; nothing else that a tool does ends the run, unless strict.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use hart_kernel::{
    Command, HookError, Middleware, ModelErrorKind, RunContext, ToolNext, ToolOutcome, ToolRequest,
    async_trait, panic_text,
};
use hart_types::{Message, ToolCall, ToolStatus};
use serde::Deserialize;

use crate::tool_meta::{Source, stamp};

/// Answers a call that failed with an error message instead of ending the run: at most 500 characters of what
/// happened, and a hint at what to try. This goes for fatal errors and panics of the tool and of every wrapper further
/// in. Error results, these and those that tools return themselves, carry
/// `additional_kwargs.deerflow_tool_meta {status, error_type, recoverable_by_model, recommended_next_action, source}`;
/// successes carry nothing.
///
/// With `strict` an error that a tool declares fatal ends the run, as do panics of wrappers.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolError {
    config: ToolErrorConfig,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolErrorConfig {
    pub strict: bool,
}

impl ToolError {
    pub fn new(config: ToolErrorConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for ToolError {
    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        let error = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(Ok(mut outcome)) => {
                let failed = |result: &hart_types::ToolResult| result.status == ToolStatus::Error;
                if outcome.message.as_tool_result().is_some_and(failed) {
                    let text = outcome.message.text();
                    stamp(&mut outcome.message, &text, Source::ToolReturn);
                }
                return Ok(outcome);
            }
            Ok(Err(error)) => error,
            Err(panic) => HookError::Panic(panic_text(panic.as_ref())),
        };
        if self.config.strict || passes(&error) {
            return Err(error);
        }
        tracing::error!(thread = %cx.thread_id, tool = %call.name, error = %full(&error), "a tool call failed");
        Ok(answered(&call, &error))
    }
}

/// What is no failure of the tool.
fn passes(error: &HookError) -> bool {
    match error {
        HookError::Interrupt(_) | HookError::Interrupts(_) => true,
        HookError::Model(error) => error.kind == ModelErrorKind::Cancelled,
        _ => false,
    }
}

fn answered(call: &ToolCall, error: &HookError) -> ToolOutcome {
    const SHOWN: usize = 500;
    let detail = full(error);
    let shown: String = detail.chars().take(SHOWN).collect();
    let cut = if shown.len() < detail.len() { " …" } else { "" };
    let text = format!(
        "Error: `{}` failed: {shown}{cut}\nGo on with what you have, or try another way; the same call will probably fail \
         again.",
        call.name
    );
    let id = call.id.clone().unwrap_or_else(|| "".into());
    let mut message = Message::tool(&id, &call.name, ToolStatus::Error, text);
    stamp(&mut message, &detail, Source::Exception);
    ToolOutcome { message, command: Command::none() }
}

/// The error and what it came from.
fn full(error: &HookError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
