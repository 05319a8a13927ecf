//! What only Ollama's own API has.

use hart_kernel::{Effort, ModelErrorKind, OutputFormat, Reasoning};
use hart_models::Dialect;
use hart_testkit::{ModelServer, Turn};
use hart_types::{Block, Message, ToolCallId, ToolStatus};
use serde_json::json;

use crate::support::{KEY, ask, config, fails, http, human, model, request, thinking, tool};

#[tokio::test]
async fn a_conversation_is_spelled_in_its_words() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Ollama);
    server.push(
        Turn::new()
            .reasoning("I should \"look\".\n🦌")
            .text("Looking.")
            .tool_call("call_1", "ls", json!({"z": 1, "a": [true, null]}))
            .chunk_chars(3)
            .wire_bytes(5),
    );
    let mut first = human("hi");
    first.system = Some("S".into());
    let answer = ask(&*model, first).await;
    server.push(Turn::new().text("done"));
    let result = Message::tool(&ToolCallId::from("call_1"), "ls", ToolStatus::Error, "denied");
    let mut second = request([Message::human("hi"), answer, result, Message::human("go on")]);
    second.system = Some("S".into());
    second.tools = [tool("ls")].into();
    ask(&*model, second).await;
    let sent = server.last_request();
    let want = concat!(
        r#"{"model":"mock-1","messages":[{"role":"system","content":"S"},{"role":"user","content":"hi"},"#,
        r#"{"role":"assistant","content":"Looking.","thinking":"I should \"look\".\n🦌","tool_calls":[{"id":"call_1","#,
        r#""type":"function","function":{"index":0,"name":"ls","arguments":{"z":1,"a":[true,null]}}}]},"#,
        r#"{"role":"tool","content":"denied","tool_name":"ls","tool_call_id":"call_1"},"#,
        r#"{"role":"user","content":"go on"}],"tools":[{"type":"function","function":{"name":"ls","#,
        r#""description":"Does ls.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"#,
        r#""required":["path"]}}}],"stream":true,"truncate":false,"shift":false,"options":{"num_ctx":32768}}"#,
    );
    assert_eq!(String::from_utf8_lossy(&sent.raw), want);
    assert_eq!(sent.path, "/api/chat");
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("accept"), Some("application/x-ndjson"));
}

#[tokio::test]
async fn three_turns_of_reasoning_go_back_unless_switched_off() {
    let server = ModelServer::start().await;
    for send in [true, false] {
        let config = config(&server, Dialect::Ollama, json!({"send_reasoning": send}));
        let model = hart_models::build(&config, &http());
        let mut talk = vec![Message::human("hi")];
        for turn in 0..3 {
            let (thought, id) = (format!("thought {turn}\n"), format!("c{turn}"));
            server
                .push(Turn::new().reasoning(thought).tool_call(id.as_str(), "ls", json!({})).chunk_chars(2));
            let answer = ask(&*model, request(talk.clone())).await;
            talk.extend([
                answer,
                Message::tool(&ToolCallId::from(id.as_str()), "ls", ToolStatus::Success, "x"),
            ]);
        }
        server.push(Turn::new().text("done"));
        ask(&*model, request(talk)).await;
        let sent = server.last_request();
        let thoughts: Vec<_> =
            sent.messages().iter().filter_map(|message| message["thinking"].as_str()).collect();
        assert_eq!(thoughts, if send { vec!["thought 0\n", "thought 1\n", "thought 2\n"] } else { vec![] });
    }
}

#[tokio::test]
async fn thinking_is_a_switch_or_a_level() {
    let server = ModelServer::start().await;
    let high = Reasoning::On(Effort::High);
    for (more, reasoning, want) in [
        (json!({"supports_thinking": true}), high, json!(true)),
        (json!({"supports_thinking": true}), Reasoning::Off, json!(false)),
        (json!({"supports_thinking": true}), Reasoning::Default, json!(null)),
        (json!({"supports_thinking": true}), Reasoning::Budget(100), json!(true)),
        (json!({"supports_thinking": true, "supports_reasoning_effort": true}), high, json!("high")),
        (json!({"supports_thinking": true, "model": "gpt-oss:20b"}), Reasoning::Budget(100), json!("low")),
        (json!({}), high, json!(null)),
        (json!({"reasoning": false}), high, json!(false)),
    ] {
        server.push(Turn::new().text("ok"));
        let model = hart_models::build(&config(&server, Dialect::Ollama, more.clone()), &http());
        ask(&*model, thinking(human("hi"), reasoning)).await;
        let body = server.last_request().body.clone();
        assert_eq!(body["think"], want, "{more}");
        assert!(body["reasoning_effort"].is_null() && body["reasoning"].is_null());
    }
}

