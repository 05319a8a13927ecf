//! The `events` mode: what LangChain calls `astream_events`, told of a run, its nodes, its model and its tools.
//!
//! Invariant: whatever starts ends, under the same `run_id`; parents are named from the outermost on.

use std::sync::Arc;

use bytes::Bytes;
use hart_types::RunStatus;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::bytes;
use crate::event::{LogEvent, Task};
use crate::{Entry, Run};

/// What must be remembered to tell of ends what their beginnings were given.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The state as it was last.
    values: Option<Bytes>,
    /// The call a tool was started with, by task.
    calls: Vec<(String, Value)>,
}

impl Chain {
    /// `metadata` is that of the entry's task, if it has one.
    pub(super) fn render(
        &mut self,
        run: &Run,
        entry: &Entry,
        values: Option<&Bytes>,
        metadata: Option<Arc<str>>,
    ) -> Vec<Bytes> {
        if let (Some(values), true) = (values, entry.logged.namespace.is_empty()) {
            self.values = Some(values.clone());
        }
        let mut told = Vec::new();
        let mut tell = |of: &Of<'_>, event: &str, data: Value| {
            told.push(bytes(&json!({
                "event": event, "data": data, "name": of.name, "tags": of.tags, "run_id": of.id,
                "metadata": of.metadata, "parent_ids": of.parents,
            })));
        };
        match &entry.logged.event {
            LogEvent::Started { .. } => {
                let input = run.kwargs.get("input").cloned().unwrap_or_default();
                tell(&whole(run), "on_chain_start", json!({ "input": input }));
            }
            LogEvent::TaskStarted { task, input } => {
                let node = node(run, task, metadata.as_deref());
                if task.node == "model" {
                    tell(&node, "on_chain_start", json!({"input": self.state()}));
                    let model = inside(&node, task, "model");
                    tell(&model, "on_chat_model_start", json!({"input": {"messages": [self.messages()]}}));
                } else {
                    let call: Value = serde_json::from_str(input.get()).unwrap_or_default();
                    tell(&node, "on_chain_start", json!({"input": [call]}));
                    let tool = inside(&node, task, text(&call, "name"));
                    tell(&tool, "on_tool_start", json!({"input": call.get("args")}));
                    self.calls.push((task.id.clone(), call.clone()));
                }
            }
            LogEvent::Chunk { task, message } => {
                let node = node(run, task, metadata.as_deref());
                tell(&inside(&node, task, "model"), "on_chat_model_stream", json!({ "chunk": message }));
            }
            LogEvent::Message { task, message } => {
                if let Some(call) = self.call(task) {
                    let node = node(run, task, metadata.as_deref());
                    let data = json!({"output": message, "input": call.get("args")});
                    tell(&inside(&node, task, text(&call, "name")), "on_tool_end", data);
                }
            }
            LogEvent::TaskFinished { interrupts, error, .. } if !interrupts.is_empty() || error.is_some() => {
            }
            LogEvent::TaskFinished { task, result, .. } => {
                let node = node(run, task, metadata.as_deref());
                let (input, output) = if task.node == "model" {
                    let data = json!({"output": answer(result), "input": {"messages": [self.messages()]}});
                    tell(&inside(&node, task, "model"), "on_chat_model_end", data);
                    let output = json!([{"graph": null, "update": result, "resume": null, "goto": []}]);
                    (json!(self.state()), output)
                } else {
                    let called: Vec<Value> = self.call(task).into_iter().collect();
                    (called.into(), json!(result))
                };
                self.calls.retain(|(id, _)| *id != task.id);
                tell(&node, "on_chain_stream", json!({"chunk": output}));
                tell(&node, "on_chain_end", json!({"output": output, "input": input}));
            }
            // Its failure was the last word.
            LogEvent::Ended { status: RunStatus::Error | RunStatus::Timeout } => {}
            LogEvent::Ended { .. } => {
                tell(&whole(run), "on_chain_end", json!({"output": self.state()}));
            }
            _ => {}
        }
        told
    }

    fn state(&self) -> Option<Box<RawValue>> {
        self.values.as_ref().and_then(|values| serde_json::from_slice(values).ok())
    }

    fn messages(&self) -> Value {
        let state: Option<Value> =
            self.values.as_ref().and_then(|values| serde_json::from_slice(values).ok());
        state.and_then(|mut state| state.get_mut("messages").map(Value::take)).unwrap_or_default()
    }

    fn call(&self, task: &Task) -> Option<Value> {
        self.calls.iter().find(|(id, _)| *id == task.id).map(|(_, call)| call.clone())
    }
}

/// Who an event is of.
struct Of<'a> {
    name: &'a str,
    id: String,
    tags: Vec<Value>,
    metadata: Value,
    parents: Vec<String>,
}

fn whole(run: &Run) -> Of<'_> {
    let mut metadata: Map<String, Value> = run.metadata.clone();
    metadata.insert("thread_id".to_owned(), run.thread.as_str().into());
    metadata.insert("run_id".to_owned(), run.id.as_str().into());
    Of {
        name: run.name(),
        id: run.id.to_string(),
        tags: run.tags().to_vec(),
        metadata: metadata.into(),
        parents: Vec::new(),
    }
}

fn node<'a>(run: &Run, task: &'a Task, metadata: Option<&str>) -> Of<'a> {
    let metadata = metadata.and_then(|metadata| serde_json::from_str(metadata).ok()).unwrap_or_default();
    let tags = [format!("graph:step:{}", task.step).into()].into_iter().chain(run.tags().to_vec()).collect();
    Of { name: &task.node, id: task.id.clone(), tags, metadata, parents: vec![run.id.to_string()] }
}

/// The model or the tool that a node runs.
fn inside<'a>(node: &Of<'_>, task: &Task, name: &'a str) -> Of<'a> {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{}/inside", task.id).as_bytes()).to_string();
    let parents = node.parents.iter().chain([&node.id]).cloned().collect();
    let tags = ["seq:step:1".into()].into_iter().chain(node.tags.iter().skip(1).cloned()).collect();
    Of { name, id, tags, metadata: node.metadata.clone(), parents }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The message that a model's update holds.
fn answer(update: &RawValue) -> Value {
    let mut update: Value = serde_json::from_str(update.get()).unwrap_or_default();
    let messages = update.get_mut("messages").and_then(Value::as_array_mut);
    messages
        .and_then(|messages| messages.iter_mut().rev().find(|message| text(message, "type") == "ai"))
        .map(Value::take)
        .unwrap_or_default()
}
