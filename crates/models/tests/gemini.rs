//! What only Gemini's API has.

use std::time::Duration;

use hart_kernel::{Effort, ModelErrorKind, OutputFormat, Reasoning};
use hart_models::Dialect;
use hart_testkit::{ModelServer, Turn};
use hart_types::{Ai, Block, Body, Message, ToolCall, ToolCallId, ToolStatus};
use serde_json::{Map, Value, json};

use crate::support::{KEY, ask, config, fails, http, human, model, request, thinking, tool};

fn result(id: &str, text: &str) -> Message {
    Message::tool(&ToolCallId::from(id), "ls", ToolStatus::Success, text)
}

#[tokio::test]
async fn three_turns_of_signatures_go_back_byte_for_byte() {
    let server = ModelServer::start().await;
    let model =
        hart_models::build(&config(&server, Dialect::Gemini, json!({"model": "gemini-3-flash"})), &http());
    let sign = |n: u32| format!("Cq{n}B+/\\u003d\u{1f98c}\"=={}", "x".repeat(900));
    // A thought, a text and two calls at once; only the first of these is signed, and has an id of the model's.
    server.push(
        Turn::new()
            .reasoning("I should \"look\".\n🦌")
            .signature(sign(1))
            .text("Looking.")
            .tool_call("f1", "ls", json!({"z": 1, "a": [true, null]}))
            .signature(sign(2))
            .tool_call("", "cat", json!({}))
            .chunk_chars(3)
            .wire_bytes(5),
    );
    let first = ask(&*model, human("hi")).await;
    let second_id = first.tool_calls()[1].id.clone().unwrap();
    let mut talk = vec![Message::human("hi"), first, result("f1", "a.txt"), result(second_id.as_str(), "b")];

    server.push(Turn::new().tool_call("f3", "ls", json!({"p": "ü"})).signature(sign(3)));
    let second = ask(&*model, request(talk.clone())).await;
    talk.extend([second, result("f3", "done")]);

    // The last answer calls nothing, and its signature comes alone behind the text.
    let stream = [
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "It is "}]}}]}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "there."}]}}]}),
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "", "thoughtSignature": sign(4)}]}, "finishReason": "STOP"}]}),
    ];
    server.push(Turn::raw_sse(stream.map(|event| format!("data: {event}\r\n\r\n")).concat()));
    let third = ask(&*model, request(talk.clone())).await;
    talk.extend([third, Message::human("thanks")]);
    server.push(Turn::new().text("welcome"));
    ask(&*model, request(talk)).await;

    let sent = server.last_request();
    let quoted = |n: u32| serde_json::to_string(&sign(n)).unwrap();
    let want = [
        r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":["#.to_owned(),
        format!(r#"{{"text":"","thought":true,"thoughtSignature":{}}},{{"text":"Looking."}},"#, quoted(1)),
        format!(
            r#"{{"functionCall":{{"name":"ls","args":{{"z":1,"a":[true,null]}},"id":"f1"}},"thoughtSignature":{}}},"#,
            quoted(2)
        ),
        r#"{"functionCall":{"name":"cat","args":{}}}]},{"role":"user","parts":["#.to_owned(),
        r#"{"functionResponse":{"name":"ls","response":{"output":"a.txt"},"id":"f1"}},"#.to_owned(),
        r#"{"functionResponse":{"name":"cat","response":{"output":"b"}}}]},{"role":"model","parts":["#.to_owned(),
        format!(
            r#"{{"functionCall":{{"name":"ls","args":{{"p":"ü"}},"id":"f3"}},"thoughtSignature":{}}}]}},"#,
            quoted(3)
        ),
        r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"done"},"id":"f3"}}]},"#
            .to_owned(),
        format!(
            r#"{{"role":"model","parts":[{{"text":"It is there."}},{{"text":"","thoughtSignature":{}}}]}},"#,
            quoted(4)
        ),
        r#"{"role":"user","parts":[{"text":"thanks"}]}]}"#.to_owned(),
    ];
    assert_eq!(String::from_utf8_lossy(&sent.raw), want.concat());
    assert_eq!(sent.path, "/v1beta/models/gemini-3-flash:streamGenerateContent");
    assert_eq!(sent.query.as_deref(), Some("alt=sse"));
    assert_eq!((sent.header("x-goog-api-key"), sent.header("authorization")), (Some(KEY), None));
}

