//! What only the Messages API has.

use hart_kernel::{Effort, Reasoning, ToolChoice};
use hart_models::Dialect;
use hart_testkit::{ModelServer, Turn};
use hart_types::{Block, Message, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use crate::support::{KEY, ask, config, http, human, model, request, thinking};

#[tokio::test]
async fn thinking_goes_back_byte_for_byte_and_in_order() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Anthropic);
    server.push(
        Turn::new()
            .reasoning("I should \"look\".\n🦌")
            .signature("EqQBCgIYAhIM+/==")
            .redacted_reasoning("b3BhcXVl")
            .text("Looking.")
            .tool_call("toolu_1", "ls", json!({"z": 1, "a": [true, null]}))
            .chunk_chars(3)
            .wire_bytes(5),
    );
    let answer = ask(&*model, human("hi")).await;
    server.push(Turn::new().text("done"));
    let result = Message::tool(&ToolCallId::from("toolu_1"), "ls", ToolStatus::Error, "denied");
    ask(&*model, request([Message::human("hi"), answer, result, Message::human("go on")])).await;
    let sent = server.last_request();
    let want = concat!(
        r#"{"model":"mock-1","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},"#,
        r#"{"role":"assistant","content":["#,
        r#"{"type":"thinking","thinking":"I should \"look\".\n🦌","signature":"EqQBCgIYAhIM+/=="},"#,
        r#"{"type":"redacted_thinking","data":"b3BhcXVl"},"#,
        r#"{"type":"text","text":"Looking."},"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"ls","input":{"z":1,"a":[true,null]}}]},"#,
        r#"{"role":"user","content":["#,
        r#"{"type":"tool_result","tool_use_id":"toolu_1","content":"denied","is_error":true},"#,
        r#"{"type":"text","text":"go on"}]}],"#,
        r#""stream":true,"max_tokens":8192}"#,
    );
    assert_eq!(String::from_utf8_lossy(&sent.raw), want);
    assert_eq!(sent.header("x-api-key"), Some(KEY));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
}

#[tokio::test]
async fn unknown_blocks_and_citations_go_back_as_they_came() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Anthropic);
    let blocks = [
        json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "deer"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "encrypted_content": "x+/="}]}),
        json!({"type": "text", "text": "Deer.", "citations": [{"type": "web_search_result_location", "encrypted_index": "E=="}]}),
    ];
    let mut stream = String::new();
    let mut event = |value: Value| {
        stream.push_str(&format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap()));
    };
    for (index, block) in blocks.iter().enumerate() {
        event(json!({"type": "content_block_start", "index": index, "content_block": block}));
        event(json!({"type": "content_block_stop", "index": index}));
    }
    event(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
    );
    event(json!({"type": "message_stop"}));
    server.push(Turn::raw_sse(stream));
    let answer = ask(&*model, human("hi")).await;
    server.push(Turn::new().text("ok"));
    ask(&*model, request([Message::human("hi"), answer, Message::human("more")])).await;
    assert_eq!(server.last_request().messages()[1]["content"], json!(blocks));
}

#[tokio::test]
async fn images_go_in_by_url_and_by_data() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("a deer"));
    let shown = vec![
        Block::image_base64("image/jpeg", "QUJD"),
        Block::image_url("https://example.org/a.png"),
        Block::image_url("data:image/png;base64,QQ=="),
    ];
    ask(&*model(&server, Dialect::Anthropic), request([Message::human(shown)])).await;
    let want = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
    ]);
    assert_eq!(server.last_request().messages()[0]["content"], want);
}

#[tokio::test]
async fn reasoning_becomes_a_budget_under_the_limit() {
    let server = ModelServer::start().await;
    let cases = [
        (json!({"max_tokens": 32000}), Effort::Low, json!({"type": "enabled", "budget_tokens": 4096})),
        (json!({"max_tokens": 32000}), Effort::Medium, json!({"type": "enabled", "budget_tokens": 10240})),
        (json!({"max_tokens": 64000}), Effort::High, json!({"type": "enabled", "budget_tokens": 24576})),
        (json!({}), Effort::High, json!({"type": "enabled", "budget_tokens": 6144})),
        (json!({"max_tokens": 1000}), Effort::High, json!(null)),
        (json!({"supports_thinking": false}), Effort::High, json!(null)),
        (json!({"thinking": {"type": "adaptive"}}), Effort::High, json!({"type": "adaptive"})),
        (
            json!({"model": "claude-opus-4-8"}),
            Effort::Low,
            json!({"type": "adaptive", "display": "summarized"}),
        ),
    ];
    for (more, effort, want) in cases {
        let mut all =
            json!({"supports_thinking": true, "supports_reasoning_effort": true, "temperature": 0.3});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let model = hart_models::build(&config(&server, Dialect::Anthropic, all), &http());
        server.push(Turn::new().text("ok"));
        ask(&*model, thinking(human("hi"), Reasoning::On(effort))).await;
        let body = server.last_request().body.clone();
        assert_eq!(body["thinking"], want, "{more}");
        assert_eq!(body["temperature"].is_null(), !want.is_null(), "a thinking model takes no temperature");
        assert!(body["reasoning_effort"].is_null());
        let newer = body["model"] == "claude-opus-4-8";
        assert_eq!(body["output_config"], if newer { json!({"effort": "low"}) } else { json!(null) });
    }
}

#[tokio::test]
async fn a_demanded_tool_switches_thinking_off() {
    let server = ModelServer::start().await;
    let model =
        hart_models::build(&config(&server, Dialect::Anthropic, json!({"supports_thinking": true})), &http());
    server.push(Turn::new().text("ok"));
    let mut asked = thinking(human("hi"), Reasoning::On(Effort::Low));
    asked.tools = [crate::support::tool("ls")].into();
    asked.settings.tool_choice = ToolChoice::Required;
    ask(&*model, asked).await;
    let body = server.last_request().body.clone();
    assert_eq!((&body["thinking"], &body["tool_choice"]["type"]), (&json!(null), &json!("any")));
}

#[tokio::test]
async fn empty_messages_are_left_out() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    let messages = [Message::system("S"), Message::human("hi"), Message::ai(" \n"), Message::human("there")];
    ask(&*model(&server, Dialect::Anthropic), request(messages)).await;
    let body = server.last_request().body.clone();
    assert_eq!(body["system"], json!([{"type": "text", "text": "S"}]));
    let texts = json!([{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]);
    assert_eq!(body["messages"], json!([{"role": "user", "content": texts}]));
}
