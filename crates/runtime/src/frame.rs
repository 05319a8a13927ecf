//! The frames of LangGraph's run stream, rendered from the log for one reader.
//!
//! Invariant: the same events give the same frames, live or read back, whatever else is asked for beside them.

mod blocks;
mod chain;
mod envelope;
mod inside;
mod so_far;
mod spoken;

use std::borrow::Cow;
use std::collections::{HashMap, hash_map};
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use hart_kernel::{Interrupt, StepSource};
use hart_types::{CheckpointId, EventId, MessageId, StreamMode};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::event::{LogEvent, StepRef, Task, raw};
use crate::tape::FRAMES;
use crate::tasks::{NextTask, next_tasks};
use crate::{Entry, Run};

use chain::Chain;
use inside::InsideStates;
use so_far::SoFar;

pub(crate) use blocks::in_blocks;
pub use envelope::{Channel, Envelope, EventRenderer};

/// One frame. `data` is JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub event: Cow<'static, str>,
    pub data: Bytes,
    pub id: EventId,
}

/// What a reader asked for, and what it takes to tell it.
#[derive(Debug)]
pub struct Renderer {
    run: Run,
    modes: Vec<StreamMode>,
    children: bool,
    /// For the old `messages` mode, which repeats all that was written so far.
    partial: HashMap<MessageId, SoFar>,
    /// The second half of a `messages` frame, per task and whether it asks a model.
    metadata: HashMap<(String, i64, bool), Arc<str>>,
    /// Of the task that was last told of: fragments come one after the other.
    last: Option<(Task, Arc<str>)>,
    /// The newest state, which is what a task has to work with.
    state: Option<Bytes>,
    /// For the mode `events`.
    chain: Chain,
    inside: InsideStates,
    /// The agent inside of calls whose entry is rendered; empty for the run's own.
    within: String,
}

impl Renderer {
    pub fn new(run: Run, modes: Vec<StreamMode>, children: bool) -> Self {
        Self {
            run,
            modes,
            children,
            partial: HashMap::new(),
            metadata: HashMap::new(),
            last: None,
            state: None,
            chain: Chain::default(),
            inside: InsideStates::default(),
            within: String::new(),
        }
    }

    /// Whether a frame depends on those before it: then whoever comes back has to be rendered to from the start.
    pub fn remembers(&self) -> bool {
        self.has(StreamMode::Events)
            || self.tells_of(StreamMode::Tasks)
            || (self.children && self.has(StreamMode::Values))
            || (self.has(StreamMode::Messages) && !self.has(StreamMode::MessagesTuple))
    }

    /// Whether the state itself is needed to render the entry.
    pub fn wants_values(&self, entry: &Entry) -> bool {
        use StreamMode::{Checkpoints, Debug, Events, Tasks, Values};
        let asked: &[StreamMode] = match entry.logged.event {
            LogEvent::Values { .. } => &[Values, Checkpoints, Debug, Events, Tasks],
            LogEvent::Began { .. } => &[Checkpoints, Debug],
            _ => &[],
        };
        asked.iter().any(|mode| self.has(*mode))
    }