#[tokio::test]
async fn what_others_signed_is_left_out_and_their_calls_are_excused() {
    let server = ModelServer::start().await;
    let mut call = ToolCall::new("toolu_1", "ls", Map::new());
    call.extra.insert("thoughtSignature".to_owned(), "not yours".into());
    let called = Ai { tool_calls: vec![call, ToolCall::new("toolu_2", "cat", Map::new())], ..Ai::default() };
    let blocks = vec![
        Block::object(json!({"type": "thinking", "thinking": "hm", "signature": "EqQB"})),
        Block::object(json!({"type": "redacted_thinking", "data": "x"})),
        Block::object(json!({"type": "text", "text": "So:", "thoughtSignature": "not yours"})),
        Block::object(json!({"type": "tool_use", "id": "toolu_2", "name": "cat", "input": {}})),
    ];
    let foreign = Message::new(Body::Ai(called), blocks);
    for (name, excused) in [("gemini-3-pro-preview", true), ("gemini-2.5-pro", false)] {
        server.push(Turn::new().text("ok"));
        let config = config(&server, Dialect::Gemini, json!({"model": name}));
        let talk = [Message::human("hi"), foreign.clone(), result("toolu_1", "a"), result("toolu_2", "b")];
        ask(&*hart_models::build(&config, &http()), request(talk)).await;
        let mut first = json!({"functionCall": {"name": "ls", "args": {}, "id": "toolu_1"}});
        if excused {
            first["thoughtSignature"] = json!("skip_thought_signature_validator");
        }
        let second = json!({"functionCall": {"name": "cat", "args": {}, "id": "toolu_2"}});
        assert_eq!(server.last_request().messages()[1]["parts"], json!([{"text": "So:"}, second, first]));
    }
}

#[tokio::test]
async fn pictures_and_files_go_in_where_they_belong() {
    let server = ModelServer::start().await;
    let shown = vec![
        Block::text("Look:"),
        Block::image_base64("image/jpeg", "QUJD"),
        Block::image_url("data:image/png;base64,QQ=="),
        Block::image_url("https://example.org/a.png?x=1"),
        Block::object(json!({"type": "file", "mime_type": "application/pdf", "base64": "UERG"})),
        Block::object(json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,UA=="}})),
        Block::object(
            json!({"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "VA=="}}),
        ),
        Block::object(json!({"type": "media", "mime_type": "video/mp4", "file_uri": "https://files/1"})),
        Block::object(json!({"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}})),
        Block::object(json!({"type": "mystery", "x": 1})),
    ];
    let inline = |kind: &str, data: &str| json!({"inlineData": {"mimeType": kind, "data": data}});
    let want = json!([
        {"text": "Look:"},
        inline("image/jpeg", "QUJD"),
        inline("image/png", "QQ=="),
        {"fileData": {"fileUri": "https://example.org/a.png?x=1", "mimeType": "image/png"}},
        inline("application/pdf", "UERG"),
        inline("application/pdf", "UA=="),
        inline("text/plain", "VA=="),
        {"fileData": {"fileUri": "https://files/1", "mimeType": "video/mp4"}},
        inline("audio/wav", "QQ=="),
        {"text": "{\"type\":\"mystery\",\"x\":1}"},
    ]);
    let called = Ai { tool_calls: vec![ToolCall::new("c1", "view", Map::new())], ..Ai::default() };
    let seen = Message::tool(
        &ToolCallId::from("c1"),
        "",
        ToolStatus::Success,
        vec![Block::text("a deer"), Block::image_base64("image/png", "QQ==")],
    );
    for (name, inside) in [("gemini-3-flash", true), ("gemini-2.5-flash", false)] {
        server.push(Turn::new().text("ok"));
        let config = config(&server, Dialect::Gemini, json!({"model": name}));
        let talk = [Message::human(shown.clone()), Message::new(Body::Ai(called.clone()), ""), seen.clone()];
        ask(&*hart_models::build(&config, &http()), request(talk)).await;
        let sent = server.last_request();
        assert_eq!(sent.messages()[0]["parts"], want);
        let mut response = json!({"name": "view", "response": {"output": "a deer"}, "id": "c1"});
        let picture = inline("image/png", "QQ==");
        let parts = if inside {
            response["parts"] = json!([picture]);
            json!([{"functionResponse": response}])
        } else {
            json!([{"functionResponse": response}, picture])
        };
        assert_eq!(sent.messages()[2]["parts"], parts, "the name is that of the call");
    }
}

#[tokio::test]
async fn settings_are_spelled_in_its_words() {
    let server = ModelServer::start().await;
    let more = json!({"model": "gemini-2.5-flash", "supports_thinking": true, "supports_reasoning_effort": true,
        "top_p": 0.9, "top_k": 40, "seed": 7, "stop": "END", "parallel_tool_calls": true, "reasoning_effort": "low",
        "safety_settings": {"HARM_CATEGORY_HATE_SPEECH": "BLOCK_NONE"},
        "extra_body": {"generationConfig": {"topP": 0.5}, "tools": [{"googleSearch": {}}]}});
    let model = hart_models::build(&config(&server, Dialect::Gemini, more), &http());
    server.push(Turn::new().text("ok"));
    let mut asked = thinking(human("hi"), Reasoning::On(Effort::Low));
    asked.system = Some("Be brief.".into());
    asked.tools = [tool("ls")].into();
    asked.messages =
        [Message::system("And kind."), Message::human("hi")].map(Into::into).into_iter().collect();
    ask(&*model, asked).await;
    let generation = json!({"topP": 0.5, "topK": 40, "seed": 7, "stopSequences": ["END"],
        "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 1024}});
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let want = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "And kind."}]},
        "tools": [
            {"functionDeclarations": [{"name": "ls", "description": "Does ls.", "parametersJsonSchema": schema}]},
            {"googleSearch": {}},
        ],
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": generation,
        "safetySettings": [{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}],
    });
    assert_eq!(server.last_request().body, want);
}

#[tokio::test]
async fn a_model_that_has_not_said_it_thinks_is_not_asked_to() {
    let server = ModelServer::start().await;
    for (more, reasoning, want) in [
        (json!({"supports_thinking": false}), Reasoning::On(Effort::High), json!(null)),
        (json!({"supports_thinking": true}), Reasoning::Default, json!(null)),
        (json!({"supports_thinking": true}), Reasoning::Off, json!({"thinkingLevel": "minimal"})),
        (
            json!({"thinking_budget": 9, "supports_thinking": true}),
            Reasoning::Off,
            json!({"thinkingBudget": 9}),
        ),
    ] {
        let mut all = json!({"model": "gemini-3-flash"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.push(Turn::new().text("ok"));
        let model = hart_models::build(&config(&server, Dialect::Gemini, all), &http());
        ask(&*model, thinking(human("hi"), reasoning)).await;
        assert_eq!(server.last_request().body["generationConfig"]["thinkingConfig"], want, "{more}");
    }
}

#[tokio::test]
async fn a_format_is_enforced_or_asked_for_in_words() {
    let server = ModelServer::start().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 2}}});
    let cleaned = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    for (name, tools, enforced) in [
        ("gemini-2.5-pro", false, true),
        ("gemini-2.5-pro", true, false),
        ("gemini-3-pro-preview", true, true),
    ] {
        server.push(Turn::new().text("{}"));
        let mut asked = human("hi");
        asked.settings.output = OutputFormat::Json { name: "answer".into(), schema: schema.clone() };
        asked.settings.stop = vec!["X".into()];
        if tools {
            asked.tools = [tool("ls")].into();
        }
        let config = config(&server, Dialect::Gemini, json!({"model": name}));
        ask(&*hart_models::build(&config, &http()), asked).await;
        let sent = server.last_request();
        let generation = &sent.body["generationConfig"];
        let kind = if enforced { json!("application/json") } else { json!(null) };
        assert_eq!((&generation["responseMimeType"], &generation["stopSequences"]), (&kind, &json!(["X"])));
        assert_eq!(generation["responseJsonSchema"], if enforced { cleaned.clone() } else { json!(null) });
        assert_eq!(sent.system().contains(&cleaned.to_string()), !enforced);
    }
}

#[tokio::test]
async fn refusals_of_every_shape_are_understood() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Gemini);
    let body = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]}}]);
    server.push(Turn::status(429).body(body));
    let error = fails(&*model, human("hi")).await;
    assert_eq!((error.kind, error.retry_after), (ModelErrorKind::RateLimit, Some(Duration::from_secs(7))));
    let body = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": format!("bad key {KEY}"),
        "details": [{"reason": "API_KEY_INVALID"}]}});
    server.push(Turn::status(400).body(body));
    assert_eq!(fails(&*model, human("hi")).await.kind, ModelErrorKind::Auth);
    let sse = |event: Value| Turn::raw_sse(format!("data: {event}\n\n"));
    server.push(sse(json!({"promptFeedback": {"blockReason": "SAFETY"}})));
    let error = fails(&*model, human("hi")).await;
    assert_eq!((error.kind, error.status), (ModelErrorKind::ContentFilter, None));
    server.push(sse(json!({"candidates": [{"finishReason": "SAFETY"}]})));
    assert_eq!(fails(&*model, human("hi")).await.kind, ModelErrorKind::ContentFilter);
    server.push(Turn::new().text("half a").stop("content_filter"));
    let answer = ask(&*model, human("hi")).await;
    assert_eq!((answer.text().as_str(), &answer.additional_kwargs["refusal"]), ("half a", &json!("SAFETY")));
}

