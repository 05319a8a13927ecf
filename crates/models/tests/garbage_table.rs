//! Tool calls as models really write them: every kind of garbage in id, name and arguments, in every dialect.
//!
//! For each row: one call comes out, valid or marked invalid, with an id; and the conversation that holds it can be
//! sent again, as JSON that every provider takes.

use hart_kernel::ChatModel;
use hart_testkit::{ModelServer, Turn};
use hart_types::{Message, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use crate::support::{WITH_TEXT_ARGUMENTS, ask, model, request, tool};

const ARGUMENTS: &[&str] = &[
    "",
    " ",
    "{}",
    "{\"path\": \"a\"}",
    "null",
    "true",
    "17",
    "\"a\"",
    "[\"a\"]",
    "{",
    "}",
    "{\"path\"",
    "{\"path\": ",
    "{\"path\": \"a",
    "{\"path\": \"a\"",
    "{\"path\": \"a\",}",
    "{path: \"a\"}",
    "{'path': 'a'}",
    "{\"path\": None, \"all\": True}",
    "{\"n\": NaN, \"m\": Infinity}",
    "{\"n\": 1e999}",
    "{\"a\": 1, \"a\": 2}",
    "{\"path\": \"a\"} {\"path\": \"b\"}",
    "{\"path\": \"a\"} Now I will wait.",
    "Sure! {\"path\": \"a\"}",
    "```json\n{\"path\": \"a\"}\n```",
    "<tool_call>{\"name\": \"ls\", \"arguments\": {}}</tool_call>",
    "{\"s\": \"\\ud800\"}",
    "{\"s\": \"\\u0000\"}",
    "{\"s\": \"tab\tand\nnewline\"}",
    "{\"s\": \"\\x41\"}",
    "{\"s\": \"back\\\\slash \\\" quote\"}",
    "{\"\": 1}",
    "\u{feff}{\"path\": \"a\"}",
    "{\"path\": \"a\"}\u{0}",
    "{“path”: “a”}",
    "// nothing\n{\"path\": \"a\"}",
];

const WHOLE: &str = r#"{"path": "/mnt/ü 🦌.txt", "n": [1, -2.5e3, null, true], "deep": {"a": "\"q\" é"}}"#;

/// Plays one call and sends the conversation on, as the kernel would.
async fn row(server: &ModelServer, model: &dyn ChatModel, id: &str, name: &str, args: &str) {
    let row = format!("id {id:?}, name {name:?}, arguments {args:.60?}");
    server.push(Turn::new().text("Let me look.").tool_call_raw_args(id, name, args));
    let mut asked = request([Message::human("look")]);
    asked.tools = [tool("ls")].into();
    let answer = ask(model, asked.clone()).await;
    let ai = answer.as_ai().unwrap().clone();
    assert_eq!(ai.tool_calls.len() + ai.invalid_tool_calls.len(), 1, "{row}: {ai:?}");
    let valid = ai.tool_calls.first().map(|call| (call.id.clone(), call.name.clone()));
    let invalid =
        ai.invalid_tool_calls.first().map(|call| (call.id.clone(), call.name.clone().unwrap_or_default()));
    if invalid.is_some() {
        assert!(ai.invalid_tool_calls[0].error.as_ref().is_some_and(|error| !error.is_empty()), "{row}");
    }
    let (call_id, called): (Option<ToolCallId>, String) = valid.or(invalid).unwrap();
    let call_id = call_id.filter(|id| !id.as_str().is_empty()).expect(&row);
    assert!(ai.tool_calls.is_empty() || !called.is_empty(), "{row}: a valid call has a name");

    server.push(Turn::new().text("I see."));
    let result = Message::tool(&call_id, &called, ToolStatus::Error, "that was no call");
    let mut next = request([Message::human("look"), answer, result]);
    next.tools = asked.tools;
    assert_eq!(ask(model, next).await.text(), "I see.", "{row}");
    let sent = server.last_request();
    let calls = calls(&sent.body);
    assert_eq!(calls.len(), 1, "{row}: {}", sent.body);
    assert!(calls[0].1.is_object() && !calls[0].0.is_empty(), "{row}: {calls:?}");
    assert_eq!(sent.tool_results().len(), 1, "{row}");
    // As the model wrote it, or as the provider takes it; then in both places.
    let answered = &sent.tool_results()[0].call_id;
    let twice = sent.body.to_string().matches(&format!("\"{answered}\"")).count() == 2;
    assert!(answered == call_id.as_str() || twice, "{row}: {answered} in {}", sent.body);
}

/// Names and arguments of the calls in a request of any dialect.
fn calls(body: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    match body {
        Value::Object(map) => {
            if let (Some(name), Some(arguments)) =
                (map.get("name"), map.get("arguments").or(map.get("input")).or(map.get("args")))
            {
                // Chat completions carry the arguments as text.
                let arguments = match arguments {
                    // Responses takes its own words back as they were, also when there were none.
                    Value::String(text) if text.trim().is_empty() => json!({}),
                    Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
                    other => other.clone(),
                };
                found.push((name.as_str().unwrap_or_default().to_owned(), arguments));
            }
            found.extend(map.values().flat_map(calls));
        }
        Value::Array(list) => found.extend(list.iter().flat_map(calls)),
        _ => {}
    }
    found
}

#[tokio::test]
async fn any_arguments_end_as_a_call_or_a_marked_one() {
    let server = ModelServer::start().await;
    for dialect in WITH_TEXT_ARGUMENTS {
        let model = model(&server, dialect);
        for args in ARGUMENTS {
            row(&server, &*model, "call_1", "ls", args).await;
        }
        let deep = format!("{{\"a\":{}", "[".repeat(10_000));
        let long = format!("{{\"content\": \"{}\"}}", "x".repeat(10 * 1024 * 1024));
        for args in [deep, long] {
            row(&server, &*model, "call_1", "ls", &args).await;
        }
    }
}

#[tokio::test]
async fn arguments_cut_at_every_byte() {
    let server = ModelServer::start().await;
    for dialect in WITH_TEXT_ARGUMENTS {
        let model = model(&server, dialect);
        for beginning in (0..=WHOLE.len()).filter_map(|cut| WHOLE.get(..cut)) {
            row(&server, &*model, "call_1", "ls", beginning).await;
        }
    }
}

#[tokio::test]
async fn calls_without_an_id_or_a_name() {
    let server = ModelServer::start().await;
    for dialect in WITH_TEXT_ARGUMENTS {
        let model = model(&server, dialect);
        for (id, name) in [
            ("", "ls"),
            ("call_1", ""),
            ("", ""),
            ("call_1", "no such tool"),
            ("call_1", "ls\u{0}"),
            ("ü/ 1", "ls"),
        ] {
            row(&server, &*model, id, name, "{\"path\": \"a\"}").await;
        }
    }
}

#[tokio::test]
async fn calls_that_share_an_id_stay_two() {
    let server = ModelServer::start().await;
    for dialect in WITH_TEXT_ARGUMENTS {
        let model = model(&server, dialect);
        let twice = Turn::new().tool_call_raw_args("call_1", "ls", "{\"path\":\"a\"}");
        server.push(twice.tool_call_raw_args("call_1", "ls", "{\"path\":\"b\"}"));
        let answer = ask(&*model, request([Message::human("look")])).await;
        let paths: Vec<_> = answer.tool_calls().iter().map(|call| call.args["path"].clone()).collect();
        assert_eq!(paths, ["a", "b"], "{dialect:?}");
    }
}
