//! Adds up what a run's model calls took.
//!
//! Invariant: one write with each answer, none in between; what a provider did not count is not made up.

use std::collections::BTreeMap;

use hart_kernel::{
    HookError, Middleware, ModelNext, ModelRequest, ModelResponse, ReduceError, RunContext, Schema, Scope,
    StateError, StateKey, Update, async_trait,
};
use hart_types::{RunId, UsageMetadata};
use serde::{Deserialize, Serialize};

/// Keeps the totals of the current run in the state key `token_usage`: calls, input, output, cached and reasoning
/// tokens, the cost where the model has a price, and the same by model. A new run starts from nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenUsage;

/// The state key `token_usage`.
#[derive(Debug)]
pub struct RunUsage;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageTotals {
    pub run_id: Option<RunId>,
    #[serde(flatten)]
    pub total: UsageCounts,
    /// By the configured name.
    #[serde(default)]
    pub by_model: BTreeMap<String, UsageCounts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageCounts {
    pub model_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub total_tokens: u64,
    pub cached_tokens: u64,
    pub reasoning_tokens: u64,
    /// Where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl StateKey for RunUsage {
    type Value = UsageTotals;
    /// One call's.
    type Update = UsageTotals;
    const NAME: &'static str = "token_usage";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(current: Option<UsageTotals>, call: UsageTotals) -> Result<UsageTotals, ReduceError> {
        let mut all = current
            .filter(|all| all.run_id == call.run_id)
            .unwrap_or_else(|| UsageTotals { run_id: call.run_id, ..UsageTotals::default() });
        all.total.add(&call.total);
        for (model, counts) in &call.by_model {
            all.by_model.entry(model.clone()).or_default().add(counts);
        }
        Ok(all)
    }
}

#[async_trait]
impl Middleware for TokenUsage {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<RunUsage>()?;
        Ok(())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let model = request.model.clone();
        let mut response = next.run(request).await?;
        if let Some(usage) = response.message.as_ai().and_then(|ai| ai.usage.as_ref()) {
            let profile = model.profile();
            let mut total = UsageCounts::of(usage);
            total.cost = profile.price.map(|price| {
                price.of(total.input_tokens, total.cached_tokens, total.output_tokens) as f64 / 1e6
            });
            let by_model = BTreeMap::from([(profile.name.clone(), total.clone())]);
            let call = UsageTotals { run_id: Some(cx.run_id.clone()), total, by_model };
            response.update.extend(Update::none().set::<RunUsage>(call));
        }
        Ok(response)
    }
}

impl UsageCounts {
    fn of(usage: &UsageMetadata) -> Self {
        let cached = usage.input_token_details.as_ref().and_then(|details| details.cache_read);
        let reasoning = usage.output_token_details.as_ref().and_then(|details| details.reasoning);
        Self {
            model_calls: 1,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            cached_tokens: cached.unwrap_or_default(),
            reasoning_tokens: reasoning.unwrap_or_default(),
            cost: None,
        }
    }

    fn add(&mut self, other: &Self) {
        self.model_calls += other.model_calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.total_tokens += other.total_tokens;
        self.cached_tokens += other.cached_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
    }
}
