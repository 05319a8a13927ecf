//! The envelopes of LangGraph's thread-centric event protocol, rendered from the log for one reader.
//!
//! Invariant: an envelope has the same id whenever it is rendered, whatever is asked for beside it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use hart_types::RunStatus;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::blocks::values_in_blocks;
use super::inside::InsideStates;
use super::spoken::{self, Fragment, Spoken};
use super::{bytes, source};
use crate::event::{LogEvent, StepRef, Task};
use crate::{Entry, Run};

/// One event of the protocol. The connection that sends it numbers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub id: String,
    pub channel: Channel,
    pub namespace: Vec<String>,
    pub ms: u64,
    /// JSON.
    pub data: Bytes,
    /// What a custom event calls itself.
    pub name: Option<String>,
}

/// What one can subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    Values,
    Updates,
    Messages,
    Tools,
    Custom,
    Lifecycle,
    Input,
    Tasks,
    Checkpoints,
}

impl Channel {
    pub const ALL: &'static [Self] = &[
        Self::Values,
        Self::Updates,
        Self::Messages,
        Self::Tools,
        Self::Custom,
        Self::Lifecycle,
        Self::Input,
        Self::Tasks,
        Self::Checkpoints,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Messages => "messages",
            Self::Tools => "tools",
            Self::Custom => "custom",
            Self::Lifecycle => "lifecycle",
            Self::Input => "input",
            Self::Tasks => "tasks",
            Self::Checkpoints => "checkpoints",
        }
    }

    /// What its events are called.
    pub fn method(self) -> &'static str {
        match self {
            Self::Input => "input.requested",
            other => other.as_str(),
        }
    }
}

/// Renders one run.
#[derive(Debug)]
pub struct EventRenderer {
    run: Arc<Run>,
    graph: String,
    /// The message each agent is writing, by namespace.
    spoken: HashMap<Vec<String>, Spoken>,
    /// The calls that run, by the namespace of their agents.
    calls: BTreeMap<Vec<String>, Value>,
    /// The agents inside of calls, by namespace.
    inside: BTreeMap<Vec<String>, String>,
    /// And their states.
    states: InsideStates,
    /// Whether the run's last word on its course was said.
    settled: bool,
}

