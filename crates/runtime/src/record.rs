//! What is remembered of threads and runs, one type per row.
//!
//! Invariant: a record is plain data. What it may do next is decided by `Runtime`, what it looks like by the gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use hart_kernel::Timestamp;
use hart_types::{
    AssistantId, CheckpointId, MultitaskStrategy, PruneStrategy, RunId, RunStatus, ThreadId, ThreadStatus,
    UsageMetadata, UserId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A conversation. What was said is in its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub id: ThreadId,
    pub user: UserId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub state_updated_at: Timestamp,
    pub metadata: Map<String, Value>,
    pub config: Map<String, Value>,
    pub status: ThreadStatus,
    /// Why the last run failed.
    pub error: Option<Failure>,
    /// The newest step.
    pub head: Option<CheckpointId>,
    /// It goes with its only run.
    pub temporary: bool,
    /// It goes when nobody has used it for so long.
    pub lifetime: Option<Lifetime>,
}

/// How long a thread stays that nobody uses, and what is left of it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub unused: Duration,
    pub remains: PruneStrategy,
}

impl Thread {
    pub fn new(id: ThreadId, user: UserId, now: Timestamp) -> Self {
        Self {
            id,
            user,
            created_at: now,
            updated_at: now,
            state_updated_at: now,
            metadata: Map::new(),
            config: Map::new(),
            status: ThreadStatus::Idle,
            error: None,
            head: None,
            temporary: false,
            lifetime: None,
        }
    }
}

/// One execution of an agent on a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub thread: ThreadId,
    pub assistant: AssistantId,
    pub user: UserId,
    pub status: RunStatus,
    pub metadata: Map<String, Value>,
    /// All it was asked with, as a client sees it.
    pub kwargs: Map<String, Value>,
    pub multitask: MultitaskStrategy,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Not before this.
    pub start_at: Timestamp,
    pub error: Option<Failure>,
    pub totals: Totals,
    /// The step it started from, to come back to.
    pub base: Option<CheckpointId>,
    /// A second request with the same key is the same run: on its thread, or among those without one.
    pub idempotency_key: Option<String>,
    /// What the request asked for, so that a key is not taken for another one's.
    pub fingerprint: Option<String>,
}

impl Run {
    /// Whose run it is, as its thread's metadata says it of the last one.
    pub fn about(&self) -> Map<String, Value> {
        let kept = |key: &str| self.metadata.get(key).map(|value| (key.to_owned(), value.clone()));
        ["graph_id", "assistant_id"].into_iter().filter_map(kept).collect()
    }

    /// What its caller marks it with.
    pub(crate) fn tags(&self) -> &[Value] {
        self.configured("tags").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What its caller calls it, or else its agent.
    pub(crate) fn name(&self) -> &str {
        let named = self.configured("run_name").or_else(|| self.metadata.get("graph_id"));
        named.and_then(Value::as_str).unwrap_or("agent")
    }

    fn configured(&self, key: &str) -> Option<&Value> {
        self.kwargs.get("config")?.get(key).filter(|value| !value.is_null())
    }
}

/// Why something failed, as clients are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its class, such as `GraphRecursionError`.
    pub error: String,
    pub message: String,
}

/// What a run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub usage: UsageMetadata,
    pub model_calls: u64,
    pub tool_calls: u64,
    /// In the currency of the models' prices, as far as those are known; none where no price is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The same by the models' configured names, of calls that were counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_model: BTreeMap<String, ModelTotals>,
}

/// What calls of one model used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelTotals {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Totals {
    pub fn add(&mut self, other: &Self) {
        self.usage.add(&other.usage);
        self.model_calls += other.model_calls;
        self.tool_calls += other.tool_calls;
        self.spend(other.cost);
        for (model, used) in &other.by_model {
            self.by_model.entry(model.clone()).or_default().add(used);
        }
    }

    /// A call whose provider counted.
    pub(crate) fn count(&mut self, model: Option<&str>, usage: &UsageMetadata, cost: Option<f64>) {
        self.usage.add(usage);
        self.spend(cost);
        if let Some(model) = model {
            let one = ModelTotals {
                calls: 1,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                total_tokens: usage.total_tokens,
                cost,
            };
            self.by_model.entry(model.to_owned()).or_default().add(&one);
        }
    }

    fn spend(&mut self, cost: Option<f64>) {
        self.cost = sum(self.cost, cost);
    }
}

impl ModelTotals {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.total_tokens += other.total_tokens;
        self.cost = sum(self.cost, other.cost);
    }
}

/// None only where nothing is known.
fn sum(all: Option<f64>, one: Option<f64>) -> Option<f64> {
    match (all, one) {
        (Some(all), Some(one)) => Some(all + one),
        (all, one) => all.or(one),
    }
}
