//! Names of tools and ids of calls that another model made up, and that this provider would refuse.

use std::collections::BTreeSet;

use hart_models::{Dialect, build};
use hart_testkit::{ModelServer, Turn};
use hart_types::{Body, Message, ToolCall, ToolStatus};
use serde_json::{Map, Value, json};

use crate::support::{DIALECTS, ask, config, http, request};

const IDS: [&str; 7] = [
    "call_1",
    "functions.bash:0",
    "functions_bash_0",
    "with spaces and ümlauts",
    "with spaces und ümlauts",
    "",
    "a-very-long-id-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
];
const NAMES: [&str; 7] = [
    "bash",
    "functions.bash",
    "bash tool",
    "1st",
    "",
    "größe",
    "a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on",
];

fn history() -> Vec<Message> {
    let mut answer = Message::ai("I call.");
    if let Body::Ai(ai) = &mut answer.body {
        ai.tool_calls =
            IDS.iter().zip(NAMES).map(|(id, name)| ToolCall::new(*id, name, Map::new())).collect();
    }
    let results = IDS
        .iter()
        .zip(NAMES)
        .map(|(id, name)| Message::tool(&(*id).into(), name, ToolStatus::Success, format!("result of {id}")));
    [Message::human("go"), answer].into_iter().chain(results).collect()
}

/// Each call and each result of a request: its id, its name where it has one.
fn said(body: &Value, call: &str) -> Vec<(String, Option<String>)> {
    fn find(value: &Value, call: &str, out: &mut Vec<(String, Option<String>)>) {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        match value {
            Value::Array(list) => list.iter().for_each(|value| find(value, call, out)),
            Value::Object(map) => {
                let id = text(
                    map.get("id")
                        .or(map.get("call_id"))
                        .or(map.get("tool_use_id"))
                        .or(map.get("tool_call_id")),
                );
                let name = text(
                    map.get("name")
                        .or(map.get("function").and_then(|f| f.get("name")))
                        .or(map.get("tool_name")),
                );
                let kind = text(map.get("type").or(map.get("role")));
                if kind.as_deref() == Some(call) {
                    out.extend(id.map(|id| (id, name)));
                }
                map.values().for_each(|value| find(value, call, out));
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    find(body, call, &mut out);
    out
}

async fn sent(dialect: Dialect, more: Value) -> Value {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("fine"));
    let model = build(&config(&server, dialect, more), &http());
    ask(&*model, request(history())).await;
    server.requests().pop().unwrap().body.clone()
}

fn fits(text: &str, more: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.chars().count())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

#[tokio::test]
async fn every_provider_gets_what_it_takes_and_a_call_still_matches_its_result() {
    for (dialect, more, (calls, results), ids, longest) in [
        (
            Dialect::OpenAi,
            json!({"use": "openai", "use_responses_api": false}),
            ("function", "tool"),
            "_-",
            40,
        ),
        (Dialect::OpenAi, json!({}), ("function", "tool"), "_-.:", 64),
        (Dialect::OpenAi, json!({"use": "mistral"}), ("function", "tool"), "", 9),
        (Dialect::Responses, json!({}), ("function_call", "function_call_output"), "_-", 64),
        (Dialect::Anthropic, json!({}), ("tool_use", "tool_result"), "_-", 64),
        (Dialect::Ollama, json!({}), ("function", "tool"), "_-.:", 64),
    ] {
        let body = sent(dialect, more.clone()).await;
        let row = format!("{dialect:?} {more}: {body}");
        let (calls, results) = (said(&body, calls), said(&body, results));
        let ids_of =
            |all: &[(String, Option<String>)]| all.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        assert_eq!((ids_of(&calls), calls.len()), (ids_of(&results), IDS.len()), "{row}");
        assert_eq!(ids_of(&calls).iter().collect::<BTreeSet<_>>().len(), IDS.len(), "all different: {row}");
        for (id, name) in &calls {
            assert!(fits(id, ids, longest), "`{id}` {row}");
            assert!(fits(name.as_ref().unwrap(), "_-", 64), "{name:?} {row}");
        }
        assert_eq!(calls[0].1.as_deref(), Some("bash"));
        if longest > 9 {
            assert_eq!(calls[0].0, "call_1", "what fits stays as it is");
        }
    }
}

#[tokio::test]
async fn the_words_of_a_model_go_back_to_it_as_they_were() {
    // Kimi's ids say which tool was called, and its template reads them.
    for more in [json!({"use": "moonshot"}), json!({"use": "vllm"})] {
        let body = sent(Dialect::OpenAi, more).await;
        let ids: Vec<String> = said(&body, "function").into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids[1], "functions.bash:0");
    }
}

#[tokio::test]
async fn gemini_answers_a_call_by_its_name() {
    let body = sent(Dialect::Gemini, json!({})).await;
    let parts = |key: &str| -> Vec<String> {
        let contents = body["contents"].as_array().unwrap();
        let parts = contents.iter().flat_map(|content| content["parts"].as_array().unwrap());
        parts.filter_map(|part| Some(part.get(key)?["name"].as_str()?.to_owned())).collect()
    };
    let (calls, responses) = (parts("functionCall"), parts("functionResponse"));
    assert_eq!((&calls, calls.len()), (&responses, NAMES.len()));
    for name in calls {
        assert!(fits(&name, "_-.:", 64) && !name.starts_with(|c: char| c.is_ascii_digit()), "{name}");
    }
}

#[tokio::test]
async fn the_same_conversation_gives_the_same_bytes() {
    for dialect in DIALECTS {
        assert_eq!(sent(dialect, json!({})).await, sent(dialect, json!({})).await);
    }
}
