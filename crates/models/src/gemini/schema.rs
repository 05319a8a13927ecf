//! Cuts a JSON schema down to the words Gemini knows.
//!
//! Invariant: what is left accepts everything that the whole schema accepts.

use serde_json::{Map, Value, json};

/// The keywords of JSON schema that the API documents.
const KNOWN: [&str; 20] = [
    "$id",
    "$ref",
    "$defs",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
];

/// The schema in the API's words; `None` when it says nothing but "an object".
pub(super) fn cleaned(schema: &Value) -> Option<Value> {
    let Value::Object(map) = schema else { return None };
    let cleaned = object(map);
    let says_more = cleaned.iter().any(|(key, value)| match (key.as_str(), value) {
        ("type", _) => value != "object",
        ("title" | "description", _) => false,
        ("properties" | "$defs", Value::Object(map)) => !map.is_empty(),
        ("required", Value::Array(list)) => !list.is_empty(),
        ("additionalProperties", Value::Bool(_)) => false,
        _ => true,
    });
    says_more.then_some(Value::Object(cleaned))
}

fn any(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(object(map)),
        // `true` allows everything, and so does a schema without words.
        _ => json!({}),
    }
}

fn object(map: &Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::String(target)) = map.get("$ref") {
        // The API takes no other word beside a reference.
        let target = target.replace("#/definitions/", "#/$defs/");
        let defs = map.get("$defs").or(map.get("definitions")).map(|defs| ("$defs".to_owned(), each(defs)));
        return std::iter::once(("$ref".to_owned(), target.into())).chain(defs).collect();
    }
    let mut out = Map::new();
    // Written by generators around a reference or a base that wants a description of its own.
    if let Some(Value::Array(all)) = map.get("allOf")
        && let [only] = all.as_slice()
        && let Value::Object(inner) = any(only)
    {
        if inner.contains_key("$ref") {
            return inner;
        }
        out = inner;
    }
    for (key, value) in map {
        let (key, value) = match key.as_str() {
            "properties" | "$defs" => (key.as_str(), each(value)),
            "definitions" => ("$defs", each(value)),
            "items" => ("items", any(value)),
            "additionalProperties" if value.is_object() => ("additionalProperties", any(value)),
            "anyOf" | "oneOf" | "prefixItems" => match value {
                Value::Array(list) => (key.as_str(), list.iter().map(any).collect()),
                _ => continue,
            },
            "const" => ("enum", json!([value])),
            key if KNOWN.contains(&key) => (key, value.clone()),
            _ => continue,
        };
        out.insert(key.to_owned(), value);
    }
    out
}

/// A map from names to schemas: here every key is a name.
fn each(schemas: &Value) -> Value {
    let Value::Object(map) = schemas else { return json!({}) };
    map.iter().map(|(name, schema)| (name.clone(), any(schema))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_go_and_names_stay() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "default": {"type": "string", "default": "x", "pattern": "^a", "minLength": 1},
                "n": {"type": ["integer", "null"], "exclusiveMinimum": 0, "minimum": 1},
                "kind": {"const": "file"},
                "list": {"type": "array", "items": {"type": "string", "examples": ["a"]}, "uniqueItems": true},
                "who": {"description": "d", "allOf": [{"$ref": "#/definitions/Who"}]},
                "any": true,
            },
            "required": ["default"],
            "additionalProperties": false,
            "definitions": {"Who": {"type": "object", "properties": {"not": {"type": "string"}}, "not": {}}},
        });
        let want = json!({
            "type": "object",
            "properties": {
                "default": {"type": "string"},
                "n": {"type": ["integer", "null"], "minimum": 1},
                "kind": {"enum": ["file"]},
                "list": {"type": "array", "items": {"type": "string"}},
                "who": {"$ref": "#/$defs/Who"},
                "any": {},
            },
            "required": ["default"],
            "additionalProperties": false,
            "$defs": {"Who": {"type": "object", "properties": {"not": {"type": "string"}}}},
        });
        assert_eq!(cleaned(&schema), Some(want));
    }

    #[test]
    fn a_reference_stands_alone_and_a_base_is_taken_in() {
        let schema = json!({"properties": {
            "a": {"$ref": "#/$defs/A", "description": "gone"},
            "b": {"allOf": [{"type": "string", "enum": ["x"]}], "description": "kept"},
            "c": {"oneOf": [{"type": "string", "format": "date"}, {"type": "null", "x-y": 1}]},
        }, "$defs": {"A": {"type": "string"}}});
        let want = json!({"properties": {
            "a": {"$ref": "#/$defs/A"},
            "b": {"type": "string", "enum": ["x"], "description": "kept"},
            "c": {"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        }, "$defs": {"A": {"type": "string"}}});
        assert_eq!(cleaned(&schema), Some(want));
    }

    #[test]
    fn a_schema_of_nothing_is_none() {
        let nothing = [
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "object", "title": "Nothing", "required": []}),
            json!({}),
            json!(true),
            json!(null),
        ];
        for schema in nothing {
            assert_eq!(cleaned(&schema), None, "{schema}");
        }
    }
}
