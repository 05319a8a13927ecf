//! The body of every request that starts a run.
//!
//! Invariant: whatever can be wrong with it is a 4xx before a run exists.

use axum::http::HeaderMap;
use hart_kernel::{Breakpoints, Nodes, StepSource};
use hart_runtime::port::{HistoryQuery, StepInfo};
use hart_runtime::{After, Input, Run, StartRun, recursion_limit};
use hart_types::{
    CheckpointId, Durability, IfNotExists, MultitaskStrategy, OnCompletion, OnDisconnect, Secrets,
    StreamMode, ThreadId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::owned;
use crate::parse::{checkpoint, one_or_many};
use crate::sse::Watch;
use crate::webhook;
use crate::words::{NodeNames, OneOrMany, Word};

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "RunCreate")]
pub(crate) struct RunRequest {
    assistant_id: String,
    input: Option<Value>,
    command: Option<Map<String, Value>>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    config: Map<String, Value>,
    #[serde(default)]
    context: Map<String, Value>,
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "Option<OneOrMany<StreamMode>>")]
    stream_mode: Option<Vec<StreamMode>>,
    #[serde(default)]
    stream_subgraphs: bool,
    #[schemars(with = "Option<Word<MultitaskStrategy>>")]
    multitask_strategy: Option<MultitaskStrategy>,
    #[schemars(with = "Option<Word<IfNotExists>>")]
    if_not_exists: Option<IfNotExists>,
    #[schemars(with = "Option<Word<OnDisconnect>>")]
    on_disconnect: Option<OnDisconnect>,
    #[schemars(with = "Option<Word<OnCompletion>>")]
    on_completion: Option<OnCompletion>,
    #[serde(default)]
    after_seconds: f64,
    checkpoint: Option<Map<String, Value>>,
    checkpoint_id: Option<String>,
    #[serde(default, deserialize_with = "nodes")]
    #[schemars(with = "Option<NodeNames>")]
    interrupt_before: Option<Nodes>,
    #[serde(default, deserialize_with = "nodes")]
    #[schemars(with = "Option<NodeNames>")]
    interrupt_after: Option<Nodes>,
    #[schemars(with = "Option<Word<Durability>>")]
    durability: Option<Durability>,
    checkpoint_during: Option<bool>,
    webhook: Option<String>,
    /// Streams can be taken up again whether this asks for it or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_resumable: Option<bool>,
    /// There is nobody here to give feedback to.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback_keys: Option<Vec<String>>,
    /// Whether to resume where nothing is asked is an error.
    strict_resume: Option<bool>,
}

/// In seconds.
const LONGEST_DELAY: f64 = 366.0 * 24.0 * 3600.0;

/// Starts the run that a request asks for.
pub(crate) async fn begin(
    gateway: &Gateway,
    thread: Option<ThreadId>,
    headers: &HeaderMap,
    request: RunRequest,
) -> ApiResult<Run> {
    let key = headers.get("idempotency-key").map(|key| match key.to_str() {
        Ok(key) if !key.trim().is_empty() => Ok(key.to_owned()),
        _ => {
            Err(ApiError::unprocessable("`Idempotency-Key` must be text of ASCII letters, digits and signs"))
        }
    });
    let key = key.transpose()?;
    Ok(gateway.runtime.start(request.start(gateway, thread, key).await?).await?)
}

/// How the one who starts it wants to hear of it.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    modes: Vec<StreamMode>,
    children: bool,
    pub(crate) cancel_on_disconnect: bool,
}

impl Listening {
    /// From the run's first event on.
    pub(crate) fn watch(self, run: Run) -> Watch {
        let Self { modes, children, cancel_on_disconnect } = self;
        Watch { run, modes, children, after: After::Start, cancel_on_disconnect }
    }
}

impl RunRequest {
    pub(crate) fn listening(&self) -> Listening {
        Listening {
            modes: self
                .stream_mode
                .clone()
                .filter(|modes| !modes.is_empty())
                .unwrap_or_else(|| vec![StreamMode::Values]),
            children: self.stream_subgraphs,
            cancel_on_disconnect: self.on_disconnect == Some(OnDisconnect::Cancel),
        }
    }

