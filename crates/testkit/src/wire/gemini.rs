//! The Gemini dialect: generated content, streamed and whole.
//!
//! Invariant: a call is never split over events, and only the last event names the finish reason.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, stop_word};
use crate::request::Dialect;
use crate::turn::{Part, Turn, Usage};

pub(super) fn events(turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    let mut out = Vec::new();
    for part in &turn.parts {
        let texts = match part {
            Part::Reasoning { text, .. } => turn.fragments(text),
            Part::Text(fragments) => fragments.iter().flat_map(|fragment| turn.fragments(fragment)).collect(),
            Part::RedactedReasoning(_) => Vec::new(),
            Part::ToolCall { id, name, args, signature } => {
                out.push(chunk(&[call(id, name, args, signature.as_deref())], asked));
                continue;
            }
        };
        let thought = matches!(part, Part::Reasoning { .. });
        out.extend(texts.iter().map(|piece| chunk(&[text(piece, thought)], asked)));
        // The provider sends the signature of a text behind it, on a part of its own.
        if let Part::Reasoning { signature: Some(signature), .. } = part {
            let signed = json!({"text": "", "thought": true, "thoughtSignature": signature});
            out.push(chunk(&[signed], asked));
        }
    }
    if let Some((kind, message)) = &turn.stream_error {
        let status = match kind.as_str() {
            "overloaded_error" => 503,
            "rate_limit_error" => 429,
            "authentication_error" => 401,
            "invalid_request_error" => 400,
            _ => 500,
        };
        out.push(event(&error(status, message)));
        return out;
    }
    let mut last = envelope(&[json!({"text": ""})], asked);
    last["candidates"][0]["finishReason"] = json!(stop_word(Dialect::Gemini, turn));
    if let Some(counts) = turn.usage {
        last["usageMetadata"] = usage(counts);
    }
    out.push(event(&last));
    out
}

pub(super) fn message(turn: &Turn, asked: &Asked) -> Value {
    let mut parts = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Reasoning { text: said, signature } => {
                let mut part = text(said, true);
                if let Some(signature) = signature {
                    part["thoughtSignature"] = json!(signature);
                }
                parts.push(part);
            }
            Part::RedactedReasoning(_) => {}
            Part::Text(fragments) => parts.push(text(&fragments.concat(), false)),
            Part::ToolCall { id, name, args, signature } => {
                parts.push(call(id, name, args, signature.as_deref()));
            }
        }
    }
    let mut whole = envelope(&parts, asked);
    whole["candidates"][0]["finishReason"] = json!(stop_word(Dialect::Gemini, turn));
    if let Some(counts) = turn.usage {
        whole["usageMetadata"] = usage(counts);
    }
    whole
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let word = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": word}})
}

pub(super) fn models() -> Value {
    let methods = ["generateContent", "streamGenerateContent", "countTokens"];
    json!({"models": [{"name": "models/mock", "displayName": "Mock", "supportedGenerationMethods": methods}]})
}

fn text(text: &str, thought: bool) -> Value {
    if thought { json!({"text": text, "thought": true}) } else { json!({"text": text}) }
}

fn call(id: &str, name: &str, args: &str, signature: Option<&str>) -> Value {
    // An event cannot carry broken JSON; the nearest misbehaviour is arguments that are no object.
    let args = serde_json::from_str(args).unwrap_or_else(|_| json!(args));
    let mut call = json!({"name": name, "args": args});
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    let mut part = json!({"functionCall": call});
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn chunk(parts: &[Value], asked: &Asked) -> Bytes {
    event(&envelope(parts, asked))
}

fn envelope(parts: &[Value], asked: &Asked) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": asked.model,
        "responseId": format!("resp-{}", asked.seq),
    })
}

fn event(data: &Value) -> Bytes {
    Bytes::from(format!("data: {data}\r\n\r\n"))
}

/// The cached part is within the prompt; thoughts are apart from the answer.
fn usage(counts: Usage) -> Value {
    json!({
        "promptTokenCount": counts.input,
        "cachedContentTokenCount": counts.cached,
        "candidatesTokenCount": counts.output.saturating_sub(counts.reasoning),
        "thoughtsTokenCount": counts.reasoning,
        "totalTokenCount": counts.input + counts.output,
    })
}