#[tokio::test]
async fn settings_find_their_place() {
    let server = ModelServer::start().await;
    let more = json!({"num_ctx": 8192, "num_predict": 99, "temperature": 0.2, "top_p": 0.9, "seed": 7, "keep_alive": "30m",
        "stop": "END", "min_p": 0.1, "parallel_tool_calls": true, "extra_body": {"options": {"seed": 8, "mirostat": 1}}});
    let model = hart_models::build(&config(&server, Dialect::Ollama, more), &http());
    server.push(Turn::new().text("{}"));
    let mut asked = human("hi");
    asked.settings.output = OutputFormat::Json { name: "n".into(), schema: json!({"type": "object"}) };
    ask(&*model, asked).await;
    let options = json!({"seed": 8, "mirostat": 1, "top_p": 0.9, "min_p": 0.1, "stop": ["END"], "num_ctx": 8192,
        "num_predict": 99, "temperature": 0.2});
    let want = json!({"model": "mock-1", "messages": [{"role": "user", "content": "hi"}], "stream": true,
        "truncate": false, "shift": false, "keep_alive": "30m", "options": options, "format": {"type": "object"}});
    assert_eq!(server.last_request().body, want);
}

#[tokio::test]
async fn images_are_bare_base64_beside_the_text() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("a deer"));
    let shown = vec![
        Block::text("Look:"),
        Block::image_base64("image/jpeg", "QUJD"),
        Block::image_url("data:image/png;base64,QQ=="),
        Block::image_url("https://example.org/a.png"),
    ];
    let seen = Message::tool(
        &ToolCallId::from("c1"),
        "view",
        ToolStatus::Success,
        vec![Block::image_base64("image/png", "QQ==")],
    );
    ask(&*model(&server, Dialect::Ollama), request([Message::human(shown), Message::ai(""), seen])).await;
    let want = json!([
        {"role": "user", "content": "Look:\n[image: https://example.org/a.png]", "images": ["QUJD", "QQ=="]},
        {"role": "tool", "content": "", "images": ["QQ=="], "tool_name": "view", "tool_call_id": "c1"},
    ]);
    assert_eq!(server.last_request().body["messages"], want);
}

#[tokio::test]
async fn its_errors_are_understood_before_and_inside_an_answer() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Ollama);
    server.push(Turn::status(404).message("model 'mock-1' not found"));
    let error = fails(&*model, human("hi")).await;
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ModelErrorKind::BadRequest, "model 'mock-1' not found")
    );
    server.push(Turn::status(400).message("the input length exceeds the context length"));
    assert!(matches!(fails(&*model, human("hi")).await.kind, ModelErrorKind::ContextOverflow { .. }));
    let line = json!({"message": {"content": "half"}, "done": false});
    server.push(Turn::raw_sse(format!(
        "{line}\n{}\n",
        json!({"error": "llama runner process has terminated"})
    )));
    let error = fails(&*model, human("hi")).await;
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ModelErrorKind::Overloaded, "llama runner process has terminated")
    );
    assert_eq!(error.partial.as_ref().unwrap().text(), "half");
}

#[tokio::test]
async fn a_break_keeps_what_was_said_at_every_stage_and_the_next_turn_works() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Ollama);
    let turn = || {
        Turn::new().reasoning("hm hm").text("some text").tool_call("c1", "ls", json!({"p": 1})).chunk_chars(2)
    };
    // Three fragments of thought, five of text, the call, the end.
    let kept =
        [("", "", 0), ("hm", "", 0), ("hm hm", "", 0), ("hm hm", "some", 0), ("hm hm", "some text", 1)];
    for (lines, (thought, text, calls)) in [0, 1, 3, 5, 9].into_iter().zip(kept) {
        for broken in [turn().cut_after(lines), turn().cut_after(lines).wire_bytes(1)] {
            server.push(broken);
            let mut error = fails(&*model, human("hi")).await;
            assert_eq!(error.kind, ModelErrorKind::Interrupted);
            let partial = error.take_partial().unwrap();
            let said = serde_json::to_value(&partial.content).unwrap().to_string();
            assert!(said.contains(thought) && partial.text() == text, "{lines}: {said}");
            assert_eq!(partial.tool_calls().len(), calls, "{lines}");
        }
        server.push(Turn::new().text("fine"));
        assert_eq!(ask(&*model, human("again")).await.text(), "fine");
    }
}
