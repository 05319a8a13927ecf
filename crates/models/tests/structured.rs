//! Answers as JSON, in each way a server can be asked for them.

use std::sync::Arc;

use hart_kernel::{ChatRequest, OutputFormat};
use hart_models::{Dialect, build};
use hart_testkit::{ModelServer, RecordedRequest, Turn};
use serde_json::{Value, json};

use crate::support::{ask, config, http, human, tool};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"title": {"type": "string"}, "n": {"type": "integer", "minimum": 1}},
        "required": ["title", "n"],
        "additionalProperties": false,
    })
}

fn wants(schema: Value) -> ChatRequest {
    let mut request = human("a title, please");
    request.settings.output = OutputFormat::Json { name: "Title!".into(), schema };
    request
}

/// Asks once and gives back the text of the answer and the request that was sent.
async fn asked(
    dialect: Dialect,
    more: Value,
    turn: Turn,
    request: ChatRequest,
) -> (String, Arc<RecordedRequest>) {
    let server = ModelServer::start().await;
    server.push(turn);
    let answer = ask(&*build(&config(&server, dialect, more), &http()), request).await;
    assert!(answer.tool_calls().is_empty());
    (answer.text(), server.last_request())
}

const ANSWER: &str = r#"{"title":"Hirsch 🦌","n":3}"#;

#[tokio::test]
async fn chat_completions_take_the_schema() {
    let (text, sent) =
        asked(Dialect::OpenAi, json!({}), Turn::new().text(ANSWER).chunk_chars(2), wants(schema())).await;
    assert_eq!(text, ANSWER);
    let want = json!({
        "type": "json_schema",
        "json_schema": {"name": "Title_", "schema": schema(), "strict": true},
    });
    assert_eq!(sent.body["response_format"], want);
    let (_, sent) =
        asked(Dialect::OpenAi, json!({}), Turn::new().text("{}"), wants(json!({"type": "object"}))).await;
    assert_eq!(sent.body["response_format"]["json_schema"]["strict"], false);
}

#[tokio::test]
async fn servers_without_schemas_are_told_in_words() {
    let talkative = || Turn::new().text(format!("Of course!\n```json\n{ANSWER}\n```")).chunk_chars(1);
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        for mode in ["object", "prompt"] {
            let more = json!({"structured_output": mode});
            let (text, sent) = asked(dialect, more, talkative(), wants(schema())).await;
            assert_eq!(text, ANSWER, "{dialect:?} {mode}");
            assert!(sent.system().contains("\"title\""), "{}", sent.system());
            let format = if mode == "object" && dialect == Dialect::OpenAi {
                json!("json_object")
            } else {
                json!(null)
            };
            assert_eq!(sent.body["response_format"]["type"], format);
            assert!(sent.body["output_config"].is_null());
        }
    }
    let (_, sent) = asked(Dialect::OpenAi, json!({"use": "deepseek"}), talkative(), wants(schema())).await;
    assert_eq!(sent.body["response_format"]["type"], "json_object", "DeepSeek knows no schema");
}

#[tokio::test]
async fn claude_takes_the_schema_and_older_ones_a_tool() {
    let newer = json!({"model": "claude-sonnet-5-5"});
    let (text, sent) =
        asked(Dialect::Anthropic, newer.clone(), Turn::new().text(ANSWER), wants(schema())).await;
    assert_eq!(text, ANSWER);
    let format = &sent.body["output_config"]["format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["schema"]["properties"]["n"]["description"], "(minimum: 1)");
    assert!(sent.body["tool_choice"].is_null());

    let call = |args: Value| Turn::new().tool_call("c1", "Title_", args).chunk_chars(3);
    let args: Value = serde_json::from_str(ANSWER).unwrap();
    let older = json!({"model": "claude-3-7-sonnet-latest"});
    let (text, sent) = asked(Dialect::Anthropic, older, call(args.clone()), wants(schema())).await;
    assert_eq!(text, ANSWER);
    assert_eq!(sent.body["tool_choice"], json!({"type": "tool", "name": "Title_"}));
    assert_eq!(sent.body["tools"][0]["input_schema"], schema());

    // A schema that the API would refuse goes to a tool even where schemas are taken.
    let free = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let (text, sent) = asked(Dialect::Anthropic, newer, call(json!({"a": "b"})), wants(free)).await;
    assert_eq!((text.as_str(), sent.body["output_config"].is_null()), (r#"{"a":"b"}"#, true));
}

#[tokio::test]
async fn a_list_comes_out_of_the_tool_as_a_list() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let call = Turn::new().text("Here:").tool_call("c1", "Title_", json!({"value": ["a", "b"]}));
        let (text, _) = asked(dialect, json!({"structured_output": "tool"}), call, wants(list)).await;
        assert_eq!(text, r#"["a","b"]"#, "{dialect:?}");
    }
}

#[tokio::test]
async fn other_tools_can_still_be_called_first() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let server = ModelServer::start().await;
        let model = build(&config(&server, dialect, json!({"structured_output": "tool"})), &http());
        server.push(Turn::new().tool_call("c1", "ls", json!({"path": "/"})));
        let mut request = wants(schema());
        request.tools = [tool("ls")].into();
        let answer = ask(&*model, request).await;
        assert_eq!(answer.tool_calls()[0].name, "ls");
        assert_eq!(server.last_request().tool_names(), ["ls", "Title_"]);
    }
}

#[tokio::test]
async fn broken_json_is_handed_over_as_it_came() {
    let call = Turn::new().tool_call_raw_args("c1", "Title_", "{\"title\": \"Hi");
    let (text, _) =
        asked(Dialect::Anthropic, json!({"structured_output": "tool"}), call, wants(schema())).await;
    assert_eq!(text, "{\"title\": \"Hi");
    let (text, _) = asked(
        Dialect::OpenAi,
        json!({"structured_output": "prompt"}),
        Turn::new().text("I cannot."),
        wants(schema()),
    )
    .await;
    assert_eq!(text, "I cannot.");
}

#[tokio::test]
async fn stop_texts_are_spelled_and_the_callers_win() {
    let server = ModelServer::start().await;
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let (key, other) = match dialect {
            Dialect::OpenAi => ("stop", "stop_sequences"),
            _ => ("stop_sequences", "stop"),
        };
        for spelled in [key, other] {
            let model = build(&config(&server, dialect, json!({spelled: ["END"]})), &http());
            server.push_all([Turn::new().text("x"), Turn::new().text("x")]);
            ask(&*model, human("hi")).await;
            let body = server.last_request().body.clone();
            assert_eq!((&body[key], &body[other]), (&json!(["END"]), &json!(null)), "{spelled}");
            let mut request = human("hi");
            request.settings.stop = vec!["###".into()];
            ask(&*model, request).await;
            assert_eq!(server.last_request().body[key], json!(["###"]));
        }
    }
}
