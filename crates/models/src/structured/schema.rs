//! What providers demand of a schema that they enforce.
//!
//! Invariant: what fits a schema made here fits the one it was made from.

use serde_json::{Map, Value};

/// Keywords that no provider enforces, in any place of a schema.
const NEVER: [&str; 10] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
];

/// Whether OpenAI's strict mode takes it: every object lists all its properties as required and allows no other.
pub(crate) fn is_strict(schema: &Value) -> bool {
    let at_root = schema.get("type").is_some_and(|kind| kind == "object") && schema.get("anyOf").is_none();
    at_root && fits(schema)
}

fn fits(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    if map.is_empty() || NEVER.iter().any(|key| map.contains_key(*key)) {
        return false;
    }
    if is_object(map) {
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let all = properties(map).all(|(name, _)| required.contains(&name.as_str()));
        if !all || map.get("additionalProperties") != Some(&Value::Bool(false)) {
            return false;
        }
    }
    children(map).all(fits)
}

fn is_object(map: &Map<String, Value>) -> bool {
    let named = |kind: &Value| kind == "object";
    map.contains_key("properties")
        || map
            .get("type")
            .is_some_and(|kind| named(kind) || kind.as_array().is_some_and(|all| all.iter().any(named)))
}

fn properties(map: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The schemas directly within a schema.
fn children(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = ["properties", "$defs", "definitions"].into_iter();
    let named = named.filter_map(|key| map.get(key)?.as_object()).flat_map(Map::values);
    let listed = ["anyOf", "prefixItems"].into_iter();
    let listed = listed.filter_map(|key| map.get(key)?.as_array()).flatten();
    named.chain(listed).chain(map.get("items"))
}

/// Bounds that Anthropic refuses to enforce. They are told in the description instead.
const BOUNDS: [&str; 10] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minItems",
];

/// The schema as Anthropic enforces it: objects closed, bounds in words. `None` when it cannot be put that way.
pub(crate) fn closed(schema: &Value) -> Option<Value> {
    let mut map = schema.as_object()?.clone();
    let refers_to_itself = map.get("$ref").is_some_and(|target| target == "#");
    if map.is_empty() || refers_to_itself || NEVER.iter().any(|key| map.contains_key(*key)) {
        return None;
    }
    if is_object(&map) {
        match map.get("additionalProperties") {
            None | Some(Value::Bool(_)) => map.insert("additionalProperties".to_owned(), false.into()),
            // A map with free keys has no closed form.
            Some(_) => return None,
        };
    }
    let keeps = |key: &str, value: &Value| key == "minItems" && matches!(value.as_u64(), Some(0 | 1));
    let mut told = Vec::new();
    for key in BOUNDS {
        if map.get(key).is_some_and(|value| !keeps(key, value))
            && let Some(value) = map.shift_remove(key)
        {
            told.push(format!("{key}: {value}"));
        }
    }
    if !told.is_empty() {
        let said = map.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = format!("{said} ({})", told.join(", "));
        map.insert("description".to_owned(), description.trim_start().into());
    }
    for (key, value) in &mut map {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                for schema in named.values_mut() {
                    *schema = closed(schema)?;
                }
            }
            ("anyOf" | "prefixItems", Value::Array(listed)) => {
                for schema in listed {
                    *schema = closed(schema)?;
                }
            }
            ("items", schema) => *schema = closed(schema)?,
            _ => {}
        }
    }
    Some(Value::Object(map))
}
