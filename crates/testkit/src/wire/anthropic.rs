//! The Anthropic dialect: messages, streamed and whole.
//!
//! Invariant: every content block is started, filled and stopped before the next one starts.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, stop_word};
use crate::request::Dialect;
use crate::turn::{Part, Turn, Usage};

pub(super) fn events(turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    let mut start = envelope(asked, json!([]), Value::Null);
    if let Some(counts) = turn.usage {
        start["usage"] = usage(counts, 1);
    }
    let mut out = vec![event(&json!({"type": "message_start", "message": start}))];
    // The provider's ping comes after the first block has opened; an empty answer has it right away.
    let mut pinged = turn.parts.is_empty();
    if pinged {
        out.push(ping());
    }
    for (index, part) in turn.parts.iter().enumerate() {
        out.push(event(
            &json!({"type": "content_block_start", "index": index, "content_block": opening(part)}),
        ));
        if !pinged {
            out.push(ping());
            pinged = true;
        }
        let deltas = deltas(turn, part).into_iter();
        out.extend(
            deltas
                .map(|delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))),
        );
        out.push(event(&json!({"type": "content_block_stop", "index": index})));
    }
    if let Some((kind, message)) = &turn.stream_error {
        out.push(event(&json!({"type": "error", "error": {"type": kind, "message": message}})));
        return out;
    }
    let stop = json!({"stop_reason": stop_word(Dialect::Anthropic, turn), "stop_sequence": null});
    let mut end = json!({"type": "message_delta", "delta": stop});
    if let Some(counts) = turn.usage {
        end["usage"] = json!({"output_tokens": counts.output});
    }
    out.push(event(&end));
    if turn.done_marker {
        out.push(event(&json!({"type": "message_stop"})));
    }
    out
}

pub(super) fn message(turn: &Turn, asked: &Asked) -> Value {
    let content: Vec<_> = turn.parts.iter().map(whole).collect();
    let stop = json!(stop_word(Dialect::Anthropic, turn));
    let mut message = envelope(asked, json!(content), stop);
    if let Some(counts) = turn.usage {
        message["usage"] = usage(counts, counts.output);
    }
    message
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"})
}

pub(super) fn models() -> Value {
    let created = "2023-11-14T22:13:20Z";
    let model = json!({"type": "model", "id": "mock", "display_name": "Mock", "created_at": created});
    json!({"data": [model], "has_more": false, "first_id": "mock", "last_id": "mock"})
}

/// A block as `content_block_start` shows it: present, and empty but for what is never streamed.
fn opening(part: &Part) -> Value {
    match part {
        Part::Reasoning { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Part::RedactedReasoning(data) => json!({"type": "redacted_thinking", "data": data}),
        Part::Text(_) => json!({"type": "text", "text": ""}),
        Part::ToolCall { id, name, .. } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
    }
}

fn deltas(turn: &Turn, part: &Part) -> Vec<Value> {
    match part {
        Part::Reasoning { text, signature } => {
            let pieces = turn.fragments(text).into_iter();
            let mut deltas: Vec<_> =
                pieces.map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
            deltas.extend(signature.iter().map(|s| json!({"type": "signature_delta", "signature": s})));
            deltas
        }
        Part::RedactedReasoning(_) => Vec::new(),
        Part::Text(fragments) => {
            let pieces = fragments.iter().flat_map(|fragment| turn.fragments(fragment));
            pieces.map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        Part::ToolCall { args, .. } => {
            let pieces = std::iter::once(String::new()).chain(turn.fragments(args));
            pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        }
    }
}

fn whole(part: &Part) -> Value {
    match part {
        Part::Reasoning { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or_default()})
        }
        Part::RedactedReasoning(_) => opening(part),
        Part::Text(fragments) => json!({"type": "text", "text": fragments.concat()}),
        Part::ToolCall { id, name, args, .. } => {
            // A whole message cannot carry broken JSON; the nearest misbehaviour is an input that is no object.
            let input = serde_json::from_str(args).unwrap_or_else(|_| json!(args));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
    }
}

fn envelope(asked: &Asked, content: Value, stop_reason: Value) -> Value {
    json!({
        "id": format!("msg_{}", asked.seq),
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
    })
}

/// Anthropic counts the uncached, the written and the cached part of the prompt apart.
fn usage(counts: Usage, output: u64) -> Value {
    json!({
        "input_tokens": counts.input.saturating_sub(counts.cached + counts.cache_written),
        "cache_creation_input_tokens": counts.cache_written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": output,
    })
}

fn ping() -> Bytes {
    event(&json!({"type": "ping"}))
}

fn event(data: &Value) -> Bytes {
    let name = data["type"].as_str().expect("every event has a type");
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
