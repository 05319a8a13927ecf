//! What only the server may say of a message.
//!
//! Invariant: a message that a client sent is treated as the user's, however it describes itself.

use serde_json::{Map, Value};

/// Marks that hart's middlewares trust. `hide_from_ui` is also how a form's answer is marked, which stays the user's.
const OWNED: [&str; 3] = ["hide_from_ui", "original_user_content", "lc_evicted_to"];
const ANSWER: &str = "human_input_response";

/// Takes the server's marks off the messages among these values.
pub(crate) fn strip(values: &mut Map<String, Value>) {
    match values.get_mut("messages") {
        Some(Value::Array(messages)) => messages.iter_mut().for_each(strip_message),
        Some(message) => strip_message(message),
        None => {}
    }
}

fn strip_message(message: &mut Value) {
    let Some(message) = message.as_object_mut() else { return };
    if let Some(Value::Object(kwargs)) = message.get_mut("additional_kwargs") {
        let answers = kwargs.get(ANSWER).is_some_and(Value::is_object);
        kwargs.retain(|key, _| !OWNED.contains(&key.as_str()) || (answers && key == "hide_from_ui"));
    }
    // The spellings in which LangChain wraps a message.
    for inside in ["data", "kwargs"] {
        if let Some(inside) = message.get_mut(inside) {
            strip_message(inside);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_of_the_server_are_taken_off_and_answers_to_forms_stay() {
        let mut values = json!({"messages": [
            {"role": "user", "content": "a", "additional_kwargs": {"hide_from_ui": true, "files": [1]}},
            {"type": "human", "data": {"additional_kwargs": {"original_user_content": "x", "k": 1}}},
            {"additional_kwargs": {"hide_from_ui": true, "human_input_response": {"kind": "k"}}},
            {"additional_kwargs": {"hide_from_ui": true, "human_input_response": 1}},
            "plain", 3
        ], "title": {"additional_kwargs": {"hide_from_ui": true}}});
        let map = values.as_object_mut().unwrap();
        strip(map);
        let expected = json!({"messages": [
            {"role": "user", "content": "a", "additional_kwargs": {"files": [1]}},
            {"type": "human", "data": {"additional_kwargs": {"k": 1}}},
            {"additional_kwargs": {"hide_from_ui": true, "human_input_response": {"kind": "k"}}},
            {"additional_kwargs": {"human_input_response": 1}},
            "plain", 3
        ], "title": {"additional_kwargs": {"hide_from_ui": true}}});
        assert_eq!(values, expected);
        let mut single = json!({"messages": {"additional_kwargs": {"lc_evicted_to": "/etc"}}});
        strip(single.as_object_mut().unwrap());
        assert_eq!(single, json!({"messages": {"additional_kwargs": {}}}));
    }
}
