//! Gives the values of XML calls the types that the tool's schema asks for.
//!
//! Invariant: a text that does not fit its type stays the text it is, for the tool to judge.

use hart_kernel::ToolSpec;
use hart_types::json_type;
use serde_json::{Map, Number, Value};

use crate::repair::{Closing, repair_with};

/// The value of parameter `key`, written as `text`. `is_text`: the call itself says whether it is a string.
pub(super) fn coerce(spec: &ToolSpec, key: &str, text: &str, is_text: Option<bool>) -> Value {
    let plain = || Value::String(text.to_owned());
    match is_text {
        Some(true) => return plain(),
        Some(false) => return literal(text).unwrap_or_else(plain),
        None => {}
    }
    let schema = &spec.input_schema;
    let Some(property) = schema.get("properties").and_then(|properties| properties.get(key)) else {
        return plain();
    };
    let mut types = Vec::new();
    collect(schema, property, &mut types, 0);
    let trimmed = text.trim();
    if types.contains(&"null") && matches!(trimmed, "null" | "None") {
        return Value::Null;
    }
    if types.is_empty() || types.contains(&"string") {
        return plain();
    }
    types.iter().find_map(|kind| typed(kind, trimmed)).unwrap_or_else(plain)
}

fn typed(kind: &str, text: &str) -> Option<Value> {
    match kind {
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        "integer" => match serde_json::from_str::<Number>(text).ok()? {
            // `3.0` is a whole number too.
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
            number if number.is_f64() => {
                let float = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15)?;
                Some(Value::from(float as i64))
            }
            number => Some(Value::Number(number)),
        },
        "number" => serde_json::from_str::<Number>(text).ok().map(Value::Number),
        "array" => literal(text).filter(Value::is_array),
        "object" => literal(text).filter(Value::is_object),
        _ => None,
    }
}

/// JSON, or Python's idea of it.
fn literal(text: &str) -> Option<Value> {
    repair_with(text.trim(), Closing::Never).ok().map(|read| read.value)
}

/// Every type that a property may have.
fn collect<'a>(root: &'a Value, property: &'a Value, types: &mut Vec<&'a str>, depth: usize) {
    if depth > 4 {
        return;
    }
    let Some(map) = property.as_object() else { return };
    match map.get("type") {
        Some(Value::String(kind)) => types.push(kind),
        Some(Value::Array(kinds)) => types.extend(kinds.iter().filter_map(Value::as_str)),
        _ => from_values(map, types),
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for option in map.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect(root, option, types, depth + 1);
        }
    }
    let target = map.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    if let Some(referred) = target.and_then(|path| root.pointer(path)) {
        collect(root, referred, types, depth + 1);
    }
}

/// `enum` and `const` tell types by example.
fn from_values<'a>(map: &'a Map<String, Value>, types: &mut Vec<&'a str>) {
    let values = map.get("enum").and_then(Value::as_array).into_iter().flatten().chain(map.get("const"));
    for value in values {
        types.push(json_type(value));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_get_the_types_of_the_schema() {
        let spec = ToolSpec {
            effect: hart_kernel::Effect::Pure,
            name: "t".into(),
            description: String::new(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
                    "b": {"type": "boolean"}, "a": {"type": "array"}, "o": {"type": "object"},
                    "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "either": {"type": ["string", "null"]},
                    "level": {"enum": [1, 2]}, "ref": {"$ref": "#/$defs/Flag"},
                },
                "$defs": {"Flag": {"type": "boolean"}},
            }),
        };
        for (key, text, value) in [
            ("s", "12", json!("12")),
            ("i", " 12 ", json!(12)),
            ("i", "12.0", json!(12)),
            ("i", "twelve", json!("twelve")),
            ("n", "1.5", json!(1.5)),
            ("b", "True", json!(true)),
            ("b", "false", json!(false)),
            ("a", "[1, 'x']", json!([1, "x"])),
            ("a", "1", json!("1")),
            ("o", "{\"k\": {}}", json!({"k": {}})),
            ("maybe", "null", json!(null)),
            ("maybe", "3", json!(3)),
            ("either", "None", json!(null)),
            ("either", "3", json!("3")),
            ("level", "2", json!(2)),
            ("ref", "TRUE", json!(true)),
            ("unknown", "3", json!("3")),
        ] {
            assert_eq!(coerce(&spec, key, text, None), value, "{key}: {text}");
        }
        assert_eq!(coerce(&spec, "i", "3", Some(true)), json!("3"));
        assert_eq!(coerce(&spec, "s", "[3]", Some(false)), json!([3]));
        assert_eq!(coerce(&spec, "s", "[3", Some(false)), json!("[3"));
    }
}
