//! From what an agent says to what its log holds.
//!
//! Invariant: a message that was streamed in fragments is not logged again whole, and none is logged twice.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{AgentEvent, EventSink, Interrupt, MessageList, Reached, async_trait};
use hart_types::{Message, MessageId, RunId, RunStatus, ToolCallId, UsageMetadata};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::event::{LogEvent, Logged, StepRef, Task, empty, raw};
use crate::tape::{Entry, Tape};
use crate::telemetry::RunWatch;
use crate::{Failure, Totals};

/// Hears one run, its agent and the agents inside of its calls.
#[derive(Debug)]
pub(crate) struct RunSink {
    run: RunId,
    tape: Arc<Tape>,
    watch: RunWatch,
    /// One voice per agent, by namespace; held only to note what was said.
    voices: Mutex<HashMap<Vec<String>, Voice>>,
    totals: Mutex<Totals>,
    /// The newest step and what comes after it.
    reached: Mutex<Option<Reached>>,
}

/// What must be remembered of an agent to tell its story.
#[derive(Debug, Default)]
struct Voice {
    /// Whether the log knows of it, if it speaks inside a call.
    entered: bool,
    step: i64,
    /// Whether the step is a batch of tool calls.
    in_tools: bool,
    node: String,
    /// Messages whose text is in the log already.
    told: HashSet<MessageId>,
    /// Messages that an earlier attempt has told something of, until it is known which of them are in the thread.
    recalled: HashMap<MessageId, Task>,
    paused: Option<Vec<Interrupt>>,
    /// The messages of the state that was told last, of an agent inside a call.
    shown: MessageList,
}

impl RunSink {
    pub(crate) fn new(run: RunId, tape: Arc<Tape>, watch: RunWatch) -> Self {
        Self {
            run,
            tape,
            watch,
            voices: Mutex::default(),
            totals: Mutex::default(),
            reached: Mutex::default(),
        }
    }

    /// Tells whoever looks at all runs how this one ended.
    pub(crate) fn ended(&self, status: RunStatus, error: Option<&Failure>) {
        self.watch.ended(status, &self.totals(), error);
    }

    /// Goes on where the log of earlier attempts ends.
    pub(crate) fn recall(&self, entries: &[Entry]) {
        for entry in entries {
            self.with(&entry.logged.namespace, |voice| voice.recall(&entry.logged.event));
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            match &entry.logged.event {
                LogEvent::TaskStarted { task, .. } if task.node == "model" => totals.model_calls += 1,
                LogEvent::TaskStarted { .. } => totals.tool_calls += 1,
                LogEvent::Chunk { message, .. } => {
                    let chunk = serde_json::from_str::<Message>(message.get());
                    if let Ok(chunk) = chunk {
                        count_chunk(&mut totals, &chunk);
                    }
                }
                _ => {}
            }
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn reached(&self) -> Option<Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn log(&self, event: LogEvent) {
        self.tape.push(Logged { namespace: Vec::new(), event }, None).await;
    }

    async fn tell(&self, namespace: Vec<String>, event: AgentEvent) {
        if let AgentEvent::Child { call_id, agent, event } = event {
            let inside = self.with(&namespace, |voice| voice.tool_task(&self.run, &call_id).namespace());
            let namespace: Vec<String> = namespace.into_iter().chain([inside]).collect();
            if self.with(&namespace, |voice| !std::mem::replace(&mut voice.entered, true)) {
                let event = LogEvent::Entered { agent: agent.to_string() };
                self.tape.push(Logged { namespace: namespace.clone(), event }, None).await;
            }
            return Box::pin(self.tell(namespace, *event)).await;
        }
        self.count(&event);
        self.watch.hear(&namespace, &event);
        let is_root = namespace.is_empty();
        let reached = match &event {
            AgentEvent::Values(reached) if is_root => Some(reached.clone()),
            _ => None,
        };
        if reached.is_some() {
            self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&reached);
        }
        for event in self.with(&namespace, |voice| voice.hear(&self.run, event, is_root)) {
            let state = matches!(event, LogEvent::Values { .. }).then(|| reached.clone()).flatten();
            self.tape.push(Logged { namespace: namespace.clone(), event }, state).await;
        }
    }

    fn with<T>(&self, namespace: &[String], work: impl FnOnce(&mut Voice) -> T) -> T {
        let mut voices = self.voices.lock().unwrap_or_else(PoisonError::into_inner);
        match voices.get_mut(namespace) {
            Some(voice) => work(voice),
            None => work(voices.entry(namespace.to_vec()).or_default()),
        }
    }

    fn count(&self, event: &AgentEvent) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            AgentEvent::ModelStarted => totals.model_calls += 1,
            AgentEvent::ToolStarted(_) => totals.tool_calls += 1,
            AgentEvent::SideCall(call) => {
                totals.model_calls += 1;
                totals.count(Some(&call.model), &call.usage, call.cost);
            }
            AgentEvent::MessageChunk(chunk) => count_chunk(&mut totals, chunk),
            _ => {}
        }
    }
}

