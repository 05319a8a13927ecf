//! Who decides whether a tool call may run: the provider port, and the provider that is built in.
//!
//! Invariant: a provider sees the call and who makes it, and answers yes or no with a code and a reason; it cannot
//! change anything.

use hart_kernel::{RunContext, async_trait};
use hart_types::ToolCall;
use serde::Deserialize;

/// Decides before a call runs.
#[async_trait]
pub trait GuardrailProvider: Send + Sync {
    /// Its name, for the log.
    fn name(&self) -> &str;

    /// An error is not a yes: see [`GuardrailConfig::fail_closed`].
    async fn evaluate(
        &self,
        call: &ToolCall,
        cx: &RunContext,
    ) -> Result<GuardrailDecision, Box<dyn std::error::Error + Send + Sync>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardrailDecision {
    Allow,
    /// The model reads both.
    Deny {
        code: String,
        reason: String,
    },
}

impl GuardrailDecision {
    /// The code of a denial that has none of its own.
    pub const DENIED: &str = "oap.denied";
    /// A tool that is not on a list.
    pub const TOOL_NOT_ALLOWED: &str = "oap.tool_not_allowed";
    /// The provider failed.
    pub const EVALUATOR_ERROR: &str = "oap.evaluator_error";

    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { code: Self::DENIED.to_owned(), reason: reason.into() }
    }
}

/// How a guardrail behaves when its provider does not.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardrailConfig {
    /// Whether a provider that fails, panics or does not answer means no.
    pub fail_closed: bool,
    /// How long it may think.
    pub timeout_seconds: u64,
}

impl Default for GuardrailConfig {
    fn default() -> Self {
        Self { fail_closed: true, timeout_seconds: 30 }
    }
}

/// Allows and denies tools by name. A tool on both lists is denied; without a list of allowed ones all others may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllowlistProvider {
    pub allowed_tools: Option<Vec<String>>,
    pub denied_tools: Vec<String>,
}

#[async_trait]
impl GuardrailProvider for AllowlistProvider {
    fn name(&self) -> &str {
        "allowlist"
    }

    async fn evaluate(
        &self,
        call: &ToolCall,
        cx: &RunContext,
    ) -> Result<GuardrailDecision, Box<dyn std::error::Error + Send + Sync>> {
        // A list may use any name a tool goes by.
        let called = cx.tool_name(&call.name);
        let lists = |names: &[String]| names.iter().any(|name| cx.tool_name(name) == called);
        let refuse = |reason: String| GuardrailDecision::Deny {
            code: GuardrailDecision::TOOL_NOT_ALLOWED.to_owned(),
            reason,
        };
        Ok(match &self.allowed_tools {
            _ if lists(&self.denied_tools) => refuse(format!("the tool `{called}` is denied here")),
            Some(allowed) if !lists(allowed) => {
                refuse(format!("the tool `{called}` is not among those allowed: {}", allowed.join(", ")))
            }
            _ => GuardrailDecision::Allow,
        })
    }
}
