//! From what an agent says to what its log holds.
//!
//! Invariant: a message that was streamed in fragments is not logged again whole, and none is logged twice.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{AgentEvent, EventSink, Interrupt, MessageList, Reached, StepSource, async_trait};
use hart_types::{CheckpointId, Message, MessageId, RunId, RunStatus, ToolCallId, UsageMetadata};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::event::{AskedModel, LogEvent, Logged, StepRef, Task, empty, raw};
use crate::reasoning;
use crate::runtime::ShownStep;
use crate::tape::{Entry, Tape};
use crate::tasks::{shared_out, task_id};
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
    /// The newest checkpoint; the agent itself until there is one.
    head: String,
    /// The newest that came further, which names the tasks that follow it: one that stops to ask keeps its name.
    origin: String,
    /// How that was come to, as long as the run has not come further itself.
    stands_at: Option<StepSource>,
    /// The one before that.
    origin_parent: Option<CheckpointId>,
    /// Its number, as the thread's history has it; none before the first.
    number: Option<i64>,
    /// Whether the step behind it has begun.
    at_work: bool,
    asked: Option<AskedModel>,
    /// The task whose fragments come, named once for all of them.
    speaking: Option<Task>,
    /// Whether the model has yet to answer.
    is_asked: bool,
    /// Calls that were begun and have no result yet.
    running: Vec<(ToolCallId, Task)>,
    /// How many calls of the batch were begun.
    begun: usize,
    /// Whether the step is a batch of tool calls.
    in_tools: bool,
    node: String,
    /// Messages whose text is in the log already.
    told: HashSet<MessageId>,
    /// Messages that an earlier attempt has told something of, until it is known which of them are in the thread.
    recalled: HashMap<MessageId, Task>,
    paused: Option<Vec<Interrupt>>,
    /// Whether no call asks there, so that it is not told yet which task does.
    hook_asks: bool,
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

    /// What was under way when the run failed.
    pub(crate) fn broken_off(&self, why: &Failure) -> Vec<LogEvent> {
        let tasks = self.with(&[], |voice| {
            let asked = std::mem::take(&mut voice.is_asked).then(|| voice.model_task());
            let calls = std::mem::take(&mut voice.running);
            asked.into_iter().chain(calls.into_iter().map(|(_, task)| task)).collect::<Vec<_>>()
        });
        let failed = |task| {
            let error = Some(why.clone());
            LogEvent::TaskFinished { task, result: empty(), error, interrupts: Vec::new() }
        };
        tasks.into_iter().map(failed).collect()
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

    /// The run goes on behind this step.
    pub(crate) fn stands_behind(&self, step: ShownStep) {
        let ShownStep { info, at, .. } = step;
        self.with(&[], |voice| {
            (voice.head, voice.number) = (at.to_string(), Some(info.number));
            (voice.origin, voice.origin_parent) = (info.id.to_string(), info.parent);
            voice.stands_at = Some(info.source);
        });
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
            let inside = self.with(&namespace, |voice| voice.tool_task(&call_id).namespace());
            let namespace: Vec<String> = namespace.into_iter().chain([inside]).collect();
            if self.with(&namespace, |voice| !std::mem::replace(&mut voice.entered, true)) {
                let event = LogEvent::Entered { agent: agent.to_string() };
                self.tape.push(Logged { namespace: namespace.clone(), event }, None).await;
            }
            return Box::pin(self.tell(namespace, *event)).await;
        }
        self.count(&event);
        let begun = match &event {
            AgentEvent::ToolStarted(call) => call.id.as_ref(),
            _ => None,
        };
        let inside = begun.map(|call| self.with(&namespace, |voice| voice.tool_task(call).namespace()));
        self.watch.hear(&namespace, &event, inside);
        let is_root = namespace.is_empty();
        let reached = match &event {
            AgentEvent::Values(reached) if is_root => Some(reached.clone()),
            _ => None,
        };
        if reached.as_ref().is_some_and(|reached| reached.source != StepSource::Start) {
            self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&reached);
        }
        for event in self.with(&namespace, |voice| voice.hear(event, is_root)) {
            let is_state = matches!(event, LogEvent::Values { .. } | LogEvent::Began { .. });
            let state = is_state.then(|| reached.clone()).flatten();
            self.tape.push(Logged { namespace: namespace.clone(), event }, state).await;
        }
    }

    fn with<T>(&self, namespace: &[String], work: impl FnOnce(&mut Voice) -> T) -> T {
        let mut voices = self.voices.lock().unwrap_or_else(PoisonError::into_inner);
        match voices.get_mut(namespace) {
            Some(voice) => work(voice),
            None => {
                let head = format!("{}/{}", self.run, namespace.join("/"));
                let voice = Voice { origin: head.clone(), head, ..Voice::default() };
                work(voices.entry(namespace.to_vec()).or_insert(voice))
            }
        }
    }

    fn count(&self, event: &AgentEvent) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            AgentEvent::ModelStarted { .. } => totals.model_calls += 1,
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
    fn hear(&mut self, event: AgentEvent, is_root: bool) -> Vec<LogEvent> {
        match event {
            AgentEvent::ModelStarted { provider, served_as, .. } => {
                self.asked = Some(AskedModel { provider, name: served_as });
                self.speaking = None;
                self.at_work = true;
                self.in_tools = false;
                self.is_asked = true;
                self.running.clear();
                self.begun = 0;
                vec![LogEvent::TaskStarted { task: self.model_task(), input: empty() }]
            }
            AgentEvent::MessageChunk(chunk) => {
                if let Some(id) = chunk.id.as_ref().filter(|id| !self.told.contains(*id)) {
                    self.told.insert(id.clone());
                }
                let task = self.speaking.take().unwrap_or_else(|| self.model_task());
                self.speaking = Some(task.clone());
                vec![LogEvent::Chunk { task, message: raw(&chunk) }]
            }
            AgentEvent::Message(message) => self.message(&message),
            AgentEvent::Updates { node, update } => self.updates(&node, &update),
            AgentEvent::Values(reached) if reached.source == StepSource::Start => {
                self.come_to(&reached);
                let step = self.step_of(&reached);
                is_root.then_some(LogEvent::Began { step }).into_iter().collect()
            }
            AgentEvent::Values(reached) => {
                self.come_to(&reached);
                (self.at_work, self.speaking) = (false, None);
                let mut told = self.supersede(&reached);
                told.extend(self.asking_hook(&reached));
                told.push(self.values(&reached, is_root));
                told
            }
            AgentEvent::ToolStarted(call) => {
                (self.at_work, self.in_tools, self.speaking) = (true, true, None);
                let id = call.id.clone().unwrap_or_else(|| "".into());
                let task = Task { place: Some(self.begun), ..self.tool_task(&id) };
                self.begun += 1;
                self.running.push((id, task.clone()));
                vec![LogEvent::TaskStarted { task, input: raw(&call) }]
            }
            AgentEvent::ToolProgress { call_id, text } => {
                let data = json!({"type": "tool_progress", "tool_call_id": call_id, "text": text});
                vec![LogEvent::Custom { data }]
            }
            AgentEvent::ToolFinished { result, update } => self.tool_finished(&result, &update),
            AgentEvent::Paused(interrupts) => self.paused(&interrupts),
            AgentEvent::Custom(data) => vec![LogEvent::Custom { data }],
            // Told in its own namespace, and in the run's totals.
            AgentEvent::Child { .. } | AgentEvent::SideCall(_) => Vec::new(),
        }
    }

    fn recall(&mut self, event: &LogEvent) {
        match event {
            LogEvent::TaskStarted { task, .. } => self.in_tools = task.node == "tools",
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
    fn message(&mut self, message: &Message) -> Vec<LogEvent> {
        let known = message.id.as_ref().is_some_and(|id| self.told.contains(id));
        if known || self.node == "input" {
            return Vec::new();
        }
        self.told.extend(message.id.clone());
        vec![LogEvent::Message { task: self.node_task(), message: raw(message) }]
    }

    fn updates(&mut self, node: &str, update: &Map<String, Value>) -> Vec<LogEvent> {
        node.clone_into(&mut self.node);
        // What calls wrote was told of each when it had finished.
        if matches!(node, "input" | "tools") {
            return Vec::new();
        }
        let told = |update| LogEvent::Updates { node: node.to_owned(), update };
        if node != "model" {
            return vec![told(raw(update))];
        }
        self.is_asked = false;
        let mut update = update.clone();
        if let Some(Value::Array(said)) = update.get_mut("messages") {
            said.iter_mut().for_each(reasoning::show);
        }
        let (task, result) = (self.model_task(), raw(&update));
        let finished =
            LogEvent::TaskFinished { task, result: result.clone(), error: None, interrupts: Vec::new() };
        vec![told(result), finished]
    }

    /// The calls that ask stay without a result.
    fn paused(&mut self, interrupts: &[Interrupt]) -> Vec<LogEvent> {
        (self.paused, self.hook_asks) = (Some(interrupts.to_vec()), self.running.is_empty());
        let asking = std::mem::take(&mut self.running);
        let shares = shared_out(interrupts, asking.iter().map(|(call, _)| call.as_str()));
        let told = asking.into_iter().zip(shares).map(|((_, task), interrupts)| LogEvent::TaskFinished {
            task,
            result: empty(),
            error: None,
            interrupts,
        });
        told.chain([LogEvent::Paused { interrupts: interrupts.to_vec() }]).collect()
    }

    /// What a hook asks is asked by the task that it is in.
    fn asking_hook(&mut self, reached: &Reached) -> Option<LogEvent> {
        let asked = self.paused.as_ref().filter(|asked| self.hook_asks && !asked.is_empty())?;
        let node = reached.next.as_deref().filter(|_| reached.source == StepSource::Pause)?;
        let (task, interrupts) = (self.task(node, ""), asked.clone());
        self.hook_asks = false;
        Some(LogEvent::TaskFinished { task, result: empty(), error: None, interrupts })
    }

    /// Each call is told for itself, as if it were a node of its own.
    fn tool_finished(&mut self, message: &Message, update: &Map<String, Value>) -> Vec<LogEvent> {
        let call = message.as_tool_result().map_or_else(|| "".into(), |result| result.tool_call_id.clone());
        let begun = self.running.iter().position(|(running, _)| *running == call);
        let task = match begun {
            Some(at) => self.running.remove(at).1,
            None => self.tool_task(&call),
        };
        self.told.extend(message.id.clone());
        let mut written = update.clone();
        let also_said = written.remove("messages").unwrap_or_else(|| json!([]));
        let said = [json!(message)].into_iter().chain(also_said.as_array().into_iter().flatten().cloned());
        written.insert("messages".to_owned(), said.collect());
        let result = raw(&written);
        vec![
            LogEvent::Message { task: task.clone(), message: raw(message) },
            LogEvent::Updates { node: task.node.clone(), update: result.clone() },
            LogEvent::TaskFinished { task, result, error: None, interrupts: Vec::new() },
        ]
    }

    fn values(&mut self, reached: &Reached, is_root: bool) -> LogEvent {
        if !is_root {
            let messages = reached.values.messages();
            let kept = self.shown.common_prefix(messages);
            self.shown = messages.clone();
            let mut values = Map::new();
            let new: Vec<Box<RawValue>> = messages.iter_from(kept).map(|new| reasoning::shown(new)).collect();
            values.insert("messages".to_owned(), json!(new));
            values.extend(reached.values.rest_to_json());
            return LogEvent::ChildValues { kept, values: raw(&values) };
        }
        LogEvent::Values { step: self.step_of(reached), interrupts: self.paused.clone() }
    }

    fn come_to(&mut self, reached: &Reached) {
        // A run that goes on tells where it stands before it takes a step.
        if self.head == reached.checkpoint.as_str() {
            return;
        }
        (self.head, self.stands_at) = (reached.checkpoint.to_string(), None);
        if !reached.source.goes_further(reached.next.as_deref()) {
            return;
        }
        self.paused = None;
        let before = std::mem::replace(&mut self.origin, self.head.clone());
        self.origin_parent = self.number.map(|_| before.into());
        let first = if reached.source == StepSource::Start { -1 } else { 0 };
        self.number = Some(self.number.map_or(first, |number| number + 1));
    }

    fn step_of(&self, reached: &Reached) -> StepRef {
        let asked = self.stands_at.map(|_| reached.values.interrupts().to_vec()).unwrap_or_default();
        StepRef {
            checkpoint: reached.checkpoint.clone(),
            parent: self.origin_parent.clone(),
            source: self.stands_at.unwrap_or(reached.source),
            step: self.number.unwrap_or(0),
            next: reached.next.as_deref().map(str::to_owned),
            stands_for: (self.origin != self.head).then(|| self.origin.as_str().into()),
            asked,
        }
    }

    /// What is done now is of the step that comes of it.
    fn step(&self) -> i64 {
        self.number.unwrap_or(0) + i64::from(self.at_work)
    }

    fn node_task(&self) -> Task {
        self.task(if self.in_tools { "tools" } else { "model" }, "")
    }

    fn model_task(&self) -> Task {
        Task { model: self.asked.clone(), ..self.task("model", "") }
    }

    fn tool_task(&self, call: &ToolCallId) -> Task {
        self.task("tools", call.as_str())
    }

    fn task(&self, node: &str, call: &str) -> Task {
        let id = task_id(&self.origin, node, call);
        Task { id, node: node.to_owned(), step: self.step(), place: None, model: None }
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