#[async_trait]
impl EventSink for RunSink {
    async fn emit(&self, event: AgentEvent) {
        self.tell(Vec::new(), event).await;
    }
}

impl Voice {
    fn hear(&mut self, run: &RunId, event: AgentEvent, is_root: bool) -> Vec<LogEvent> {
        match event {
            AgentEvent::ModelStarted => {
                self.step += 1;
                self.in_tools = false;
                vec![LogEvent::TaskStarted { task: self.model_task(run), input: empty() }]
            }
            AgentEvent::MessageChunk(chunk) => {
                self.told.extend(chunk.id.clone());
                vec![LogEvent::Chunk { task: self.model_task(run), message: raw(&chunk) }]
            }
            AgentEvent::Message(message) => self.message(run, &message),
            AgentEvent::Updates { node, update } => self.updates(run, &node, &update),
            AgentEvent::Values(reached) => {
                let mut told = self.supersede(&reached);
                told.push(self.values(&reached, is_root));
                told
            }
            AgentEvent::ToolStarted(call) => {
                if !self.in_tools {
                    self.step += 1;
                    self.in_tools = true;
                }
                let id = call.id.clone().unwrap_or_else(|| "".into());
                vec![LogEvent::TaskStarted { task: self.tool_task(run, &id), input: raw(&call) }]
            }
            AgentEvent::ToolProgress { call_id, text } => {
                let data = json!({"type": "tool_progress", "tool_call_id": call_id, "text": text});
                vec![LogEvent::Custom { data }]
            }
            AgentEvent::ToolFinished(message) => self.tool_finished(run, &message),
            AgentEvent::Paused(interrupts) => {
                self.paused = Some(interrupts.to_vec());
                vec![LogEvent::Paused { interrupts: interrupts.to_vec() }]
            }
            AgentEvent::Custom(data) => vec![LogEvent::Custom { data }],
            // Told in its own namespace, and in the run's totals.
            AgentEvent::Child { .. } | AgentEvent::SideCall(_) => Vec::new(),
        }
    }

    fn recall(&mut self, event: &LogEvent) {
        match event {
            LogEvent::TaskStarted { task, .. } => {
                (self.step, self.in_tools) = (task.step, task.node == "tools");
            }
            LogEvent::Chunk { task, message } | LogEvent::Message { task, message } => {
                if let Ok(Named { id: Some(id) }) = serde_json::from_str(message.get()) {
                    self.recalled.insert(id, task.clone());
                }
            }
            _ => {}
        }
    }

    /// Takes back what an earlier attempt has told of messages that never got into the thread. Those that are made
    /// again have the same ids.
    fn supersede(&mut self, reached: &Reached) -> Vec<LogEvent> {
        if self.recalled.is_empty() {
            return Vec::new();
        }
        let mut void = std::mem::take(&mut self.recalled);
        for message in reached.values.messages().iter() {
            if let Some((id, _)) = message.id.as_ref().and_then(|id| void.remove_entry(id)) {
                self.told.insert(id);
            }
        }
        let mut void: Vec<_> = void.into_iter().collect();
        void.sort_by_key(|(_, task)| task.step);
        let taken_back =
            |(id, task): (MessageId, Task)| LogEvent::Message { task, message: raw(&Message::remove(id)) };
        void.into_iter().map(taken_back).collect()
    }

