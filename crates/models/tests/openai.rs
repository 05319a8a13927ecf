//! What only chat completions have.

use hart_kernel::{Effort, Reasoning};
use hart_models::Dialect;
use hart_testkit::{ModelServer, Turn};
use hart_types::{Block, Content, Message, ToolCallId, ToolStatus};
use serde_json::json;

use crate::support::{KEY, ask, config, http, human, model, request, thinking};

#[tokio::test]
async fn the_request_is_exactly_this() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    let more =
        json!({"max_tokens": 100, "temperature": 0.2, "top_p": 0.9, "default_headers": {"X-Team": "deer"}});
    let model = hart_models::build(&config(&server, Dialect::OpenAi, more), &http());
    let mut asked = human("hi");
    asked.system = Some("S".into());
    asked.tools = [crate::support::tool("ls")].into();
    ask(&*model, asked).await;
    let sent = server.last_request();
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("x-team"), Some("deer"));
    let want = concat!(
        r#"{"model":"mock-1","messages":[{"role":"system","content":"S"},{"role":"user","content":"hi"}],"#,
        r#""tools":[{"type":"function","function":{"name":"ls","description":"Does ls.","parameters":"#,
        r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],"#,
        r#""stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"temperature":0.2,"top_p":0.9}"#,
    );
    assert_eq!(String::from_utf8_lossy(&sent.raw), want);
}

#[tokio::test]
async fn reasoning_goes_back_byte_for_byte_to_those_who_want_it() {
    let server = ModelServer::start().await;
    let thought = "First:\n\t\"check\" the \u{1F98C} \\ and /\u{0007}";
    for (send, field) in [(true, "reasoning_content"), (false, "reasoning")] {
        let model =
            hart_models::build(&config(&server, Dialect::OpenAi, json!({"send_reasoning": send})), &http());
        server.push(
            Turn::new()
                .reasoning(thought)
                .reasoning_field(field)
                .text("A")
                .tool_call("c1", "ls", json!({}))
                .chunk_chars(2),
        );
        let answer = ask(&*model, human("hi")).await;
        assert_eq!(answer.content, Content::Blocks(vec![Block::reasoning(thought), Block::text("A")]));
        server.push(Turn::new().text("done"));
        let result = Message::tool(&ToolCallId::from("c1"), "ls", ToolStatus::Success, "");
        ask(&*model, request([Message::human("hi"), answer, result])).await;
        let sent = server.last_request();
        let reasoning =
            if send { r#""reasoning_content":"First:\n\t\"check\" the 🦌 \\ and /\u0007","# } else { "" };
        let want = [
            r#"{"model":"mock-1","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"A","#,
            reasoning,
            r#""tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"c1","content":""}],"stream":true,"stream_options":{"include_usage":true}}"#,
        ];
        assert_eq!(String::from_utf8_lossy(&sent.raw), want.concat());
    }
}

#[tokio::test]
async fn images_go_in_by_url_and_by_data() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::OpenAi);
    server.push(Turn::new().text("a deer"));
    let shown = vec![
        Block::text("What is this?"),
        Block::image_base64("image/jpeg", "QUJD"),
        Block::image_url("https://example.org/a.png"),
        Block::object(
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ==", "detail": "low"}}),
        ),
    ];
    ask(&*model, request([Message::human(shown)])).await;
    let want = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ==", "detail": "low"}},
    ]);
    assert_eq!(server.last_request().messages()[0]["content"], want);
}

#[tokio::test]
async fn images_of_tool_results_follow_after_the_last_result() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::OpenAi);
    server.push(Turn::new().tool_call("c1", "view", json!({})).tool_call("c2", "view", json!({})));
    let answer = ask(&*model, human("look")).await;
    server.push(Turn::new().text("seen"));
    let picture = Content::Blocks(vec![Block::text("one image"), Block::image_base64("image/png", "QQ==")]);
    let result =
        |id: &str, content| Message::tool(&ToolCallId::from(id), "view", ToolStatus::Success, content);
    let messages = [Message::human("look"), answer, result("c1", picture), result("c2", "none".into())];
    ask(&*model, request(messages)).await;
    let sent = server.last_request();
    let roles: Vec<_> = sent.messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(sent.messages()[1]["content"], json!(null));
    assert_eq!(sent.messages()[2]["content"], "one image");
    assert_eq!(sent.messages()[4]["content"][1]["image_url"]["url"], "data:image/png;base64,QQ==");
}