impl EventRenderer {
    pub fn new(run: Arc<Run>) -> Self {
        let graph = run.metadata.get("graph_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            run,
            graph,
            spoken: HashMap::new(),
            calls: BTreeMap::new(),
            inside: BTreeMap::new(),
            states: InsideStates::default(),
            settled: false,
        }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// `values` is the state at the entry in blocks, if it is wanted.
    pub fn render(&mut self, entry: &Entry, values: Option<&Bytes>) -> Vec<Envelope> {
        let mut out = Out { run: &self.run.id.clone(), entry, made: 0, envelopes: Vec::new() };
        let namespace = entry.logged.namespace.as_slice();
        match &entry.logged.event {
            LogEvent::Started { .. } => {
                out.lifecycle(&[], "running", json!({"event": "running", "graph_name": self.graph}));
            }
            LogEvent::Entered { agent } => self.entered(namespace, agent, &mut out),
            // A step that comes no further has nothing new but what is asked there.
            LogEvent::Values { step, interrupts: None }
                if !step.source.goes_further(step.next.as_deref()) => {}
            LogEvent::Values { step, .. } => {
                match values {
                    Some(values) => out.add(Channel::Values, namespace, values.clone()),
                    // What follows has the same id whether or not it is asked for.
                    None => out.made += 1,
                }
                if step.source.goes_further(step.next.as_deref()) {
                    out.say(Channel::Checkpoints, namespace, &checkpoint(step));
                }
            }
            LogEvent::Began { step } => out.say(Channel::Checkpoints, namespace, &checkpoint(step)),
            LogEvent::ChildValues { kept, values } => {
                let values = self.states.whole(namespace, *kept, values);
                if let Some(values) = values_in_blocks(values.get()) {
                    out.say(Channel::Values, namespace, &values);
                }
            }
            LogEvent::Updates { node, update } => {
                out.say(Channel::Updates, namespace, &json!({"node": node, "values": update}));
            }
            LogEvent::Chunk { task, message } => self.chunk(namespace, task, message, &mut out),
            LogEvent::Message { task, message } => self.message(namespace, task, message, &mut out),
            LogEvent::TaskStarted { task, input } => self.started(namespace, task, input, &mut out),
            LogEvent::TaskFinished { task, interrupts, .. } if !interrupts.is_empty() => {
                // Its call is still open.
                let data = json!({
                    "id": task.id, "name": task.node, "error": null, "result": {}, "interrupts": interrupts,
                });
                out.say(Channel::Tasks, namespace, &data);
            }
            // Told with the failure of the run.
            LogEvent::TaskFinished { error: Some(_), .. } => {}
            LogEvent::TaskFinished { task, result, .. } => self.finished(namespace, task, result, &mut out),
            LogEvent::Custom { data } => custom(namespace, data, &mut out),
            // What is asked inside a call is asked by the run, too.
            LogEvent::Paused { .. } if !namespace.is_empty() => {}
            LogEvent::Paused { interrupts } => {
                for asked in interrupts {
                    out.input(&asked.id, &json!({"interrupt_id": asked.id, "payload": asked.value}));
                }
                self.settle("interrupted", None, &mut out);
            }
            LogEvent::Failed(failure) => {
                self.cut_off(Some(&failure.message), &mut out);
                self.settle("failed", Some(&failure.message), &mut out);
            }
            LogEvent::Ended { status } => {
                self.cut_off(None, &mut out);
                let word = match status {
                    RunStatus::Success => "completed",
                    RunStatus::Interrupted => "interrupted",
                    _ => "failed",
                };
                self.settle(word, None, &mut out);
            }
        }
        out.envelopes
    }

    fn entered(&mut self, namespace: &[String], agent: &str, out: &mut Out<'_>) {
        let Some(own) = namespace.last() else { return };
        let mut data = json!({
            "event": "started", "namespace": namespace, "graph_name": agent,
            "trigger_call_id": own.split_once(':').map_or(own.as_str(), |(_, task)| task),
        });
        if let (Some(call), Some(map)) = (self.calls.get(namespace), data.as_object_mut()) {
            map.insert("cause".to_owned(), json!({"type": "toolCall", "tool_call_id": call.get("id")}));
        }
        out.lifecycle(namespace, "started", data);
        self.inside.insert(namespace.to_vec(), agent.to_owned());
    }

    fn chunk(&mut self, namespace: &[String], task: &Task, message: &RawValue, out: &mut Out<'_>) {
        let Ok(fragment) = serde_json::from_str::<Fragment>(message.get()) else { return };
        let mut say = |data: Value| out.say(Channel::Messages, namespace, &data);
        let mut spoken = match self.spoken.remove(namespace) {
            Some(spoken) if fragment.id.as_ref().is_none_or(|id| *id == spoken.id) => spoken,
            // The one before was given up, and begun anew under another id.
            before => {
                if let Some(before) = before {
                    before.cut_off(None, &mut say);
                }
                Spoken::start(&fragment, task, &mut say)
            }
        };
        spoken.add(fragment, &mut say);
        self.spoken.insert(namespace.to_vec(), spoken);
    }

    /// One that was not streamed.
    fn message(&mut self, namespace: &[String], task: &Task, message: &RawValue, out: &mut Out<'_>) {
        let Ok(message) = serde_json::from_str::<Value>(message.get()) else { return };
        if message.get("type").and_then(Value::as_str) != Some("tool") {
            return spoken::whole(&message, &mut |data| out.say(Channel::Messages, namespace, &data));
        }
        let call = message.get("tool_call_id").cloned().unwrap_or_default();
        let failed = message.get("status").and_then(Value::as_str) == Some("error");
        let data = match failed {
            true => json!({"event": "tool-error", "tool_call_id": call, "message": message.get("content")}),
            false => json!({"event": "tool-finished", "tool_call_id": call, "output": message}),
        };
        out.say(Channel::Tools, namespace, &data);
        let mut inside = namespace.to_vec();
        inside.push(format!("tools:{}", call.as_str().unwrap_or_default()));
        spoken::whole(&message, &mut |data| out.say(Channel::Messages, &inside, &data));
        // The agent inside of the call goes with it.
        self.left(&below(namespace, task), if failed { "failed" } else { "completed" }, out);
    }

    fn started(&mut self, namespace: &[String], task: &Task, input: &RawValue, out: &mut Out<'_>) {
        if task.node == "tools" {
            let call: Value = serde_json::from_str(input.get()).unwrap_or_default();
            let data = json!({
                "event": "tool-started", "tool_call_id": call.get("id"), "tool_name": call.get("name"),
                "input": call.get("args"),
            });
            out.say(Channel::Tools, namespace, &data);
            self.calls.insert(below(namespace, task), call);
        }
        let data = json!({
            "id": task.id, "name": task.node, "input": input,
            "triggers": [format!("branch:to:{}", task.node)], "metadata": {},
        });
        out.say(Channel::Tasks, namespace, &data);
    }

    fn finished(&mut self, namespace: &[String], task: &Task, result: &RawValue, out: &mut Out<'_>) {
        self.calls.remove(&below(namespace, task));
        if task.node == "model"
            && let Some(spoken) = self.spoken.remove(namespace)
        {
            let update: Map<String, Value> = serde_json::from_str(result.get()).unwrap_or_default();
            let messages = update.get("messages").and_then(Value::as_array);
            let is_it = |message: &&Value| message.get("id").and_then(Value::as_str) == Some(&spoken.id);
            let whole = messages.and_then(|messages| messages.iter().find(is_it));
            spoken.finish(whole, &mut |data| out.say(Channel::Messages, namespace, &data));
        }
        let data = json!({
            "id": task.id, "name": task.node, "error": null, "result": result, "interrupts": [],
        });
        out.say(Channel::Tasks, namespace, &data);
    }

    /// What was under way when the run ended: messages that stay unfinished, calls without a result.
    fn cut_off(&mut self, why: Option<&str>, out: &mut Out<'_>) {
        let mut spoken: Vec<_> = self.spoken.drain().collect();
        spoken.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (namespace, spoken) in spoken {
            spoken.cut_off(why, &mut |data| out.say(Channel::Messages, &namespace, &data));
        }
        for (inside, call) in std::mem::take(&mut self.calls) {
            let above = inside.split_last().map(|(_, above)| above).unwrap_or_default();
            if let Some(why) = why {
                let data = json!({"event": "tool-error", "tool_call_id": call.get("id"), "message": why});
                out.say(Channel::Tools, above, &data);
            }
        }
        let word = if why.is_some() { "failed" } else { "interrupted" };
        for inside in self.inside.keys().cloned().collect::<Vec<_>>() {
            self.left(&inside, word, out);
        }
    }

    fn left(&mut self, namespace: &[String], word: &str, out: &mut Out<'_>) {
        if let Some(agent) = self.inside.remove(namespace) {
            out.lifecycle(namespace, word, json!({"event": word, "graph_name": agent}));
        }
    }

    fn settle(&mut self, word: &str, error: Option<&str>, out: &mut Out<'_>) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let mut data = json!({"event": word, "graph_name": self.graph});
        if let (Some(error), Some(map)) = (error, data.as_object_mut()) {
            map.insert("error".to_owned(), error.into());
        }
        out.lifecycle(&[], word, data);
    }
}

/// The namespace of what happens inside a task.
fn below(namespace: &[String], task: &Task) -> Vec<String> {
    namespace.iter().cloned().chain([task.namespace()]).collect()
}

fn checkpoint(step: &StepRef) -> Value {
    let mut data = json!({"id": step.name(), "step": step.step, "source": source(step.source)});
    if let (Some(parent), Some(map)) = (&step.parent, data.as_object_mut()) {
        map.insert("parent_id".to_owned(), parent.as_str().into());
    }
    data
}

/// A tool's own words while it works belong to the tool.
fn custom(namespace: &[String], data: &Value, out: &mut Out<'_>) {
    let word = |key: &str| data.get(key).and_then(Value::as_str);
    if word("type") == Some("tool_progress") {
        let (call, text) = (data.get("tool_call_id"), data.get("text"));
        let data = json!({"event": "tool-output-delta", "tool_call_id": call, "delta": text});
        return out.say(Channel::Tools, namespace, &data);
    }
    let name = word("name").or_else(|| word("type")).map(str::to_owned);
    let mut event = json!({});
    if let Some(map) = event.as_object_mut() {
        map.extend(name.as_deref().map(|name| ("name".to_owned(), name.into())));
        map.insert("payload".to_owned(), data.clone());
    }
    out.say(Channel::Custom, namespace, &event);
    if let Some(last) = out.envelopes.last_mut() {
        last.name = name;
    }
}

/// The envelopes of one entry, numbered as they are made.
struct Out<'a> {
    run: &'a hart_types::RunId,
    entry: &'a Entry,
    made: u32,
    envelopes: Vec<Envelope>,
}

impl Out<'_> {
    fn add(&mut self, channel: Channel, namespace: &[String], data: Bytes) {
        let id = match self.made {
            0 => self.entry.id.to_string(),
            made => format!("{}.{made}", self.entry.id),
        };
        self.made += 1;
        self.push(id, channel, namespace, data);
    }

    fn say(&mut self, channel: Channel, namespace: &[String], data: &Value) {
        self.add(channel, namespace, bytes(data));
    }

    fn lifecycle(&mut self, namespace: &[String], word: &str, data: Value) {
        let id = format!("synth:{}:lc|{}|{word}", self.run, namespace.join("|"));
        self.push(id, Channel::Lifecycle, namespace, bytes(&data));
    }

    fn input(&mut self, asked: &str, data: &Value) {
        let id = format!("synth:{}:input||{asked}", self.run);
        self.push(id, Channel::Input, &[], bytes(data));
    }

    fn push(&mut self, id: String, channel: Channel, namespace: &[String], data: Bytes) {
        let (namespace, ms) = (namespace.to_vec(), self.entry.id.ms);
        self.envelopes.push(Envelope { id, channel, namespace, ms, data, name: None });
    }
}