    /// `idempotency_key` comes in a header.
    pub(crate) async fn start(
        mut self,
        gateway: &Gateway,
        thread: Option<ThreadId>,
        idempotency_key: Option<String>,
    ) -> ApiResult<StartRun> {
        let assistant = gateway.runtime.assistant(&self.assistant_id).await?;
        if let Some(url) = &self.webhook {
            webhook::check(url, gateway.settings)?;
        }
        let secrets = self.take_secrets()?;
        let options = self.options()?;
        let recursion_limit = self.recursion_limit()?;
        self.check_tags()?;
        let fingerprint = idempotency_key.is_some().then(|| self.fingerprint());
        let kwargs = self.kwargs(thread.is_none());
        let input = self.input(thread.is_some())?;
        let mut start = StartRun::of(&assistant, input);
        start.thread = thread;
        start.metadata = self.config.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        start.metadata.extend(self.metadata);
        start.options.extend(options);
        start.secrets = secrets;
        start.recursion_limit = recursion_limit.or(start.recursion_limit);
        start.multitask = self.multitask_strategy.unwrap_or(MultitaskStrategy::Enqueue);
        start.create_thread = self.if_not_exists == Some(IfNotExists::Create);
        if self.after_seconds > LONGEST_DELAY {
            return Err(ApiError::unprocessable("`after_seconds` must be less than a year"));
        }
        start.after_seconds = self.after_seconds.max(0.0);
        let named = self.config.get("configurable").and_then(|inside| inside.get("checkpoint_id"));
        let named = named.and_then(Value::as_str).map(str::to_owned);
        start.checkpoint = checkpoint(self.checkpoint_id.or(named), self.checkpoint.as_ref())?;
        if let Some(at) = &start.checkpoint {
            let step = there_is(gateway, start.thread.as_ref(), at).await?;
            // What comes next there is what was said then.
            let says_nothing =
                matches!(start.input, Input::Continue | Input::Write(_) | Input::Resume { .. });
            if says_nothing && step.source == StepSource::Start {
                start.checkpoint = Some(input_behind(gateway, start.thread.as_ref(), step).await?);
            }
        }
        start.breakpoints = Breakpoints {
            before: self.interrupt_before.unwrap_or_default(),
            after: self.interrupt_after.unwrap_or_default(),
        };
        start.late_answers = !self.strict_resume.unwrap_or(false);
        start.durability = match (self.durability, self.checkpoint_during) {
            (Some(durability), _) => durability,
            (None, Some(false)) => Durability::Exit,
            (None, _) => Durability::Sync,
        };
        start.keep_thread = self.on_completion == Some(OnCompletion::Keep);
        start.fingerprint = fingerprint;
        start.idempotency_key = idempotency_key;
        start.kwargs = kwargs;
        Ok(start)
    }

    /// They are for the run alone: what is kept or told of the request must not have them.
    fn take_secrets(&mut self) -> ApiResult<Secrets> {
        let taken = |from: &mut Map<String, Value>| {
            Secrets::taken_from(from).map_err(|error| ApiError::unprocessable(error.to_string()))
        };
        let mut secrets = taken(&mut self.context)?;
        for inside in ["configurable", "context"] {
            if let Some(Value::Object(inside)) = self.config.get_mut(inside) {
                secrets.add(taken(inside)?);
            }
        }
        Ok(secrets)
    }

    /// What configures the agent comes in one of two places.
    fn options(&self) -> ApiResult<Map<String, Value>> {
        let configurable = match self.config.get("configurable") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return Err(ApiError::unprocessable("`config.configurable` must be an object")),
        };
        if !configurable.is_empty() && !self.context.is_empty() {
            return Err(ApiError::bad_request(
                "Cannot specify both configurable and context. Prefer setting context alone.",
            ));
        }
        Ok(configurable.into_iter().chain(self.context.clone()).collect())
    }

    /// Differs where the request does.
    fn fingerprint(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        Uuid::new_v5(&Uuid::NAMESPACE_OID, &text).to_string()
    }

    fn recursion_limit(&self) -> ApiResult<Option<u32>> {
        let given = self.config.get("recursion_limit").filter(|limit| !limit.is_null());
        match (given, recursion_limit(&self.config)) {
            (None, _) => Ok(None),
            (Some(_), Some(limit @ 1..)) => Ok(Some(limit)),
            (Some(given), _) => Err(ApiError::unprocessable(format!(
                "`config.recursion_limit` must be an integer, at least 1, not {given}"
            ))),
        }
    }

    fn check_tags(&self) -> ApiResult<()> {
        match self.config.get("tags") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Array(tags)) if tags.iter().all(Value::is_string) => Ok(()),
            Some(_) => Err(ApiError::unprocessable("`config.tags` must be a list of strings")),
        }
    }

    fn input(&self, has_thread: bool) -> ApiResult<Input> {
        if let Some(command) = self.command.as_ref().filter(|command| !command.is_empty()) {
            return command_input(command, has_thread);
        }
        let mut values = match self.input.clone() {
            None | Some(Value::Null) => return Ok(Input::Continue),
            Some(Value::Object(values)) => values,
            // A bare message, or a list of them.
            Some(messages) => Map::from_iter([("messages".to_owned(), messages)]),
        };
        owned::strip(&mut values);
        Ok(Input::Values(values))
    }

    /// What it was asked with; what it did not say is filled in where it is shown.
    fn kwargs(&self, is_stateless: bool) -> Map<String, Value> {
        let modes: Vec<&str> = self.listening().modes.into_iter().map(StreamMode::as_str).collect();
        let mut kwargs = Map::new();
        let mut add = |key: &str, value: Value| kwargs.insert(key.to_owned(), value);
        add("input", self.input.clone().unwrap_or_default());
        add("command", self.command.clone().map(Value::Object).unwrap_or_default());
        add("config", Value::Object(self.config.clone()));
        add("context", Value::Object(self.context.clone()));
        add("stream_mode", modes.into());
        add("subgraphs", self.stream_subgraphs.into());
        add("webhook", self.webhook.clone().into());
        let mut say = |key: &str, value: Option<Value>| value.map(|value| add(key, value));
        say("interrupt_before", self.interrupt_before.as_ref().map(node_names));
        say("interrupt_after", self.interrupt_after.as_ref().map(node_names));
        say("feedback_keys", self.feedback_keys.clone().map(Value::from));
        say("resumable", self.stream_resumable.map(Value::from));
        say("durability", self.durability.map(|durability| durability.as_str().into()));
        say("checkpoint_during", self.checkpoint_during.map(Value::from));
        let goes = is_stateless && self.on_completion != Some(OnCompletion::Keep);
        say("temporary", goes.then_some(true.into()));
        kwargs
    }
}