#[tokio::test]
async fn reasoning_settings_reach_the_body() {
    let server = ModelServer::start().await;
    let more = json!({
        "supports_thinking": true,
        "supports_reasoning_effort": true,
        "extra_body": {"thinking": {"type": "auto", "keep": 1}, "stream_options": null},
        "when_thinking_enabled": {"extra_body": {"thinking": {"type": "enabled"}}},
    });
    let model = hart_models::build(&config(&server, Dialect::OpenAi, more), &http());
    let cases = [
        (Reasoning::Default, json!({"type": "auto", "keep": 1}), json!(null)),
        (Reasoning::On(Effort::High), json!({"type": "enabled", "keep": 1}), json!("high")),
        (Reasoning::Off, json!({"type": "disabled", "keep": 1}), json!(null)),
    ];
    for (reasoning, want, effort) in cases {
        server.push(Turn::new().text("ok"));
        ask(&*model, thinking(human("hi"), reasoning)).await;
        let body = server.last_request().body.clone();
        assert_eq!((&body["thinking"], &body["reasoning_effort"]), (&want, &effort), "{reasoning:?}");
        assert!(body.get("stream_options").is_none(), "null leaves a parameter out");
    }
}

#[tokio::test]
async fn several_system_messages_become_one() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    let mut asked = request([Message::system("B"), Message::human("hi")]);
    asked.system = Some("A".into());
    ask(&*model(&server, Dialect::OpenAi), asked).await;
    let sent = server.last_request();
    assert_eq!(sent.messages().len(), 2);
    assert_eq!(sent.messages()[0], json!({"role": "system", "content": "A\n\nB"}));
}

#[tokio::test]
async fn newer_openai_models_do_not_reason_where_there_are_tools() {
    let server = ModelServer::start().await;
    let more = json!({"use": "openai", "model": "gpt-5.6", "supports_reasoning_effort": true});
    let model = hart_models::build(&config(&server, Dialect::OpenAi, more), &http());
    for (tools, want) in [(false, "high"), (true, "none")] {
        server.push(Turn::new().text("ok"));
        let mut asked = thinking(human("hi"), Reasoning::On(Effort::High));
        if tools {
            asked.tools = [crate::support::tool("ls")].into();
        }
        ask(&*model, asked).await;
        assert_eq!(server.last_request().body["reasoning_effort"], want);
    }
}

#[tokio::test]
async fn what_a_provider_signed_goes_back_to_it_and_to_no_other() {
    let server = ModelServer::start().await;
    let call = json!({"index": 0, "id": "c1", "function": {"name": "ls", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "c2ln"}}});
    let delta =
        json!({"tool_calls": [call], "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]});
    let chunk = json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]});
    server.push(Turn::raw_sse(format!("data: {chunk}\n\ndata: [DONE]\n\n")));
    let answer = ask(&*model(&server, Dialect::OpenAi), human("hi")).await;
    for (provider, signed) in [("openai-compatible", true), ("openai", false)] {
        let model = hart_models::build(&config(&server, Dialect::OpenAi, json!({"use": provider})), &http());
        server.push(Turn::new().text("ok"));
        let result = Message::tool(&ToolCallId::from("c1"), "ls", ToolStatus::Success, "x");
        ask(&*model, request([Message::human("hi"), answer.clone(), result])).await;
        let sent = server.last_request().messages()[1].clone();
        assert_eq!(sent["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "c2ln", signed);
        assert_eq!(sent["reasoning_details"][0]["data"] == "x", signed);
    }
}
