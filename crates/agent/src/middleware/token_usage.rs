//! Adds up what a run's model calls took.
//!
//! Invariant: one write with each answer, and one at the end if anything is left to write; what a provider did not count
//! is not made up.

use std::collections::BTreeMap;

use hart_kernel::{
    HookError, HookResult, Middleware, ModelNext, ModelRequest, ModelResponse, ReduceError, RunContext,
    Schema, Scope, SideCall, State, StateError, StateKey, Update, async_trait,
};
use hart_types::{RunId, UsageMetadata};
use serde::{Deserialize, Serialize};

/// Keeps the totals of the current run in the state key `token_usage`: calls, input, output, cached and reasoning
/// tokens, the cost where the model has a price, and the same by model and by who asked: the agent itself, or a
/// middleware that asked a model on its own (`title`, `summarization`; see [`hart_kernel::side_call`]). A new run starts
/// from nothing.
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
    /// By the agent's name, or the helper's.
    #[serde(default)]
    pub by_caller: BTreeMap<String, UsageCounts>,
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
            .unwrap_or_else(|| UsageTotals { run_id: call.run_id.clone(), ..UsageTotals::default() });
        all.add(&call);
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
        let (model, caller) = (request.model.clone(), request.chat.caller.clone());
        let mut response = next.run(request).await?;
        let mut took = UsageTotals::of_side_calls(cx);
        if let Some(usage) = response.message.as_ai().and_then(|ai| ai.usage.as_ref()) {
            let profile = model.profile();
            let mut counts = UsageCounts::of(usage);
            counts.cost = profile.price.map(|price| {
                price.of(counts.input_tokens, counts.cached_tokens, counts.output_tokens) as f64 / 1e6
            });
            took.count(&profile.name, &caller, &counts);
        }
        response.update.extend(took.into_update());
        Ok(response)
    }

    async fn after_agent(&self, cx: &RunContext, _state: &State) -> HookResult {
        // What was asked behind the last answer, such as a title.
        Ok(UsageTotals::of_side_calls(cx).into_update().into())
    }
}

impl UsageTotals {
    /// What middlewares have asked on their own since the last write.
    fn of_side_calls(cx: &RunContext) -> Self {
        let mut all = Self { run_id: Some(cx.run_id.clone()), ..Self::default() };
        for SideCall { caller, model, usage, cost } in cx.take_side_calls() {
            all.count(&model, &caller, &UsageCounts { cost, ..UsageCounts::of(&usage) });
        }
        all
    }

    fn count(&mut self, model: &str, caller: &str, counts: &UsageCounts) {
        self.total.add(counts);
        self.by_model.entry(model.to_owned()).or_default().add(counts);
        self.by_caller.entry(caller.to_owned()).or_default().add(counts);
    }

    fn add(&mut self, other: &Self) {
        self.total.add(&other.total);
        for (mine, others) in [(&mut self.by_model, &other.by_model), (&mut self.by_caller, &other.by_caller)]
        {
            for (name, counts) in others {
                mine.entry(name.clone()).or_default().add(counts);
            }
        }
    }

    fn into_update(self) -> Update {
        let nothing = self.total.model_calls == 0;
        if nothing { Update::none() } else { Update::none().set::<RunUsage>(self) }
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