fn command_input(command: &Map<String, Value>, has_thread: bool) -> ApiResult<Input> {
    let mut update = match command.get("update") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(Value::Array(pairs)) => pairs.iter().map(pair).collect::<Option<_>>().ok_or_else(no_update)?,
        Some(_) => return Err(no_update()),
    };
    owned::strip(&mut update);
    let ends = match command.get("goto") {
        None | Some(Value::Null) => false,
        Some(Value::Array(nodes)) if nodes.is_empty() => false,
        Some(Value::Array(nodes)) if nodes.iter().all(|node| node == END) => true,
        Some(node) if node == END => true,
        Some(_) => {
            return Err(ApiError::unprocessable(format!(
                "`command.goto` can be `{END}` alone: hart's agents decide where else to go"
            )));
        }
    };
    match command.get("resume") {
        Some(_) if !has_thread => Err(ApiError::bad_request("You must provide a thread_id when resuming.")),
        // Whoever answers wants to hear what comes of it.
        Some(answer) => Ok(Input::Resume { answer: answer.clone(), update }),
        None if ends => Ok(Input::End(update)),
        None if update.is_empty() => Ok(Input::Continue),
        None => Ok(Input::Write(update)),
    }
}

/// As LangGraph calls the end of a graph.
const END: &str = "__end__";

fn no_update() -> ApiError {
    ApiError::unprocessable("`command.update` must be an object or a list of pairs of a name and a value")
}

fn pair(pair: &Value) -> Option<(String, Value)> {
    match pair.as_array()?.as_slice() {
        [Value::String(key), value] => Some((key.clone(), value.clone())),
        _ => None,
    }
}

/// `"*"` or a list of names.
fn nodes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nodes>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(all) if all == "*" => Some(Nodes::All),
        Value::String(name) => {
            let why = format!("`{name}` must be in a list: [\"{name}\"]; only \"*\" stands alone");
            return Err(serde::de::Error::custom(why));
        }
        Value::Null => None,
        list => Some(Nodes::Named(serde_json::from_value(list).map_err(serde::de::Error::custom)?)),
    })
}

fn node_names(nodes: &Nodes) -> Value {
    match nodes {
        Nodes::All => "*".into(),
        Nodes::Named(names) => names.clone().into(),
    }
}

/// Nothing is written behind a step that never was.
pub(crate) async fn there_is(
    gateway: &Gateway,
    thread: Option<&ThreadId>,
    at: &CheckpointId,
) -> ApiResult<StepInfo> {
    let Some(thread) = thread else {
        return Err(ApiError::unprocessable("a run without a thread has no checkpoint to start from"));
    };
    let query = HistoryQuery { only: Some(at.clone()), limit: 1, ..HistoryQuery::default() };
    let found = gateway.runtime.store().history(thread, &query).await?.pop();
    found.ok_or_else(|| ApiError::not_found(format!("Checkpoint {at} of thread {thread} not found")))
}

/// What comes next at the state before an input is the input.
async fn input_behind(
    gateway: &Gateway,
    thread: Option<&ThreadId>,
    start: StepInfo,
) -> ApiResult<CheckpointId> {
    let query = HistoryQuery { run: Some(start.run), limit: u64::MAX, ..HistoryQuery::default() };
    let Some(thread) = thread else { return Ok(start.id) };
    let of_run = gateway.runtime.store().history(thread, &query).await?;
    let input = of_run.into_iter().find(|step| step.parent.as_ref() == Some(&start.id));
    Ok(input.map_or(start.id, |input| input.id))
}