    /// A message that entered the thread. What came in with the input is in the first state, and only there.
    fn message(&mut self, run: &RunId, message: &Message) -> Vec<LogEvent> {
        let known = message.id.as_ref().is_some_and(|id| self.told.contains(id));
        if known || self.node == "input" {
            return Vec::new();
        }
        self.told.extend(message.id.clone());
        vec![LogEvent::Message { task: self.node_task(run), message: raw(message) }]
    }

    fn updates(&mut self, run: &RunId, node: &str, update: &Map<String, Value>) -> Vec<LogEvent> {
        node.clone_into(&mut self.node);
        if node == "input" || update.is_empty() {
            return Vec::new();
        }
        let told = LogEvent::Updates { node: node.to_owned(), update: raw(update) };
        if node != "model" {
            return vec![told];
        }
        let finished =
            LogEvent::TaskFinished { task: self.model_task(run), result: raw(update), error: None };
        vec![finished, told]
    }

    fn tool_finished(&mut self, run: &RunId, message: &Message) -> Vec<LogEvent> {
        let call = message.as_tool_result().map_or_else(|| "".into(), |result| result.tool_call_id.clone());
        let task = self.tool_task(run, &call);
        self.told.extend(message.id.clone());
        let result = raw(&json!({ "messages": [message] }));
        vec![
            LogEvent::Message { task: task.clone(), message: raw(message) },
            LogEvent::TaskFinished { task, result, error: None },
        ]
    }

    fn values(&mut self, reached: &Reached, is_root: bool) -> LogEvent {
        if !is_root {
            let messages = reached.values.messages();
            let kept = self.shown.common_prefix(messages);
            self.shown = messages.clone();
            let mut values = Map::new();
            let new: Vec<&Message> = messages.iter_from(kept).map(AsRef::as_ref).collect();
            values.insert("messages".to_owned(), json!(new));
            values.extend(reached.values.rest_to_json());
            return LogEvent::ChildValues { kept, values: raw(&values) };
        }
        let step = StepRef {
            checkpoint: reached.checkpoint.clone(),
            parent: reached.parent.clone(),
            source: reached.source,
            step: self.step,
            next: reached.next.as_deref().map(str::to_owned),
        };
        LogEvent::Values { step, interrupts: self.paused.take() }
    }

    fn node_task(&self, run: &RunId) -> Task {
        let node = if self.in_tools { "tools" } else { "model" };
        self.task(run, node, "")
    }

    fn model_task(&self, run: &RunId) -> Task {
        self.task(run, "model", "")
    }

    fn tool_task(&self, run: &RunId, call: &ToolCallId) -> Task {
        self.task(run, "tools", call.as_str())
    }

    /// The same task has the same id whoever looks, and whenever.
    fn task(&self, run: &RunId, node: &str, call: &str) -> Task {
        let name =
            if call.is_empty() { format!("{run}/{}/{node}", self.step) } else { format!("{run}/{call}") };
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string();
        Task { id, node: node.to_owned(), step: self.step }
    }
}

#[derive(serde::Deserialize)]
struct Named {
    id: Option<MessageId>,
}

fn count_chunk(totals: &mut Totals, chunk: &Message) {
    if let Some(usage) = usage(chunk) {
        let told = &chunk.response_metadata;
        let (model, cost) =
            (told.get("model").and_then(Value::as_str), told.get("cost").and_then(Value::as_f64));
        totals.count(model, usage, cost);
    }
}

fn usage(chunk: &Message) -> Option<&UsageMetadata> {
    match &chunk.body {
        hart_types::Body::AiChunk(chunk) => chunk.ai.usage.as_ref(),
        _ => None,
    }
}

/// What a call is called by whoever works inside of it.
pub(crate) fn call_namespace(run: &str, call: &str) -> String {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{run}/{call}").as_bytes());
    Task { id: id.to_string(), node: "tools".to_owned(), step: 0 }.namespace()
}
