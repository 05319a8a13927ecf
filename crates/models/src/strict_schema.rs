//! Which JSON schemas OpenAI can enforce to the letter.
//!
//! Invariant: a schema counts as strict only if every part of it is known to be taken; doubt means no, which costs a
//! guarantee and never a refusal.

use serde_json::{Map, Value};

/// Keywords that strict mode knows.
const KNOWN: [&str; 24] = [
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// Whether a provider may be asked to enforce the schema: an object whose objects all are closed and complete.
pub(crate) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
        && schema.get("anyOf").is_none()
        && fits(schema, 0)
}

fn fits(schema: &Value, depth: usize) -> bool {
    // The provider takes ten levels; a schema deeper than this is not worth following.
    let Some(map) = schema.as_object().filter(|_| depth <= 10) else { return false };
    let below = |key: &str| match map.get(key) {
        Some(Value::Object(named)) => named.values().all(|inner| fits(inner, depth + 1)),
        Some(Value::Array(list)) => list.iter().all(|inner| fits(inner, depth + 1)),
        Some(_) => false,
        None => true,
    };
    map.keys().all(|key| KNOWN.contains(&key.as_str()))
        && is_closed(map)
        && map.get("items").is_none_or(|items| fits(items, depth + 1))
        && ["properties", "anyOf", "$defs", "definitions"].into_iter().all(below)
}

/// Every property is required, and no other is allowed.
fn is_closed(map: &Map<String, Value>) -> bool {
    let is_object = match map.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => map.contains_key("properties"),
    };
    if !is_object {
        return true;
    }
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let Some(properties) = map.get("properties").and_then(Value::as_object) else { return false };
    map.get("additionalProperties").is_some_and(|more| more == false)
        && properties.keys().all(|name| required.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_be_enforced() {
        let closed = |properties: Value| {
            let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        };
        let inner = closed(json!({"n": {"type": ["integer", "null"], "minimum": 0}}));
        for schema in [
            closed(json!({"title": {"type": "string"}})),
            closed(json!({"list": {"type": "array", "items": inner}, "kind": {"enum": ["a", "b"]}})),
            closed(json!({"either": {"anyOf": [inner, {"type": "null"}]}, "again": {"$ref": "#"}})),
        ] {
            assert!(is_strict(&schema), "{schema}");
        }
        for schema in [
            json!({"type": "string"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": [], "additionalProperties": false}),
            closed(json!({"a": {"type": "object", "properties": {}}})),
            closed(json!({"a": {"allOf": [{"type": "string"}]}})),
            closed(json!({"a": {"type": "string", "default": "x"}})),
            closed(json!({"a": true})),
        ] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }
}