#[tokio::test]
async fn a_break_keeps_what_was_said_at_every_stage_and_the_next_turn_works() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Gemini);
    let turn = || {
        Turn::new()
            .reasoning("hm hm")
            .signature("S")
            .text("some text")
            .tool_call("f1", "ls", json!({"p": 1}))
            .chunk_chars(2)
    };
    // Three fragments of thought, its signature, five of text, the call, the end.
    let kept = [
        ("", "", 0),
        ("hm", "", 0),
        ("hm hm", "", 0),
        ("hm hm", "", 0),
        ("hm hm", "some", 0),
        ("hm hm", "some text", 1),
    ];
    for (events, (thought, text, calls)) in [0, 1, 3, 4, 6, 10].into_iter().zip(kept) {
        for broken in [turn().cut_after(events), turn().cut_after(events).wire_bytes(1)] {
            server.push(broken);
            let mut error = fails(&*model, human("hi")).await;
            assert_eq!(error.kind, ModelErrorKind::Interrupted);
            let partial = error.take_partial().unwrap();
            let said = serde_json::to_value(&partial.content).unwrap().to_string();
            assert!(said.contains(thought) && partial.text() == text, "{events}: {said}");
            assert_eq!(partial.tool_calls().len(), calls, "{events}");
        }
        server.push(Turn::new().text("fine"));
        assert_eq!(ask(&*model, human("again")).await.text(), "fine");
    }
}
