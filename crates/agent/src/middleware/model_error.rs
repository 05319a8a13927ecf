//! What a thread is left with when its model finally failed.
//!
//! Asking again, resting and falling back are done by the model itself (ADR 0008), so an error that arrives here is
//! final. The run then fails: a client must be able to tell a failure from an answer by the run's status, and DeerFlow
//! reports such runs as failed too. What the client's *user* reads is the question. DeerFlow puts an AI message with
//! the reason into the thread; that suits clients that show messages only, but the next model call reads it as
//! something the agent said. It is therefore a setting, off by default; either way what had been said when the answer
//! broke off is kept, without the calls it was about to make, so the thread can go on with the next message.
//!
//! Invariant: a question, a cancellation and a full context pass unchanged; others have an answer for those.

use hart_kernel::{
    HookError, Middleware, ModelErrorKind, ModelNext, ModelRequest, ModelResponse, RunContext, async_trait,
};
use hart_types::Message;
use serde::Deserialize;

use crate::answer::append_text;

/// Decides what a thread shows of a model that failed for good.
///
/// By default the run ends with the reason, and the beginning of a broken answer stays in the thread, marked with
/// `response_metadata.incomplete`. With `fallback_message` the thread also gets the reason in words, in an AI message
/// with `additional_kwargs.deerflow_error_fallback = true`; the run still ends as failed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelError {
    config: ModelErrorConfig,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelErrorConfig {
    pub fallback_message: bool,
}

impl ModelError {
    pub fn new(config: ModelErrorConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for ModelError {
    async fn wrap_model_call(
        &self,
        _cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        match next.run(request).await {
            Err(HookError::Model(error)) if self.config.fallback_message && is_final(error.kind) => {
                Err(HookError::Model(with_message(error)))
            }
            other => other,
        }
    }
}

fn is_final(kind: ModelErrorKind) -> bool {
    !matches!(kind, ModelErrorKind::Cancelled | ModelErrorKind::ContextOverflow { .. })
}

/// The loop keeps what a failed answer had said; here it says why it failed as well.
fn with_message(mut error: hart_kernel::ModelError) -> hart_kernel::ModelError {
    let mut message = error.take_partial().unwrap_or_else(|| Message::ai(""));
    append_text(&mut message, &format!("The model could not answer: {error}"));
    message.additional_kwargs.insert("deerflow_error_fallback".to_owned(), true.into());
    message.additional_kwargs.insert("error_type".to_owned(), error.kind.code().into());
    error.partial(Some(message))
}
