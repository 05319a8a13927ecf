//! `required-secrets`: the variables that a skill's commands need.
//!
//! Invariant: what is no name of a variable is left out and told; nothing here is a value.

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequiredSecret {
    pub name: String,
    /// It works without, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Names, or maps with `name` and `optional`; and whether all of it was understood.
pub(super) fn read(value: &Value) -> (Vec<RequiredSecret>, bool) {
    let Value::Array(items) = value else { return (Vec::new(), value.is_null()) };
    let secrets: Vec<RequiredSecret> = items.iter().filter_map(one).collect();
    let sound = secrets.len() == items.len();
    (secrets, sound)
}

fn one(item: &Value) -> Option<RequiredSecret> {
    let name = item.as_str().or_else(|| item.get("name")?.as_str())?;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let sound = plain && !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit());
    let optional = item.get("optional") == Some(&Value::Bool(true));
    sound.then(|| RequiredSecret { name: name.to_owned(), optional })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_maps_are_read_and_the_rest_is_told() {
        let (secrets, sound) = read(&json!(["API_KEY", {"name": "OTHER", "optional": true}]));
        let told: Vec<(&str, bool)> =
            secrets.iter().map(|secret| (secret.name.as_str(), secret.optional)).collect();
        assert_eq!((told, sound), (vec![("API_KEY", false), ("OTHER", true)], true));
        for wrong in [json!("API_KEY"), json!(["1A"]), json!(["A-B"]), json!([""]), json!([{"named": "A"}])] {
            assert_eq!(read(&wrong), (Vec::new(), false), "{wrong}");
        }
    }
}
