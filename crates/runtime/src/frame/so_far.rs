//! A message as far as it is written, for the old `messages` mode, which repeats all of it with every fragment.
//!
//! Invariant: when the last fragment is added it says what the whole message does.

use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct SoFar {
    message: Value,
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    /// JSON, as much of it as there is.
    args: String,
}

impl SoFar {
    /// From its first fragment on.
    pub(super) fn begun(fragment: &Value) -> Self {
        let mut message = fragment.clone();
        if let Some(map) = message.as_object_mut() {
            map.insert("type".to_owned(), json!("ai"));
            map.remove("tool_call_chunks");
            map.remove("chunk_position");
        }
        let mut so_far = Self { message, calls: Vec::new() };
        so_far.hear_calls(fragment);
        so_far
    }

    pub(super) fn whole(message: Value) -> Self {
        Self { message, calls: Vec::new() }
    }

    pub(super) fn message(&self) -> &Value {
        &self.message
    }

    /// Text grows, what is set replaces what was not.
    pub(super) fn add(&mut self, fragment: &Value) {
        let (Some(all), Some(new)) = (self.message.as_object_mut(), fragment.as_object()) else { return };
        for (key, value) in new {
            match (all.get_mut(key), value) {
                (Some(Value::String(text)), Value::String(more)) if key == "content" => text.push_str(more),
                (Some(Value::Object(map)), Value::Object(more)) => merge_texts(map, more),
                (_, Value::Null) => {}
                (Some(Value::Array(_)), Value::Array(more)) if more.is_empty() => {}
                _ if matches!(key.as_str(), "type" | "tool_call_chunks" | "chunk_position" | "content") => {}
                _ => {
                    all.insert(key.clone(), value.clone());
                }
            }
        }
        self.hear_calls(fragment);
    }

    /// Arguments are told when they are whole.
    fn hear_calls(&mut self, fragment: &Value) {
        let heard = fragment.get("tool_call_chunks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if heard.is_empty() {
            return;
        }
        for part in heard {
            let index = part.get("index").and_then(Value::as_u64);
            let known = self.calls.iter().position(|call| index.is_some() && call.index == index);
            let place = known.unwrap_or(self.calls.len());
            if known.is_none() {
                self.calls.push(Call { index, ..Call::default() });
            }
            let Some(call) = self.calls.get_mut(place) else { continue };
            let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
            call.id = part.get("id").and_then(Value::as_str).map(str::to_owned).or(call.id.take());
            call.name.push_str(text("name"));
            call.args.push_str(text("args"));
        }
        let calls = self.calls.iter().map(|Call { id, name, args, .. }| {
            let args: Map<String, Value> = serde_json::from_str(args).unwrap_or_default();
            json!({"name": name, "args": args, "id": id, "type": "tool_call"})
        });
        let calls = calls.collect();
        if let Some(map) = self.message.as_object_mut() {
            map.insert("tool_calls".to_owned(), calls);
        }
    }
}

/// Reasoning arrives in fragments, too.
fn merge_texts(map: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (map.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if key == "reasoning_content" => {
                text.push_str(more)
            }
            _ => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_grow_with_their_fragments() {
        let fragment = |calls: Value| json!({"type": "AIMessageChunk", "id": "m", "content": "", "tool_calls": [], "tool_call_chunks": calls});
        let first = fragment(json!([{"index": 0, "id": "c1", "name": "ls", "args": ""}]));
        let mut so_far = SoFar::begun(&first);
        so_far.add(&fragment(json!([{"index": 0, "id": null, "name": null, "args": "{\"path\":"}])));
        assert_eq!(so_far.message()["tool_calls"][0]["args"], json!({}));
        so_far.add(&fragment(json!([
            {"index": 0, "args": "\"/\"}"}, {"index": 1, "id": "c2", "name": "glob", "args": "{}"},
        ])));
        so_far.add(&json!({"type": "AIMessageChunk", "id": "m", "content": "", "tool_calls": [], "chunk_position": "last"}));
        let call = |name, args, id| json!({"name": name, "args": args, "id": id, "type": "tool_call"});
        let calls = json!([call("ls", json!({"path": "/"}), "c1"), call("glob", json!({}), "c2")]);
        let whole = json!({"type": "ai", "id": "m", "content": "", "tool_calls": calls});
        assert_eq!(*so_far.message(), whole);
    }
}
