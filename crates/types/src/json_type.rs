//! What JSON Schema calls a value.
//!
//! Invariant: every value has one name; an integer is a `number` too, which is left to whoever asks.

use serde_json::Value;

pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
