//! The dialect of OpenAI's Responses: a stream of items, each opened, filled and closed.
//!
//! Invariant: every event carries the next sequence number, and what the last event repeats is what was streamed.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, stop_word};
use crate::request::Dialect;
use crate::turn::{Part, Turn, Usage};

/// Fixed, so that two runs of a test see the same bytes.
const CREATED: u64 = 1_700_000_000;

pub(super) fn events(turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    let mut stream = Stream::default();
    for kind in ["response.created", "response.in_progress"] {
        stream.push(kind, json!({"response": envelope(asked, "in_progress", json!([]))}));
    }
    for (index, part) in turn.parts.iter().enumerate() {
        let item = item(part, asked, index);
        let mut added = item.clone();
        empty(&mut added);
        stream.push("response.output_item.added", json!({"output_index": index, "item": added}));
        stream.fill(turn, part, &item, index);
        stream.push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    if let Some((code, message)) = &turn.stream_error {
        // Documented flat, sent nested.
        stream
            .push("error", json!({"error": {"type": code, "code": code, "message": message, "param": null}}));
        return stream.events;
    }
    let whole = message(turn, asked);
    let kind = format!("response.{}", whole["status"].as_str().expect("a status"));
    stream.push(&kind, json!({"response": whole}));
    stream.events
}

pub(super) fn message(turn: &Turn, asked: &Asked) -> Value {
    let output = turn.parts.iter().enumerate().map(|(index, part)| item(part, asked, index)).collect();
    let reason = match stop_word(Dialect::Responses, turn) {
        "length" => Some("max_output_tokens"),
        "stop" | "tool_calls" => None,
        other => Some(other),
    };
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let mut whole = envelope(asked, status, output);
    if let Some(reason) = reason {
        whole["incomplete_details"] = json!({"reason": reason});
    }
    if let Some(counts) = turn.usage {
        whole["usage"] = usage(counts);
    }
    whole
}

#[derive(Default)]
struct Stream {
    events: Vec<Bytes>,
}

impl Stream {
    fn push(&mut self, kind: &str, fields: Value) {
        let mut data = json!({"type": kind});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
            // Last, so that a growing number does not move what stands before it.
            data.insert("sequence_number".to_owned(), self.events.len().into());
        }
        self.events.push(Bytes::from(format!("event: {kind}\ndata: {data}\n\n")));
    }

    /// What comes between the opening and the closing of an item.
    fn fill(&mut self, turn: &Turn, part: &Part, item: &Value, index: usize) {
        let at = |more: Value| {
            let mut fields = json!({"item_id": item["id"], "output_index": index});
            if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
                fields.extend(more);
            }
            fields
        };
        match part {
            Part::Reasoning { text, .. } => {
                let part =
                    |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
                self.push("response.reasoning_summary_part.added", at(part("")));
                for piece in turn.fragments(text) {
                    let delta = at(json!({"summary_index": 0, "delta": piece}));
                    self.push("response.reasoning_summary_text.delta", delta);
                }
                let done = at(json!({"summary_index": 0, "text": text}));
                self.push("response.reasoning_summary_text.done", done);
                self.push("response.reasoning_summary_part.done", at(part(text)));
            }
            Part::RedactedReasoning(_) => {}
            Part::Text(fragments) => {
                let part = |text: &str| json!({"content_index": 0, "part": output_text(text)});
                self.push("response.content_part.added", at(part("")));
                for piece in fragments.iter().flat_map(|fragment| turn.fragments(fragment)) {
                    let delta = at(json!({"content_index": 0, "delta": piece, "logprobs": []}));
                    self.push("response.output_text.delta", delta);
                }
                let text = fragments.concat();
                let done = at(json!({"content_index": 0, "text": text, "logprobs": []}));
                self.push("response.output_text.done", done);
                self.push("response.content_part.done", at(part(&text)));
            }
            Part::ToolCall { args, .. } => {
                for piece in turn.fragments(args) {
                    self.push("response.function_call_arguments.delta", at(json!({"delta": piece})));
                }
                self.push("response.function_call_arguments.done", at(json!({"arguments": args})));
            }
        }
    }
}

fn item(part: &Part, asked: &Asked, index: usize) -> Value {
    let id = |prefix: &str| format!("{prefix}_{}_{index}", asked.seq);
    let reasoning = |summary: Value, encrypted: Option<&str>| {
        let mut item = json!({"id": id("rs"), "type": "reasoning", "summary": summary});
        if let Some(encrypted) = encrypted.filter(|_| asked.include_encrypted) {
            item["encrypted_content"] = json!(encrypted);
        }
        item
    };
    match part {
        Part::Reasoning { text, signature } => {
            reasoning(json!([{"type": "summary_text", "text": text}]), signature.as_deref())
        }
        Part::RedactedReasoning(data) => reasoning(json!([]), Some(data)),
        Part::Text(fragments) => json!({
            "id": id("msg"),
            "type": "message",
            "status": "completed",
            "content": [output_text(&fragments.concat())],
            "role": "assistant",
        }),
        Part::ToolCall { id: call_id, name, args, .. } => json!({
            "id": id("fc"),
            "type": "function_call",
            "status": "completed",
            "arguments": args,
            "call_id": call_id,
            "name": name,
        }),
    }
}

/// An item as its opening shows it: all of it but what is streamed.
fn empty(item: &mut Value) {
    for (key, nothing) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
        if item.get(key).is_some() {
            item[key] = nothing;
        }
    }
    if item.get("status").is_some() {
        item["status"] = json!("in_progress");
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn envelope(asked: &Asked, status: &str, output: Value) -> Value {
    json!({
        "id": format!("resp_{}", asked.seq),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": asked.model,
        "output": output,
        "usage": null,
    })
}

fn usage(counts: Usage) -> Value {
    json!({
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    })
}
