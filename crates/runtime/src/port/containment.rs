//! What it means that one value contains another, wherever things are found by a part of what is in them.
//!
//! Invariant: every store and every filter beside it mean the same by it.

use serde_json::Value;

/// Whether all of `part` is in `whole`: maps by key, lists as sets, the rest by equality.
pub fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        (whole, part) => whole == part,
    }
}
