//! What one asks of a runtime.
//!
//! Invariant: whatever can be wrong with a request is found before a run exists.

use std::sync::Arc;

use hart_kernel::{Agent, Breakpoints, Checkpointer, Deck, InputIds, async_trait};
use hart_types::{AssistantId, CheckpointId, Durability, MultitaskStrategy, Secrets, ThreadId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::port::Assistant;
use crate::recording::Recordable;
use crate::{Run, Thread};

/// Makes the agents that runs are of. Implemented where agents are configured.
#[async_trait]
pub trait AgentFactory: Send + Sync + 'static {
    /// The agents there are.
    fn agents(&self) -> Vec<AgentInfo>;

    /// Whether one of them is called so.
    fn has(&self, name: &str) -> bool {
        self.agents().iter().any(|agent| agent.name == name)
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError>;

    /// What the run is recorded on, or played from; without one it is not recorded.
    fn deck(&self, _run: &Recordable<'_>) -> Option<Arc<dyn Deck>> {
        None
    }

    /// An agent that only reads and writes states; it is never run, so it needs no model.
    fn reader(&self, agent: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    /// What LangGraph calls the graph.
    pub name: String,
    pub description: Option<String>,
}

/// Which agent, for whom, with which choices.
#[derive(Clone)]
pub struct AgentRequest {
    pub agent: String,
    pub thread: ThreadId,
    pub user: UserId,
    /// `context` and `config.configurable` of the run over those of the assistant.
    pub options: Map<String, Value>,
    /// For skills that ask for them. A run that another process goes on with has none.
    pub secrets: Secrets,
    pub checkpointer: Arc<dyn Checkpointer>,
}

impl std::fmt::Debug for AgentRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRequest")
            .field("agent", &self.agent)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// Why there is no such agent.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct FactoryError {
    /// Its class, for clients.
    pub error: String,
    pub message: String,
}

/// A run to start. It is kept as JSON until the run has ended, so that any process can execute it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartRun {
    /// `None` runs on a thread of its own that goes with it.
    pub thread: Option<ThreadId>,
    pub assistant: AssistantId,
    /// The agent it is of.
    pub agent: String,
    pub user: UserId,
    pub input: Input,
    /// What the steps that take it in are called, from its admission on.
    pub input_ids: Option<InputIds>,
    /// The run's record has it.
    #[serde(skip)]
    pub metadata: Map<String, Value>,
    /// Laid under the thread's metadata, which is laid under the run's own.
    pub assistant_metadata: Map<String, Value>,
    /// What a thread that is made for it says about itself.
    pub thread_metadata: Map<String, Value>,
    pub options: Map<String, Value>,
    /// In this process alone; what is kept are their names.
    #[serde(skip_serializing_if = "Secrets::is_empty")]
    pub secrets: Secrets,
    pub recursion_limit: Option<u32>,
    pub multitask: MultitaskStrategy,
    /// Makes the thread if there is none.
    pub create_thread: bool,
    pub after_seconds: f64,
    pub checkpoint: Option<CheckpointId>,
    pub breakpoints: Breakpoints,
    /// An answer where nothing is asked is no error, unless whoever gives it wants to know.
    pub late_answers: bool,
    pub durability: Durability,
    /// Keeps the thread of its own.
    pub keep_thread: bool,
    pub idempotency_key: Option<String>,
    /// Differs where another run is asked for, for whoever sends one key with two requests.
    pub fingerprint: Option<String>,
    /// The request's body, for clients that ask what a run was started with. The run's record has it.
    #[serde(skip)]
    pub kwargs: Map<String, Value>,
}

impl StartRun {
    pub fn new(agent: impl Into<String>, assistant: AssistantId, input: Input) -> Self {
        Self {
            thread: None,
            assistant,
            agent: agent.into(),
            user: "default".into(),
            input,
            input_ids: None,
            metadata: Map::new(),
            assistant_metadata: Map::new(),
            thread_metadata: Map::new(),
            options: Map::new(),
            secrets: Secrets::default(),
            recursion_limit: None,
            multitask: MultitaskStrategy::Enqueue,
            create_thread: false,
            after_seconds: 0.0,
            checkpoint: None,
            breakpoints: Breakpoints::default(),
            late_answers: true,
            durability: Durability::Sync,
            keep_thread: false,
            idempotency_key: None,
            fingerprint: None,
            kwargs: Map::new(),
        }
    }

    /// Whether its thread is made where there is none.
    pub fn makes_thread(&self) -> bool {
        self.thread.is_none() || self.create_thread
    }

    /// Whether the thread goes with the run.
    pub(crate) fn is_passing(&self) -> bool {
        self.thread.is_none() && !self.keep_thread
    }

    /// The thread that is made for its run.
    pub fn new_thread(&self, run: &Run) -> Thread {
        let mut thread = Thread::new(run.thread.clone(), run.user.clone(), run.created_at);
        thread.temporary = self.is_passing();
        thread.metadata.clone_from(&self.thread_metadata);
        thread.metadata.extend(run.about());
        thread
    }

    /// With all that the assistant says about its runs; what the run says itself is laid over it.
    pub fn of(assistant: &Assistant, input: Input) -> Self {
        let configured = assistant.config.get("configurable").and_then(Value::as_object);
        let mut start = Self::new(assistant.graph.as_str(), assistant.id.clone(), input);
        start.options = configured.into_iter().chain([&assistant.context]).flatten().map(owned).collect();
        start.recursion_limit = recursion_limit(&assistant.config);
        start.assistant_metadata = assistant.metadata.clone();
        start
    }
}

impl StartRun {
    /// Takes secrets out of all that is kept, so that none is, however the request was made.
    pub(crate) fn withhold_secrets(&mut self) {
        let Self { options, kwargs, secrets, .. } = self;
        let mut take = |from: Option<&mut Value>| {
            let Some(Value::Object(from)) = from else { return };
            match Secrets::taken_from(from) {
                Ok(taken) => secrets.add(taken),
                Err(error) => tracing::warn!("the secrets of a run are left out: {error}"),
            }
        };
        let mut all = Value::Object(std::mem::take(options));
        take(Some(&mut all));
        if let Value::Object(rest) = all {
            *options = rest;
        }
        take(kwargs.get_mut("context"));
        for inside in ["configurable", "context"] {
            take(kwargs.get_mut("config").and_then(|config| config.get_mut(inside)));
        }
    }
}

/// `recursion_limit` of LangGraph's `config`.
pub fn recursion_limit(config: &Map<String, Value>) -> Option<u32> {
    let given = config.get("recursion_limit").and_then(Value::as_u64)?;
    Some(u32::try_from(given).unwrap_or(u32::MAX))
}

fn owned((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

impl Default for StartRun {
    fn default() -> Self {
        Self::new("", "".into(), Input::Continue)
    }
}

/// What a run begins with, still as JSON: only the agent knows what its state takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Nothing: goes on where the thread stands.
    Continue,
    Values(Map<String, Value>),
    /// Values that nobody said: they are written, and the run goes on where the thread stands.
    Write(Map<String, Value>),
    /// Values behind which nothing is left to do: what was asked is not asked any more.
    End(Map<String, Value>),
    /// An answer, and perhaps values to write with it.
    Resume {
        answer: Value,
        update: Map<String, Value>,
    },
}