    /// `values` is the state at the entry, if it is wanted.
    pub fn render(&mut self, entry: &Entry, values: Option<&Bytes>) -> Vec<Frame> {
        let namespace = &entry.logged.namespace;
        // All but `events` is told of agents inside of calls to those alone who ask for it.
        let is_shown = namespace.is_empty() || self.children;
        if !is_shown && !self.has(StreamMode::Events) {
            return Vec::new();
        }
        self.enter(namespace);
        if let LogEvent::TaskStarted { task, .. } = &entry.logged.event
            && self.has(StreamMode::MessagesTuple)
        {
            // Made while the model is waited for, not when it speaks.
            self.metadata(task);
        }
        let mut frames = Vec::new();
        let mut add = |name: Cow<'static, str>, data: Bytes| {
            // The two oldest modes do not tell agents inside of calls from others.
            let is_old = name == "events" || name.starts_with("messages/");
            let event = match namespace.is_empty() || is_old {
                true => name,
                false => Cow::Owned(format!("{name}|{}", namespace.join("|"))),
            };
            // The frames of one event have ids of their own, so that a reader can come back between them.
            let id = EventId { seq: entry.id.seq + frames.len() as u64, ..entry.id };
            frames.push(Frame { event, data, id });
        };
        match &entry.logged.event {
            _ if !is_shown => {}
            LogEvent::Started { attempt } => {
                let data = json!({"run_id": self.run.id, "attempt": attempt, "thread_id": self.run.thread});
                add("metadata".into(), bytes(&data));
            }
            LogEvent::Began { step } if self.tells_of(StreamMode::Checkpoints) => {
                self.checkpoint(step, values, entry, &mut add);
            }
            LogEvent::Values { step, interrupts } => {
                let is_told = step.source.goes_further(step.next.as_deref());
                let is_asked = interrupts.as_ref().is_some_and(|asked| !asked.is_empty());
                // A step that comes no further has nothing new but what is asked there.
                if let (true, Some(values)) = (self.has(StreamMode::Values) && (is_told || is_asked), values)
                {
                    add("values".into(), with_interrupts(values, interrupts.as_deref()));
                }
                if self.tells_of(StreamMode::Checkpoints) && is_told {
                    self.checkpoint(step, values, entry, &mut add);
                }
                if self.tells_of(StreamMode::Tasks) {
                    self.state = values.cloned();
                }
            }
            LogEvent::ChildValues { kept, values }
                if self.has(StreamMode::Values) || self.tells_of(StreamMode::Tasks) =>
            {
                let whole = self.inside.whole(namespace, *kept, values);
                if self.has(StreamMode::Values) {
                    add("values".into(), Bytes::copy_from_slice(whole.get().as_bytes()));
                }
            }
            LogEvent::Updates { node, update } if self.has(StreamMode::Updates) => {
                add("updates".into(), object(node, update));
            }
            LogEvent::Paused { interrupts } if self.has(StreamMode::Updates) => {
                // A frame for each, as far as an event has ids for them; at a breakpoint one that asks nothing.
                let share = interrupts.len().div_ceil(usize::try_from(FRAMES).unwrap_or(1)).max(1);
                let none = interrupts.is_empty().then_some(&[][..]);
                for asked in interrupts.chunks(share).chain(none) {
                    add("updates".into(), bytes(&json!({ "__interrupt__": asked })));
                }
            }
            LogEvent::Chunk { task, message } => self.message(task, message, true, &mut add),
            LogEvent::Message { task, message } => self.message(task, message, false, &mut add),
            LogEvent::TaskStarted { task, input } if self.tells_of(StreamMode::Tasks) => {
                let payload = json!({
                    "id": task.id, "name": task.node, "input": self.given(task, namespace, input),
                    "triggers": triggers(task), "metadata": self.about_run(),
                });
                self.add_debugged(StreamMode::Tasks, "task", task.step, payload, entry, &mut add);
            }
            LogEvent::TaskFinished { task, result, error, interrupts }
                if self.tells_of(StreamMode::Tasks) =>
            {
                let payload = json!({
                    "id": task.id, "name": task.node, "error": error, "result": result, "interrupts": interrupts,
                });
                self.add_debugged(StreamMode::Tasks, "task_result", task.step, payload, entry, &mut add);
            }
            LogEvent::Custom { data } if self.has(StreamMode::Custom) => add("custom".into(), bytes(data)),
            LogEvent::Failed(failure) => add("error".into(), bytes(failure)),
            _ => {}
        }
        if self.has(StreamMode::Events) {
            let task = task_of(&entry.logged.event);
            let metadata = task.map(|task| self.metadata(task));
            for told in self.chain.render(&self.run, entry, values, metadata) {
                add("events".into(), told);
            }
        }
        if let LogEvent::Ended { .. } = &entry.logged.event {
            add("end".into(), Bytes::from_static(b"null"));
        }
        frames
    }

    fn has(&self, mode: StreamMode) -> bool {
        self.modes.contains(&mode)
    }

    /// Under its own name, or as `debug` wraps it.
    fn tells_of(&self, mode: StreamMode) -> bool {
        self.has(mode) || self.has(StreamMode::Debug)
    }

    fn message(
        &mut self,
        task: &Task,
        message: &RawValue,
        is_chunk: bool,
        add: &mut impl FnMut(Cow<'static, str>, Bytes),
    ) {
        if self.has(StreamMode::MessagesTuple) {
            let metadata = self.metadata(task);
            let message = message.get();
            let mut data = String::with_capacity(message.len() + metadata.len() + 4);
            let _ = write!(data, "[{message},{metadata}]");
            add("messages".into(), data.into());
        } else if self.has(StreamMode::Messages) {
            self.whole_so_far(task, message, is_chunk, add);
        }
    }

    /// The old mode: each frame has the message as far as it is written.
    fn whole_so_far(
        &mut self,
        task: &Task,
        message: &RawValue,
        is_chunk: bool,
        add: &mut impl FnMut(Cow<'static, str>, Bytes),
    ) {
        let Ok(message) = serde_json::from_str::<Value>(message.get()) else { return };
        let Some(id) = message.get("id").and_then(Value::as_str) else { return };
        let id = MessageId::from(id);
        if message.get("type").and_then(Value::as_str) == Some("remove") {
            // Taken back: the next frame of this id begins anew.
            self.partial.remove(&id);
            return;
        }
        if !self.partial.contains_key(&id) {
            let metadata: Value = serde_json::from_str(&self.metadata(task)).unwrap_or_default();
            add("messages/metadata".into(), bytes(&json!({ (id.as_str()): { "metadata": metadata } })));
        }
        if is_chunk {
            let so_far = match self.partial.entry(id) {
                hash_map::Entry::Occupied(known) => {
                    let so_far = known.into_mut();
                    so_far.add(&message);
                    so_far
                }
                hash_map::Entry::Vacant(new) => new.insert(SoFar::begun(&message)),
            };
            add("messages/partial".into(), bytes(&[so_far.message()]));
        } else {
            add("messages/complete".into(), bytes(&[&message]));
            self.partial.insert(id, SoFar::whole(message));
        }
    }

    /// What is rendered next is of the agent that the namespace names.
    fn enter(&mut self, namespace: &[String]) {
        if namespace.is_empty() && self.within.is_empty() {
            return;
        }
        let within = namespace.join("|");
        if self.within != within {
            (self.within, self.last) = (within, None);
        }
    }

    fn metadata(&mut self, task: &Task) -> Arc<str> {
        if let Some((_, known)) = self.last.as_ref().filter(|(last, _)| last == task) {
            return Arc::clone(known);
        }
        let metadata = self.metadata_of(task);
        self.last = Some((task.clone(), Arc::clone(&metadata)));
        metadata
    }

    fn metadata_of(&mut self, task: &Task) -> Arc<str> {
        // What hooks say before a task begins is its, and of the step before it.
        let key = (task.id.clone(), task.step, task.model.is_some());
        if let Some(known) = self.metadata.get(&key) {
            return Arc::clone(known);
        }
        let own = task.namespace();
        let (whole, outer) = match self.within.is_empty() {
            true => (own.clone(), own),
            false => (format!("{}|{own}", self.within), self.within.clone()),
        };
        let path = match task.place {
            Some(place) => json!(["__pregel_push", place, false]),
            None => json!(["__pregel_pull", task.node]),
        };
        let mut metadata = self.about_run();
        let mut say = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
        say("thread_id", json!(self.run.thread));
        say("langgraph_step", json!(task.step));
        say("langgraph_node", json!(task.node));
        say("langgraph_triggers", json!(triggers(task)));
        say("langgraph_path", path);
        say("langgraph_checkpoint_ns", json!(whole));
        say("checkpoint_ns", json!(outer));
        if let Some(model) = &task.model {
            say("ls_provider", json!(model.provider));
            say("ls_model_name", json!(model.name));
            say("ls_model_type", json!("chat"));
            if !self.run.tags().is_empty() {
                say("tags", json!(self.run.tags()));
            }
        }
        let metadata: Arc<str> = Value::Object(metadata).to_string().into();
        self.metadata.insert(key, Arc::clone(&metadata));
        metadata
    }

    /// What a task has to work with: a call has itself, the model has all that was said.
    fn given(&self, task: &Task, namespace: &[String], input: &RawValue) -> Value {
        let parsed = |json: &[u8]| serde_json::from_slice::<Value>(json).ok();
        if task.node != "model" {
            return json!([parsed(input.get().as_bytes())]);
        }
        if !namespace.is_empty() {
            return json!({"messages": self.inside.said(namespace)});
        }
        self.state.as_deref().and_then(parsed).unwrap_or_else(|| json!({}))
    }

    /// What is said about a run wherever it is told of.
    fn about_run(&self) -> Map<String, Value> {
        let mut about = self.run.metadata.clone();
        about.insert("run_id".to_owned(), json!(self.run.id));
        about
    }

    fn place(&self, id: &CheckpointId) -> Value {
        json!({"checkpoint_id": id, "thread_id": self.run.thread, "checkpoint_ns": ""})
    }

    fn checkpoint(
        &self,
        step: &StepRef,
        values: Option<&Bytes>,
        entry: &Entry,
        add: &mut impl FnMut(Cow<'static, str>, Bytes),
    ) {
        let config = |id: &CheckpointId| json!({"configurable": self.place(id)});
        let state = values.map(Bytes::as_ref).unwrap_or_default();
        let tasks = next_tasks(step.name().as_str(), step.next.as_deref(), state, &step.asked, |_| false);
        let task = |task: NextTask| json!({"id": task.id, "name": task.name, "interrupts": task.interrupts, "state": null});
        let tasks: Vec<Value> = tasks.into_iter().map(task).collect();
        let values: Option<Box<RawValue>> = serde_json::from_slice(state).ok();
        let next: Vec<&str> = tasks.iter().filter_map(|task| task.get("name")?.as_str()).collect();
        let payload = json!({
            "config": config(step.name()),
            "parent_config": step.parent.as_ref().map(config),
            "values": values,
            "metadata": {"source": source(step.source), "step": step.step, "parents": {}},
            "next": next,
            "tasks": tasks,
        });
        self.add_debugged(StreamMode::Checkpoints, "checkpoint", step.step, payload, entry, add);
    }

    /// A payload under its own name, and again as `debug` wraps it.
    fn add_debugged(
        &self,
        mode: StreamMode,
        kind: &str,
        step: i64,
        payload: Value,
        entry: &Entry,
        add: &mut impl FnMut(Cow<'static, str>, Bytes),
    ) {
        if self.has(mode) {
            add(mode.as_str().into(), bytes(&payload));
        }
        if self.has(StreamMode::Debug) {
            let at = hart_kernel::Timestamp::from_millisecond(i64::try_from(entry.id.ms).unwrap_or(0));
            let timestamp = at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string());
            let timestamp = timestamp.unwrap_or_default();
            let mut payload = payload;
            if let (LogEvent::Values { step, .. } | LogEvent::Began { step }, Some(map)) =
                (&entry.logged.event, payload.as_object_mut())
            {
                map.insert("checkpoint".to_owned(), self.place(step.name()));
                let parent = step.parent.as_ref().map(|parent| self.place(parent));
                map.insert("parent_checkpoint".to_owned(), parent.unwrap_or_default());
            }
            let data = json!({"step": step, "timestamp": timestamp, "type": kind, "payload": payload});
            add("debug".into(), bytes(&data));
        }
    }
}

/// What a task waited for.
fn triggers(task: &Task) -> [String; 1] {
    match task.node.as_str() {
        "tools" => ["__pregel_push".to_owned()],
        node => [format!("branch:to:{node}")],
    }
}

fn task_of(event: &LogEvent) -> Option<&Task> {
    match event {
        LogEvent::TaskStarted { task, .. }
        | LogEvent::TaskFinished { task, .. }
        | LogEvent::Chunk { task, .. }
        | LogEvent::Message { task, .. } => Some(task),
        _ => None,
    }
}

/// LangGraph knows an input, the loop and updates.
pub fn source(source: StepSource) -> &'static str {
    match source {
        StepSource::Start => "input",
        StepSource::Update => "update",
        _ => "loop",
    }
}

fn bytes(value: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn object(key: &str, value: &RawValue) -> Bytes {
    format!("{{{}:{}}}", raw(&key).get(), value.get()).into()
}

/// Puts the open questions beside a state's own keys.
fn with_interrupts(values: &Bytes, interrupts: Option<&[Interrupt]>) -> Bytes {
    let Some(interrupts) = interrupts else { return values.clone() };
    let Some(inner) = values.strip_suffix(b"}") else { return values.clone() };
    let mut data = inner.to_vec();
    if data.len() > 1 {
        data.push(b',');
    }
    data.extend_from_slice(b"\"__interrupt__\":");
    data.extend_from_slice(&bytes(&interrupts));
    data.push(b'}');
    data.into()
}
