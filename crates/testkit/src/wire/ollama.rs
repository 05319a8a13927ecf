//! The Ollama dialect: a chat, line by line and whole.
//!
//! Invariant: every line is one JSON object, and only the last one is `done`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, stop_word};
use crate::request::Dialect;
use crate::turn::{Part, Turn};

/// Fixed, so that two runs of a test see the same bytes.
const CREATED: &str = "2023-11-14T22:13:20Z";

pub(super) fn lines(turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    let mut out = Vec::new();
    let mut say = |message: Value| out.push(line(&envelope(&message, asked, false)));
    let mut calls = 0;
    for part in &turn.parts {
        match part {
            Part::Reasoning { text, .. } => turn
                .fragments(text)
                .iter()
                .for_each(|piece| say(json!({"role": "assistant", "content": "", "thinking": piece}))),
            Part::RedactedReasoning(_) => {}
            Part::Text(fragments) => fragments
                .iter()
                .flat_map(|fragment| turn.fragments(fragment))
                .for_each(|piece| say(json!({"role": "assistant", "content": piece}))),
            Part::ToolCall { id, name, args, .. } => {
                say(json!({"role": "assistant", "content": "", "tool_calls": [call(calls, id, name, args)]}));
                calls += 1;
            }
        }
    }
    if let Some((_, message)) = &turn.stream_error {
        out.push(line(&error(message)));
        return out;
    }
    out.push(line(&done(turn, asked, &json!({"role": "assistant", "content": ""}))));
    out
}

pub(super) fn message(turn: &Turn, asked: &Asked) -> Value {
    let mut message = json!({"role": "assistant", "content": ""});
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for part in &turn.parts {
        match part {
            Part::Reasoning { text, .. } => thinking.push_str(text),
            Part::RedactedReasoning(_) => {}
            Part::Text(fragments) => text.extend(fragments.iter().map(String::as_str)),
            Part::ToolCall { id, name, args, .. } => calls.push(call(calls.len(), id, name, args)),
        }
    }
    message["content"] = json!(text);
    if !thinking.is_empty() {
        message["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    done(turn, asked, &message)
}

pub(super) fn error(message: &str) -> Value {
    json!({"error": message})
}

pub(super) fn models() -> Value {
    let details = json!({"format": "gguf", "family": "mock", "parameter_size": "1B"});
    json!({"models": [{"name": "mock", "model": "mock", "modified_at": CREATED, "size": 1, "details": details}]})
}

fn call(index: usize, id: &str, name: &str, args: &str) -> Value {
    // A line cannot carry broken JSON; the nearest misbehaviour is arguments that are no object.
    let args = serde_json::from_str(args).unwrap_or_else(|_| json!(args));
    let mut call = json!({"function": {"index": index, "name": name, "arguments": args}});
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    call
}

fn done(turn: &Turn, asked: &Asked, message: &Value) -> Value {
    let mut whole = envelope(message, asked, true);
    whole["done_reason"] = json!(stop_word(Dialect::Ollama, turn));
    whole["total_duration"] = json!(1_000_000);
    if let Some(counts) = turn.usage {
        whole["prompt_eval_count"] = json!(counts.input);
        whole["eval_count"] = json!(counts.output);
    }
    whole
}

fn envelope(message: &Value, asked: &Asked, done: bool) -> Value {
    json!({"model": asked.model, "created_at": CREATED, "message": message, "done": done})
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}
