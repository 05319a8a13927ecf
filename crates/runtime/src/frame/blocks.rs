//! Messages as LangGraph's event protocol spells them: an answer's content is a list of blocks, empty fields are left out.
//!
//! Invariant: what a message says is the same in both spellings.

use hart_types::REASONING_CONTENT;
use serde_json::{Map, Value, json};

use crate::reasoning;

/// From the spelling of the state.
pub(crate) fn in_blocks(message: Value) -> Value {
    let Value::Object(mut message) = message else { return message };
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_ai = kind == "ai";
    let content = message.remove("content").unwrap_or_else(|| json!(""));
    let calls = message.remove("tool_calls").unwrap_or_default();
    let mut kwargs = match message.remove("additional_kwargs") {
        Some(Value::Object(kwargs)) => kwargs,
        _ => Map::new(),
    };
    let content = if is_ai { blocks(content, &calls, kwargs.remove(REASONING_CONTENT)) } else { content };
    let mut out = Map::new();
    out.insert("type".to_owned(), kind.as_str().into());
    out.insert("content".to_owned(), content);
    let mut keep = |key: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !is_nothing(value)) {
            out.insert(key.to_owned(), value);
        }
    };
    keep("id", message.remove("id"));
    keep("name", message.remove("name"));
    keep("additional_kwargs", Some(Value::Object(kwargs)));
    if is_ai {
        let mut metadata = match message.remove("response_metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        metadata.insert("output_version".to_owned(), json!("v1"));
        keep("response_metadata", Some(Value::Object(metadata)));
        keep("tool_calls", Some(calls));
    }
    if kind == "tool" {
        for key in ["tool_call_id", "status", "artifact"] {
            out.insert(key.to_owned(), message.remove(key).unwrap_or_default());
        }
    }
    Value::Object(out)
}

/// A state whose messages are spelled the other way.
pub(crate) fn values_in_blocks(values: &str) -> Option<Value> {
    let mut values: Value = serde_json::from_str(values).ok()?;
    if let Some(Value::Array(messages)) = values.get_mut("messages") {
        for message in messages {
            *message = in_blocks(message.take());
        }
    }
    Some(values)
}

fn blocks(content: Value, calls: &Value, reasoning: Option<Value>) -> Value {
    let mut blocks = Vec::new();
    let has_own = content.as_array().is_some_and(|parts| reasoning::thought(parts).is_some());
    if let Some(Value::String(reasoning)) = reasoning.filter(|told| !has_own && !is_nothing(told)) {
        blocks.push(json!({"type": "reasoning", "reasoning": reasoning}));
    }
    match content {
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => blocks.push(json!({"type": "text", "text": text, "index": blocks.len()})),
        Value::Array(parts) => blocks.extend(parts.into_iter().filter_map(block)),
        other => blocks.push(other),
    }
    for call in calls.as_array().into_iter().flatten() {
        let (id, name, args) = (call.get("id"), call.get("name"), call.get("args"));
        blocks.push(json!({"type": "tool_call", "id": id, "name": name, "args": args}));
    }
    blocks.into()
}

/// What providers call their own way; calls are told of by themselves.
fn block(part: Value) -> Option<Value> {
    match part.get("type").and_then(Value::as_str) {
        None => part.as_str().map(|text| json!({"type": "text", "text": text})),
        Some("tool_use") => None,
        Some("thinking") => Some(json!({"type": "reasoning", "reasoning": part.get("thinking")})),
        Some(_) => Some(part),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As recorded from LangGraph's server.
    #[test]
    fn messages_are_spelled_as_recorded() {
        let human = json!({"content": "hi", "additional_kwargs": {}, "response_metadata": {}, "type": "human", "name": null, "id": "h"});
        assert_eq!(in_blocks(human).to_string(), r#"{"type":"human","content":"hi","id":"h"}"#);
        let ai = json!({
            "content": "", "additional_kwargs": {}, "response_metadata": {"finish_reason": "tool_calls"},
            "type": "ai", "name": "agent", "id": "a", "invalid_tool_calls": [], "usage_metadata": {"total_tokens": 4},
            "tool_calls": [{"name": "ask", "args": {"q": 1}, "id": "c", "type": "tool_call"}],
        });
        let expected = r#"{"type":"ai","content":[{"type":"tool_call","id":"c","name":"ask","args":{"q":1}}],"id":"a","name":"agent","response_metadata":{"finish_reason":"tool_calls","output_version":"v1"},"tool_calls":[{"name":"ask","args":{"q":1},"id":"c","type":"tool_call"}]}"#;
        assert_eq!(in_blocks(ai).to_string(), expected);
        let tool = json!({"content": "sunny", "type": "tool", "name": "w", "id": "t", "tool_call_id": "c", "artifact": null, "status": "success"});
        let expected = r#"{"type":"tool","content":"sunny","id":"t","name":"w","tool_call_id":"c","status":"success","artifact":null}"#;
        assert_eq!(in_blocks(tool).to_string(), expected);
    }

    #[test]
    fn reasoning_comes_first_and_foreign_blocks_find_their_names() {
        let ai = json!({
            "type": "ai", "id": "a", "tool_calls": [{"name": "x", "args": {}, "id": "c", "type": "tool_call"}],
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}, {"type": "tool_use", "id": "c"}],
        });
        let kinds: Vec<Value> =
            in_blocks(ai)["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
        assert_eq!(kinds, ["reasoning", "text", "tool_call"]);
        let told = json!({"reasoning_content": "hm"});
        let own = json!([{"type": "reasoning", "reasoning": "hm"}]);
        let ai = json!({"type": "ai", "id": "a", "content": own, "additional_kwargs": told});
        assert_eq!(in_blocks(ai)["content"], own, "told once");
        let ai = json!({"type": "ai", "id": "a", "content": "yes", "additional_kwargs": told});
        let content = in_blocks(ai)["content"].clone();
        assert_eq!(
            content,
            json!([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes", "index": 1}])
        );
    }
}
