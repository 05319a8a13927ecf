//! Lets a provider decide about every tool call before it runs.
//!
//! Invariant: with `fail_closed`, a call runs only after its provider said yes; silence, an error and a panic are a no.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hart_kernel::{
    Command, HookError, Middleware, RunContext, ToolNext, ToolOutcome, ToolRequest, async_trait,
};
use hart_types::{Message, ToolCall, ToolStatus};

use crate::guardrails::{AllowlistProvider, GuardrailConfig, GuardrailDecision, GuardrailProvider};

/// Asks a [`GuardrailProvider`] about each call. A call that is denied does not run; the model reads an error that
/// begins with `Guardrail denied:` and holds the code and the reason, and goes on.
///
/// The provider is a parameter; the one that is built in, [`AllowlistProvider`], has lists of tools. What happens when
/// a provider fails, panics or does not answer in time is [`GuardrailConfig::fail_closed`]: by default the call is
/// denied with the code `oap.evaluator_error`.
#[derive(Clone)]
pub struct Guardrail {
    provider: Arc<dyn GuardrailProvider>,
    config: GuardrailConfig,
}

impl Guardrail {
    pub fn new(provider: impl GuardrailProvider + 'static) -> Self {
        Self { provider: Arc::new(provider), config: GuardrailConfig::default() }
    }

    #[must_use]
    pub fn config(mut self, config: GuardrailConfig) -> Self {
        self.config = config;
        self
    }

    async fn decide(&self, cx: &RunContext, call: &ToolCall) -> GuardrailDecision {
        let limit = Duration::from_secs(self.config.timeout_seconds.max(1));
        let evaluation = AssertUnwindSafe(self.provider.evaluate(call, cx)).catch_unwind();
        let failure = match tokio::time::timeout(limit, evaluation).await {
            Ok(Ok(Ok(decision))) => return decision,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) => "it crashed".to_owned(),
            Err(_) => format!("it did not answer within {} s", limit.as_secs()),
        };
        let (provider, closed) = (self.provider.name(), self.config.fail_closed);
        tracing::error!(provider, tool = %call.name, error = %failure, denied = closed, "the guardrail's provider failed");
        if !closed {
            return GuardrailDecision::Allow;
        }
        // What went wrong inside the provider is the operator's business, not the model's.
        let reason = "the policy could not be evaluated, so the call is denied; tell the user".to_owned();
        GuardrailDecision::Deny { code: GuardrailDecision::EVALUATOR_ERROR.to_owned(), reason }
    }
}

impl Default for Guardrail {
    fn default() -> Self {
        Self::new(AllowlistProvider::default())
    }
}

impl fmt::Debug for Guardrail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guardrail")
            .field("provider", &self.provider.name())
            .field("config", &self.config)
            .finish()
    }
}

#[async_trait]
impl Middleware for Guardrail {
    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        match self.decide(cx, &request.call).await {
            GuardrailDecision::Allow => next.run(request).await,
            GuardrailDecision::Deny { code, reason } => {
                tracing::warn!(tool = %request.call.name, %code, %reason, "a guardrail denied a call");
                Ok(denied(&request.call, &code, &reason))
            }
        }
    }
}

fn denied(call: &ToolCall, code: &str, reason: &str) -> ToolOutcome {
    let text = format!(
        "Guardrail denied: {reason} ({code}). Nothing was run. Do not try it again; use another tool, or say what you \
         could not do."
    );
    let id = call.id.clone().unwrap_or_else(|| "".into());
    ToolOutcome { message: Message::tool(&id, &call.name, ToolStatus::Error, text), command: Command::none() }
}
