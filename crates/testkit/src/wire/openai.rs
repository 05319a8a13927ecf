//! The OpenAI dialect: chat completions, streamed and whole.
//!
//! Invariant: the first delta names the role, the last chunk with a choice names the finish reason, and a usage
//! chunk has no choice.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, stop_word};
use crate::request::Dialect;
use crate::turn::{Part, Turn, Usage};

/// Fixed, so that two runs of a test see the same bytes.
const CREATED: u64 = 1_700_000_000;

pub(super) fn events(turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    let has_text = turn.parts.iter().any(|part| matches!(part, Part::Text(_)));
    let content = if has_text { json!("") } else { Value::Null };
    let mut out = vec![delta(json!({"role": "assistant", "content": content, "refusal": null}), asked)];
    let mut calls = 0;
    for part in &turn.parts {
        match part {
            Part::Reasoning { text, .. } => {
                let field = turn.reasoning_field;
                out.extend(turn.fragments(text).iter().map(|piece| delta(json!({field: piece}), asked)));
            }
            Part::RedactedReasoning(_) => {}
            Part::Text(fragments) => {
                let pieces = fragments.iter().flat_map(|fragment| turn.fragments(fragment));
                out.extend(pieces.map(|piece| delta(json!({"content": piece}), asked)));
            }
            Part::ToolCall { id, name, args, .. } => {
                let function = json!({"name": name, "arguments": ""});
                let opening = json!({"index": calls, "id": id, "type": "function", "function": function});
                out.push(delta(json!({"tool_calls": [opening]}), asked));
                for piece in turn.fragments(args) {
                    let more = json!({"index": calls, "function": {"arguments": piece}});
                    out.push(delta(json!({"tool_calls": [more]}), asked));
                }
                calls += 1;
            }
        }
    }
    if let Some((kind, message)) = &turn.stream_error {
        out.push(event(&error_of(kind, message)));
        return out;
    }
    out.push(chunk(json!([choice(json!({}), json!(stop_word(Dialect::OpenAi, turn)))]), Value::Null, asked));
    if let Some(counts) = turn.usage.filter(|_| asked.include_usage) {
        out.push(chunk(json!([]), usage(counts), asked));
    }
    if turn.done_marker {
        out.push(Bytes::from_static(b"data: [DONE]\n\n"));
    }
    out
}

pub(super) fn message(turn: &Turn, asked: &Asked) -> Value {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Reasoning { text, .. } => reasoning.push_str(text),
            Part::RedactedReasoning(_) => {}
            Part::Text(fragments) => text.extend(fragments.iter().map(String::as_str)),
            Part::ToolCall { id, name, args, .. } => {
                let function = json!({"name": name, "arguments": args});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !reasoning.is_empty() {
        message[turn.reasoning_field] = json!(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let finish = stop_word(Dialect::OpenAi, turn);
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
    let mut whole = json!({
        "id": format!("chatcmpl-{}", asked.seq),
        "object": "chat.completion",
        "created": CREATED,
        "model": asked.model,
        "choices": [choice],
    });
    if let Some(counts) = turn.usage {
        whole["usage"] = usage(counts);
    }
    whole
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    error_of(kind, message)
}

pub(super) fn models() -> Value {
    let model = json!({"id": "mock", "object": "model", "created": CREATED, "owned_by": "testkit"});
    json!({"object": "list", "data": [model]})
}

fn delta(delta: Value, asked: &Asked) -> Bytes {
    chunk(json!([choice(delta, Value::Null)]), Value::Null, asked)
}

fn choice(delta: Value, finish_reason: Value) -> Value {
    json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason})
}

/// With `include_usage`, every chunk has a usage field, null in all but the last.
fn chunk(choices: Value, usage: Value, asked: &Asked) -> Bytes {
    let mut chunk = json!({
        "id": format!("chatcmpl-{}", asked.seq),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": asked.model,
        "choices": choices,
    });
    if asked.include_usage {
        chunk["usage"] = usage;
    }
    event(&chunk)
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\n\n"))
}

fn usage(counts: Usage) -> Value {
    json!({
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    })
}

fn error_of(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}
