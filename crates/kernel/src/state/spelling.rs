//! The ways in which clients spell a message, and the one in which threads keep it.
//!
//! Invariant: what a client says is not lost to its spelling: it is understood, or refused. What a log holds is read.

use serde_json::{Map, Value, json};

/// As LangChain's objects and OpenAI's calls are spelt in a thread; anything else stays as it is.
pub(super) fn plain(message: Value) -> Value {
    let Value::Object(mut message) = message else { return message };
    if let Some(Ok(made)) = made_by_langchain(&message) {
        message = made;
    }
    let mut kinds = ["type", "role"].iter().filter_map(|key| message.get(*key)?.as_str());
    if kinds.any(|kind| matches!(kind, "ai" | "assistant")) {
        respell_calls(&mut message);
    }
    message.into()
}

/// What an object of LangChain's stands for, as it writes itself: the name of its class, and what it was made from.
pub(super) fn made_by_langchain(message: &Map<String, Value>) -> Option<Result<Map<String, Value>, String>> {
    (message.get("type").and_then(Value::as_str) == Some("constructor")).then(|| made(message))
}

fn made(message: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let class = message.get("id").and_then(Value::as_array).and_then(|id| id.last()).and_then(Value::as_str);
    let kind = match class.unwrap_or_default() {
        "HumanMessage" | "HumanMessageChunk" => "human",
        "AIMessage" | "AIMessageChunk" => "ai",
        "SystemMessage" | "SystemMessageChunk" => "system",
        "ToolMessage" | "ToolMessageChunk" => "tool",
        "FunctionMessage" | "FunctionMessageChunk" => "function",
        "ChatMessage" | "ChatMessageChunk" => "chat",
        "RemoveMessage" => "remove",
        other => return Err(format!("`{other}` is no message of LangChain's")),
    };
    let Some(Value::Object(said)) = message.get("kwargs") else {
        return Err(format!("a {kind} message without `kwargs` says nothing"));
    };
    let mut said = said.clone();
    said.insert("type".to_owned(), kind.into());
    Ok(said)
}

/// OpenAI has a call's arguments as text inside of `function`. Text that is no object makes a call that is answered with
/// what is wrong about it.
fn respell_calls(message: &mut Map<String, Value>) {
    let Some(Value::Array(calls)) = message.get_mut("tool_calls") else { return };
    let mut invalid = Vec::new();
    calls.retain_mut(|call| {
        let Some(call) = call.as_object_mut() else { return true };
        let Some(Value::Object(function)) = call.get("function").cloned() else {
            call.entry("type").or_insert_with(|| "tool_call".into());
            return true;
        };
        let (id, name) = (call.get("id").cloned(), function.get("name").cloned());
        let text = function.get("arguments").and_then(Value::as_str).unwrap_or("{}");
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(args) => {
                *call = Map::from_iter([
                    ("name".to_owned(), name.unwrap_or_default()),
                    ("args".to_owned(), args.into()),
                    ("id".to_owned(), id.unwrap_or_default()),
                    ("type".to_owned(), "tool_call".into()),
                ]);
                true
            }
            Err(error) => {
                let error = error.to_string();
                invalid.push(json!({"name": name, "args": text, "id": id, "error": error, "type": "invalid_tool_call"}));
                false
            }
        }
    });
    if let (false, Value::Array(known)) =
        (invalid.is_empty(), message.entry("invalid_tool_calls").or_insert_with(|| json!([])))
    {
        known.extend(invalid);
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::check_messages;
    use super::*;
    use crate::MessageWrites;

    fn kept(said: Value) -> Vec<Value> {
        let writes: MessageWrites = serde_json::from_value(said).unwrap();
        writes.messages().map(|message| serde_json::to_value(message).unwrap()).collect()
    }

    #[test]
    fn objects_of_langchain_are_the_messages_they_were_made_from() {
        let object = |class: &str, kwargs: Value| json!({"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", class], "kwargs": kwargs});
        let said = kept(json!([
            object("HumanMessage", json!({"content": "hello", "additional_kwargs": {}})),
            object(
                "AIMessage",
                json!({"content": "", "tool_calls": [{"name": "ls", "args": {}, "id": "c1"}]})
            ),
            object("ToolMessage", json!({"content": "none", "tool_call_id": "c1"})),
        ]));
        let kinds: Vec<_> = said.iter().map(|message| &message["type"]).collect();
        assert_eq!(kinds, ["human", "ai", "tool"]);
        assert_eq!((&said[0]["content"], &said[2]["tool_call_id"]), (&json!("hello"), &json!("c1")));
        assert_eq!(
            said[1]["tool_calls"],
            json!([{"name": "ls", "args": {}, "id": "c1", "type": "tool_call"}])
        );
        assert!(said.iter().all(|message| message.get("lc").is_none() && message.get("kwargs").is_none()));
        let unknown = object("Document", json!({}));
        assert!(check_messages(&unknown).unwrap_err().to_string().contains("`Document` is no message"));
        assert_eq!(kept(unknown)[0]["type"], "constructor", "a log may hold it");
    }

    #[test]
    fn calls_in_openais_spelling_are_calls() {
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": arguments}});
        let calls = json!([call("c1", "{\"path\": \"/\"}"), call("c2", "{\"path")]);
        let said = kept(json!([{"role": "assistant", "content": null, "tool_calls": calls}]));
        let whole = json!([{"name": "ls", "args": {"path": "/"}, "id": "c1", "type": "tool_call"}]);
        assert_eq!(said[0]["tool_calls"], whole);
        assert_eq!(
            (&said[0]["invalid_tool_calls"][0]["id"], &said[0]["invalid_tool_calls"][0]["args"]),
            (&json!("c2"), &json!("{\"path"))
        );
    }
}
