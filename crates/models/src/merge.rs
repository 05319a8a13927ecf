//! Merges settings onto a request body.
//!
//! Invariant: objects are merged key by key at every depth; anything else is replaced by what comes later.

use serde_json::{Map, Value};

/// Merges `over` onto `base`.
pub(crate) fn deep(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => deep(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Merges the options of a Python client onto a body: what the client unpacks into the request lands at its top.
pub(crate) fn options(body: &mut Map<String, Value>, options: &Map<String, Value>) {
    for (key, value) in options {
        match (key.as_str(), value) {
            ("extra_body" | "model_kwargs", Value::Object(inner)) => deep(body, inner.clone()),
            (key, _) if CLIENT_ONLY.contains(&key) => {}
            _ => deep(body, Map::from_iter([(key.clone(), value.clone())])),
        }
    }
}

/// Options that steer LangChain's client and mean nothing to a provider.
const CLIENT_ONLY: [&str; 5] =
    ["use_responses_api", "output_version", "streaming", "stream_usage", "verbose"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn objects_merge_and_the_rest_is_replaced() {
        let mut base = map(json!({"a": {"b": 1, "c": [1]}, "d": 1}));
        deep(&mut base, map(json!({"a": {"c": [2], "e": 3}, "d": {"f": 1}})));
        assert_eq!(Value::Object(base), json!({"a": {"b": 1, "c": [2], "e": 3}, "d": {"f": 1}}));
    }

    #[test]
    fn what_the_python_client_unpacks_lands_at_the_top() {
        let mut body = map(json!({"thinking": {"type": "disabled"}}));
        let given = json!({"extra_body": {"thinking": {"type": "enabled"}}, "reasoning_effort": "low", "streaming": true});
        options(&mut body, &map(given));
        assert_eq!(Value::Object(body), json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"}));
    }
}
