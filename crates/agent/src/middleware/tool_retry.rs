//! Calls a tool again when its failure says that it may pass.
//!
//! Invariant: only failures marked as passing are repeated; a call whose effect is unknown is not.

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{
    HookError, Middleware, ModelError, RunContext, TRANSIENT, ToolNext, ToolOutcome, ToolRequest, async_trait,
};
use serde::Deserialize;

/// Repeats calls that failed with `ToolError::Transient`, or around which a service was briefly away, with growing
/// pauses. Off unless asked for. What still fails after `max_retries` is the model's to read.
#[derive(Clone, Debug, Default)]
pub struct ToolRetry {
    config: ToolRetryConfig,
}

/// Names and numbers are LangChain's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolRetryConfig {
    /// The tools it is for; all where there are none.
    pub tools: Vec<String>,
    pub max_retries: u32,
    pub backoff_factor: f64,
    /// Seconds.
    pub initial_delay: f64,
    pub max_delay: f64,
    /// Up to a quarter more or less, so that many do not come back at once.
    pub jitter: bool,
}

impl Default for ToolRetryConfig {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            max_retries: 2,
            backoff_factor: 2.0,
            initial_delay: 1.0,
            max_delay: 60.0,
            jitter: true,
        }
    }
}

impl ToolRetry {
    pub fn new(config: ToolRetryConfig) -> Self {
        Self { config }
    }

    fn is_for(&self, tool: &str) -> bool {
        self.config.tools.is_empty() || self.config.tools.iter().any(|name| name == tool)
    }

    /// How long to wait before the repetition that follows `done` others. `seed` decides the jitter.
    fn delay(&self, done: u32, seed: u64) -> Duration {
        let ToolRetryConfig { backoff_factor, initial_delay, max_delay, jitter, .. } = self.config;
        let exponent = i32::try_from(done).unwrap_or(i32::MAX);
        let plain = (initial_delay * backoff_factor.powi(exponent)).min(max_delay);
        let part = (seed % 1000) as f64 / 1000.0;
        let factor = if jitter { 0.75 + part / 2.0 } else { 1.0 };
        Duration::try_from_secs_f64(plain * factor).unwrap_or_default()
    }
}

#[async_trait]
impl Middleware for ToolRetry {
    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let call = Arc::clone(&request.call);
        if !self.is_for(&call.name) {
            return next.run(request).await;
        }
        let mut done = 0;
        loop {
            let result = next.run(request.clone()).await;
            if done >= self.config.max_retries || !may_pass(&result) {
                return result;
            }
            let wait = self.delay(done, jitter_seed(cx, done));
            tracing::info!(tool = %call.name, ?wait, "a call failed and is tried again");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = cx.cancel.cancelled() => return Err(ModelError::cancelled().into()),
            }
            done += 1;
        }
    }
}

fn may_pass(result: &Result<ToolOutcome, HookError>) -> bool {
    match result {
        Ok(outcome) => outcome.message.additional_kwargs.contains_key(TRANSIENT),
        Err(HookError::Model(error)) => error.kind.is_transient(),
        Err(_) => false,
    }
}

/// Different in every run, without asking anyone for chance.
fn jitter_seed(cx: &RunContext, done: u32) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (cx.run_id.as_str(), done).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit() {
        let retry =
            |jitter| ToolRetry::new(ToolRetryConfig { jitter, max_delay: 5.0, ..ToolRetryConfig::default() });
        let seconds: Vec<f64> = (0..4).map(|done| retry(false).delay(done, 0).as_secs_f64()).collect();
        assert_eq!(seconds, [1.0, 2.0, 4.0, 5.0]);
        assert_eq!(retry(true).delay(0, 0).as_secs_f64(), 0.75);
        assert_eq!(retry(true).delay(0, 500).as_secs_f64(), 1.0);
    }
}
