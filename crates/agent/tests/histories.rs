//! Broken histories, as every provider gets them.

use hart_kernel::Update;
use hart_testkit::{Dialect, RecordedRequest, Turn};
use hart_types::{Ai, Body, InvalidToolCall, Message, ToolCall, ToolStatus};
use serde_json::{Map, Value};

use crate::stage::Stage;
use crate::support::DIALECTS;

fn called(calls: Vec<ToolCall>) -> Message {
    Message::new(Body::Ai(Ai { tool_calls: calls, ..Ai::default() }), "")
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, Map::new())
}

fn result(id: &str, text: &str) -> Message {
    Message::tool(&id.into(), "ls", ToolStatus::Success, text)
}

/// The ids of all calls and of all results, in the order they are sent, as far as the dialect has ids.
fn ids(request: &RecordedRequest) -> (Vec<String>, Vec<String>) {
    let mut calls = Vec::new();
    walk(&request.body, &mut |value| {
        let is_call =
            value["type"] == "tool_use" || value["type"] == "function_call" || value["type"] == "function";
        let id = [&value["call_id"], &value["id"], &value["functionCall"]["id"]]
            .into_iter()
            .find_map(Value::as_str);
        if is_call || !value["functionCall"].is_null() {
            calls.extend(id.map(str::to_owned));
        }
    });
    (calls, request.tool_results().into_iter().map(|result| result.call_id).collect())
}

fn walk(value: &Value, visit: &mut impl FnMut(&Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(map) => map.values().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

#[tokio::test]
async fn every_call_is_followed_by_its_result_whatever_happened() {
    let broken = InvalidToolCall::new("c6", "bash", "{", "the JSON ends too early".to_owned());
    let invalid = Message::new(Body::Ai(Ai { invalid_tool_calls: vec![broken], ..Ai::default() }), "");
    let nameless = ToolCall { id: None, ..call("", "ls") };
    let history = || {
        vec![
            Message::human("one"),
            called(vec![call("c1", "ls"), call("c1", "ls")]),
            result("c1", "first"),
            Message::human("two"),
            called(vec![call("c1", ""), nameless.clone()]),
            result("c9", "orphan"),
            Message::human("three"),
            invalid.clone(),
            Message::human("four"),
        ]
    };
    for dialect in DIALECTS {
        let stage = Stage::new(dialect, [Turn::new().text("fine"), Turn::new().text("fine")]).await;
        let report = stage.run(Update::none().messages(history())).await;
        report.outcome.as_ref().unwrap();
        let request = stage.server.last_request();
        let (calls, results) = ids(&request);
        assert_eq!(calls, results, "{dialect:?}");
        assert_eq!(calls.len(), 5, "{dialect:?}: {calls:?}");
        let distinct: std::collections::HashSet<_> = calls.iter().collect();
        assert_eq!(distinct.len(), 5, "{dialect:?}: {calls:?}");
        let body = request.body.to_string();
        assert!(!body.contains("orphan") && body.contains("first"), "{dialect:?}: {body}");
        assert!(
            body.contains("unknown_tool") && body.contains("the JSON ends too early"),
            "{dialect:?}: {body}"
        );
        assert!(!stage.log.text().contains("unknown_tool"), "the thread keeps what happened");
        // Sent again, it is repaired in the same way.
        stage.ask("five").await.outcome.unwrap();
        assert_eq!(ids(&stage.server.last_request()).0, calls, "{dialect:?}");
    }
}

#[tokio::test]
async fn an_id_of_another_provider_is_respelled_where_it_would_be_refused() {
    let history = || {
        vec![
            Message::human("q"),
            called(vec![call("functions.ls:0", "ls")]),
            result("functions.ls:0", "r"),
            Message::human("?"),
        ]
    };
    for (dialect, spelled) in [(Dialect::Anthropic, "functions_ls_0_"), (Dialect::OpenAi, "functions.ls:0")] {
        let stage = Stage::new(dialect, [Turn::new().text("fine")]).await;
        stage.run(Update::none().messages(history())).await.outcome.unwrap();
        let (calls, results) = ids(&stage.server.last_request());
        assert_eq!(calls, results, "{dialect:?}");
        assert!(calls[0].starts_with(spelled), "{dialect:?}: {calls:?}");
    }
}
