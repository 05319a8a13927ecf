//! What is streamed: LangGraph's frames as they come, and DeerFlow's as its own client yields them.
//!
//! Invariant: a frame is plain JSON; whoever reads it needs no hart.

use bytes::Bytes;
use hart_types::{EventId, Message, REASONING_CONTENT, UsageMetadata};
use serde::Serialize;
use serde_json::{Value, json};

use crate::event::{End, Event};

/// One frame of a run's stream, as the server sends it. `data` is JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFrame {
    pub event: String,
    pub data: Bytes,
    pub id: Option<EventId>,
}

impl StreamFrame {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.data).unwrap_or_default()
    }
}

/// An event as DeerFlow's client yields it: `values`, `messages-tuple`, `custom` and, last, `end` with the run's usage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    pub event: &'static str,
    pub data: Value,
}

impl From<&Event> for Frame {
    fn from(event: &Event) -> Self {
        match event {
            Event::Text { id, text } => tuple(json!({"type": "ai", "content": text, "id": id})),
            Event::Withdrawn { id } => tuple(json!({"type": "remove", "content": "", "id": id})),
            Event::Reasoning { id, text } => {
                let kwargs = json!({ (REASONING_CONTENT): text });
                tuple(json!({"type": "ai", "content": "", "id": id, "additional_kwargs": kwargs}))
            }
            Event::ToolCalls { id, calls } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| json!({"name": call.name, "args": call.args, "id": call.id}))
                    .collect();
                tuple(json!({"type": "ai", "content": "", "id": id, "tool_calls": calls}))
            }
            Event::ToolResult(message) => tuple(tool_result(message)),
            Event::Usage { id, usage } => {
                tuple(json!({"type": "ai", "content": "", "id": id, "usage_metadata": usage}))
            }
            Event::ToolStarted(call) => Self { event: "tool_started", data: json!(call) },
            Event::ToolProgress { call, text } => {
                Self { event: "tool_progress", data: json!({"tool_call_id": call, "text": text}) }
            }
            Event::Updates { node, update } => {
                Self { event: "updates", data: json!({ (node.as_str()): update }) }
            }
            Event::Values(values) => Self { event: "values", data: values.to_json().into() },
            Event::Paused(interrupts) => {
                Self { event: "updates", data: json!({ "__interrupt__": interrupts }) }
            }
            Event::Custom(data) => Self { event: "custom", data: data.clone() },
            Event::End(End { usage, interrupts, .. }) => {
                let status = if interrupts.is_empty() { "success" } else { "paused" };
                let UsageMetadata { input_tokens, output_tokens, total_tokens, .. } = usage;
                let usage = json!({
                    "input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": total_tokens,
                });
                Self { event: "end", data: json!({"status": status, "usage": usage}) }
            }
        }
    }
}

fn tuple(data: Value) -> Frame {
    Frame { event: "messages-tuple", data }
}

fn tool_result(message: &Message) -> Value {
    let result = message.as_tool_result();
    let mut data = json!({
        "type": "tool", "content": message.text(), "name": message.name,
        "tool_call_id": result.map(|result| &result.tool_call_id), "id": message.id,
    });
    if let (Some(artifact), Value::Object(map)) = (result.and_then(|it| it.artifact.as_ref()), &mut data) {
        map.insert("artifact".to_owned(), artifact.clone());
    }
    data
}
