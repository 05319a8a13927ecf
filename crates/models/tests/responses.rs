//! What only the Responses API has.

use hart_kernel::{Effort, ModelErrorKind, OutputFormat, Reasoning};
use hart_models::{Dialect, ModelConfig, ModelEntry};
use hart_testkit::{ModelServer, Turn};
use hart_types::{Block, Content, Message, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use crate::support::{KEY, ask, config, fails, http, human, model, request, thinking, tool, try_ask};

fn result(id: &str, content: impl Into<Content>) -> Message {
    Message::tool(&ToolCallId::from(id), "ls", ToolStatus::Success, content.into())
}

/// The stream of these finished items.
fn items(items: &[Value]) -> Turn {
    let mut stream = String::new();
    let mut event = |value: Value| {
        stream.push_str(&format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap()));
    };
    for (index, item) in items.iter().enumerate() {
        event(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        event(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    event(json!({"type": "response.completed", "response": {"id": "resp_1", "output": items}}));
    Turn::raw_sse(stream)
}

#[tokio::test]
async fn the_request_is_exactly_this() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    let more = json!({"max_tokens": 100, "temperature": 0.2, "top_p": 0.9, "supports_thinking": true,
        "default_headers": {"X-Team": "deer"}});
    let model = hart_models::build(&config(&server, Dialect::Responses, more), &http());
    let mut asked = human("hi");
    asked.system = Some("S".into());
    asked.tools = [tool("ls")].into();
    ask(&*model, asked).await;
    let sent = server.last_request();
    assert_eq!(sent.path, "/v1/responses");
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("x-team"), Some("deer"));
    let want = concat!(
        r#"{"model":"mock-1","instructions":"S","tools":[{"type":"function","name":"ls","description":"Does ls.","#,
        r#""parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false}],"#,
        r#""input":[{"type":"message","role":"user","content":"hi"}],"stream":true,"store":false,"#,
        r#""max_output_tokens":100,"temperature":0.2,"top_p":0.9,"include":["reasoning.encrypted_content"]}"#,
    );
    assert_eq!(String::from_utf8_lossy(&sent.raw), want);
}

#[tokio::test]
async fn reasoning_goes_back_byte_for_byte_over_three_turns() {
    let server = ModelServer::start().await;
    let more = json!({"supports_thinking": true});
    let model = hart_models::build(&config(&server, Dialect::Responses, more), &http());
    let thought = "First:\n\t\"check\" the \u{1F98C} \\ and /\u{0007}";
    server.push_all([
        Turn::new()
            .reasoning(thought)
            .signature("gAAAAA+/=é")
            .tool_call("c1", "ls", json!({"path": "/ä"}))
            .tool_call_raw_args("c2", "ls", "{ \"path\": \"b\" }")
            .chunk_chars(2),
        Turn::new().redacted_reasoning("gBBBBB").text("Look:").tool_call("c3", "ls", json!({})),
        Turn::new().reasoning("Done").signature("gCCCCC").text("All."),
        Turn::new().text("Bye."),
    ]);
    let mut messages = vec![Message::human("hi")];
    for results in [vec!["c1", "c2"], vec!["c3"], vec![]] {
        let mut asked = thinking(request(messages.clone()), Reasoning::On(Effort::Low));
        asked.tools = [tool("ls")].into();
        messages.push(ask(&*model, asked).await);
        messages.extend(results.iter().map(|id| result(id, "x")));
        if results.is_empty() {
            messages.push(Message::human("thanks"));
        }
    }
    ask(&*model, request(messages)).await;
    let raw = String::from_utf8(server.last_request().raw.to_vec()).unwrap();
    let want = [
        r#""input":[{"type":"message","role":"user","content":"hi"},"#,
        r#"{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"First:\n\t\"check\" the 🦌 \\ and /\u0007"}],"encrypted_content":"gAAAAA+/=é"},"#,
        r#"{"id":"fc_1_1","type":"function_call","status":"completed","call_id":"c1","name":"ls","arguments":"{\"path\":\"/ä\"}"},"#,
        r#"{"id":"fc_1_2","type":"function_call","status":"completed","arguments":"{ \"path\": \"b\" }","call_id":"c2","name":"ls"},"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"x"},"#,
        r#"{"type":"function_call_output","call_id":"c2","output":"x"},"#,
        r#"{"id":"rs_2_0","type":"reasoning","summary":[],"encrypted_content":"gBBBBB"},"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look:","annotations":[]}],"id":"msg_2_1","status":"completed"},"#,
        r#"{"id":"fc_2_2","type":"function_call","status":"completed","call_id":"c3","name":"ls","arguments":"{}"},"#,
        r#"{"type":"function_call_output","call_id":"c3","output":"x"},"#,
        r#"{"id":"rs_3_0","type":"reasoning","summary":[{"type":"summary_text","text":"Done"}],"encrypted_content":"gCCCCC"},"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"All.","annotations":[]}],"id":"msg_3_1","status":"completed"},"#,
        r#"{"type":"message","role":"user","content":"thanks"}],"#,
    ];
    assert!(raw.contains(&want.concat()), "{raw}");
    // Each request begins as the one before it did.
    let requests = server.requests();
    let input = |n: usize| {
        let raw = String::from_utf8(requests[n].raw.to_vec()).unwrap();
        raw.split_once("\"input\":[").unwrap().1.rsplit_once("],\"stream\"").unwrap().0.to_owned()
    };
    assert!((0..3).all(|n| input(n + 1).starts_with(&input(n))));
}

#[tokio::test]
async fn a_stored_message_survives_its_way_through_json() {
    let server = ModelServer::start().await;
    let more = json!({"supports_thinking": true});
    let model = hart_models::build(&config(&server, Dialect::Responses, more), &http());
    let all = [
        json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "g+/=", "status": null}),
        json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}),
        json!({"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "A", "annotations": [{"type": "url_citation", "url": "u"}]},
            {"type": "output_text", "text": "B", "annotations": []}],
            "id": "msg_1", "status": "completed", "phase": "final_answer"}),
    ];
    server.push(items(&all));
    let answer = ask(&*model, human("hi")).await;
    assert_eq!(answer.text(), "AB");
    let answer: Message = serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap();
    server.push(Turn::new().text("ok"));
    ask(&*model, request([Message::human("hi"), answer, Message::human("more")])).await;
    assert_eq!(server.last_request().messages()[1..4], all);
}

#[tokio::test]
async fn what_is_encrypted_goes_to_nobody_else() {
    let server = ModelServer::start().await;
    let more = json!({"supports_thinking": true});
    let one = hart_models::build(&config(&server, Dialect::Responses, more.clone()), &http());
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed"});
    let reasoning = json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "g"});
    let said = json!({"id": "m", "type": "message", "content": [{"type": "output_text", "text": "Hm"}]});
    let call = json!({"id": "fc", "type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"});
    server.push(items(&[reasoning, search, said, call]));
    let answer = ask(&*one, human("hi")).await;
    let conversation = [Message::human("hi"), answer, result("c1", "x")];
    let mut other = more;
    other["use"] = json!("xai");
    let targets = [
        (
            config(&server, Dialect::Responses, other),
            json!([
                {"type": "message", "role": "assistant", "content": "Hm"},
                {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
            ]),
        ),
        (
            config(&server, Dialect::OpenAi, json!({})),
            json!([
                {"role": "assistant", "content": "Hm", "tool_calls":
                    [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
            ]),
        ),
        (
            config(&server, Dialect::Anthropic, json!({})),
            json!([
                {"role": "assistant", "content": [{"type": "text", "text": "Hm"},
                    {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]},
            ]),
        ),
    ];
    for (config, want) in targets {
        server.push(Turn::new().text("ok"));
        ask(&*hart_models::build(&config, &http()), request(conversation.clone())).await;
        let sent = server.last_request();
        let count = want.as_array().unwrap().len();
        assert_eq!(sent.messages()[1..=count], *want.as_array().unwrap(), "{:?}", config.dialect);
    }
    // And what others sign is not sent here.
    server.push(Turn::new().reasoning("t").signature("s").text("A").tool_call("c2", "ls", json!({})));
    let foreign = ask(&*model(&server, Dialect::Anthropic), human("hi")).await;
    server.push(Turn::new().text("ok"));
    ask(&*one, request([Message::human("hi"), foreign, result("c2", "x")])).await;
    let want = json!([
        {"type": "message", "role": "assistant", "content": "A"},
        {"type": "function_call", "call_id": "c2", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "x"},
    ]);
    assert_eq!(server.last_request().messages()[1..], *want.as_array().unwrap());
}

#[tokio::test]
async fn reasoning_that_the_provider_could_not_take_back_is_left_out() {
    let server = ModelServer::start().await;
    let said = json!({"id": "m", "type": "message", "content": [{"type": "output_text", "text": "Hm"}]});
    let bare = json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]});
    let open = json!({"id": "rs_2", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]});
    let sealed = json!({"id": "rs_3", "type": "reasoning", "summary": [], "encrypted_content": "g"});
    // A summary alone is of no use without a stored copy; and nothing may end with reasoning.
    for (more, output, want) in [
        (json!({}), vec![bare.clone(), said.clone()], vec!["message"]),
        (json!({"extra_body": {"store": true}}), vec![bare, said.clone()], vec!["reasoning", "message"]),
        (json!({}), vec![open, said.clone()], vec!["reasoning", "message"]),
        (json!({}), vec![said, sealed.clone()], vec!["message"]),
        (json!({}), vec![sealed], vec![]),
    ] {
        let model = hart_models::build(&config(&server, Dialect::Responses, more), &http());
        server.push_all([items(&output), Turn::new().text("ok")]);
        let answer = ask(&*model, human("hi")).await;
        ask(&*model, request([Message::human("hi"), answer, Message::human("more")])).await;
        let sent = server.last_request();
        let input = sent.messages();
        let kinds: Vec<_> =
            input[1..input.len() - 1].iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, want, "{output:?}");
    }
}

#[tokio::test]
async fn a_call_that_was_changed_since_goes_as_it_is_now() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Responses);
    let reasoning = json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "g"});
    let call = |id: &str| json!({"id": id, "type": "function_call", "call_id": id, "name": "ls", "arguments": "{ \"a\": 1 }"});
    server.push_all([items(&[reasoning, call("c1"), call("c2")]), Turn::new().text("ok")]);
    let mut answer = ask(&*model, human("hi")).await;
    if let hart_types::Body::Ai(ai) = &mut answer.body {
        ai.tool_calls[0].args.insert("a".to_owned(), json!(2));
        ai.tool_calls.remove(1);
    }
    ask(&*model, request([Message::human("hi"), answer, result("c1", "x")])).await;
    let sent = server.last_request();
    assert_eq!(sent.messages().len(), 4, "a call that is gone is not sent");
    assert_eq!(sent.messages()[2]["arguments"], "{\"a\":2}");
}

#[tokio::test]
async fn images_and_files_go_in_with_messages_and_with_results() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Responses);
    server.push(Turn::new().tool_call("c1", "ls", json!({})));
    let shown = vec![
        Block::text("What is this?"),
        Block::image_base64("image/jpeg", "QUJD"),
        Block::object(
            json!({"type": "image_url", "image_url": {"url": "https://e.org/a.png", "detail": "low"}}),
        ),
        Block::object(
            json!({"type": "file", "mime_type": "application/pdf", "base64": "QQ==", "filename": "a.pdf"}),
        ),
    ];
    let question = Message::human(shown);
    let answer = ask(&*model, request([question.clone()])).await;
    server.push(Turn::new().text("a deer"));
    let picture = Content::Blocks(vec![Block::text("seen"), Block::image_base64("image/png", "QQ==")]);
    ask(&*model, request([question, answer, result("c1", picture)])).await;
    let sent = server.last_request();
    let want = json!([
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,QUJD"},
        {"type": "input_image", "image_url": "https://e.org/a.png", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="},
    ]);
    assert_eq!(sent.messages()[0]["content"], want);
    let want = json!([
        {"type": "input_text", "text": "seen"},
        {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
    ]);
    assert_eq!(sent.messages()[2], json!({"type": "function_call_output", "call_id": "c1", "output": want}));
}

#[tokio::test]
async fn reasoning_settings_reach_the_body() {
    let server = ModelServer::start().await;
    let openai = |more: Value| {
        let mut all = json!({"use": "openai", "temperature": 0.3});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let on = Reasoning::On(Effort::High);
    let cases = [
        (openai(json!({"model": "gpt-5.6"})), on, json!({"effort": "high", "summary": "auto"}), true),
        (openai(json!({"model": "gpt-5.6"})), Reasoning::Off, json!({"effort": "none"}), true),
        (openai(json!({"model": "gpt-5.6"})), Reasoning::Default, json!(null), true),
        (openai(json!({"model": "gpt-5"})), Reasoning::Off, json!({"effort": "minimal"}), true),
        (
            openai(json!({"model": "gpt-5.6"})),
            Reasoning::Budget(9000),
            json!({"effort": "medium", "summary": "auto"}),
            true,
        ),
        (openai(json!({"model": "gpt-4.1"})), on, json!(null), false),
        (openai(json!({"model": "gpt-4.1"})), Reasoning::Off, json!(null), false),
        (json!({"supports_thinking": true}), on, json!({"effort": "high", "summary": "auto"}), true),
        (
            openai(json!({"model": "gpt-5.6", "reasoning_effort": "low"})),
            Reasoning::Default,
            json!({"effort": "low"}),
            true,
        ),
        (
            openai(json!({"model": "gpt-5.6", "reasoning": {"summary": null}})),
            on,
            json!({"effort": "high"}),
            true,
        ),
        (
            openai(json!({"model": "gpt-5.6", "supports_reasoning_effort": true,
                "when_thinking_enabled": {"reasoning": {"effort": "xhigh", "summary": "detailed"}}})),
            on,
            json!({"effort": "xhigh", "summary": "detailed"}),
            true,
        ),
        (
            openai(json!({"model": "gpt-5.6", "supports_reasoning_effort": true,
                "when_thinking_enabled": {"reasoning_effort": "xhigh"}})),
            on,
            json!({"effort": "xhigh", "summary": "auto"}),
            true,
        ),
    ];
    for (more, reasoning, want, encrypted) in cases {
        let model = hart_models::build(&config(&server, Dialect::Responses, more.clone()), &http());
        server.push(Turn::new().text("ok"));
        ask(&*model, thinking(human("hi"), reasoning)).await;
        let body = server.last_request().body.clone();
        assert_eq!(body["reasoning"], want, "{more} {reasoning:?}");
        assert!(body.get("reasoning_effort").is_none());
        assert_eq!(body["include"] == json!(["reasoning.encrypted_content"]), encrypted, "{more}");
        // Those that reason unless told otherwise take none of it until they are told.
        let reasons = body["model"].as_str().unwrap().starts_with("gpt-5");
        let refuses = reasons && want["effort"] != "none";
        assert_eq!(body.get("temperature").is_none(), refuses || more.get("temperature").is_none(), "{more}");
    }
}

#[tokio::test]
async fn words_of_chat_completions_are_translated_or_left_out() {
    let server = ModelServer::start().await;
    let more = json!({"use": "openai", "seed": 1, "stop": ["x"], "frequency_penalty": 0.1, "service_tier": "flex",
        "model_kwargs": {"max_completion_tokens": 50, "verbosity": "low"},
        "extra_body": {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"], "user": null},
        "supports_thinking": true});
    let model = hart_models::build(&config(&server, Dialect::Responses, more), &http());
    server.push(Turn::new().text("ok"));
    let mut asked = human("hi");
    asked.tools = [tool("ls")].into();
    ask(&*model, asked).await;
    let body = server.last_request().body.clone();
    for key in ["seed", "stop", "frequency_penalty", "max_completion_tokens", "verbosity", "user"] {
        assert!(body.get(key).is_none(), "{key}");
    }
    assert_eq!((&body["max_output_tokens"], &body["service_tier"]), (&json!(50), &json!("flex")));
    assert_eq!(body["text"], json!({"verbosity": "low"}));
    assert_eq!(body["include"], json!(["web_search_call.action.sources", "reasoning.encrypted_content"]));
    assert_eq!((&body["tools"][0]["name"], &body["tools"][1]["type"]), (&json!("ls"), &json!("web_search")));
}

#[tokio::test]
async fn a_schema_is_asked_for_and_enforced_where_it_can_be() {
    let server = ModelServer::start().await;
    let model = model(&server, Dialect::Responses);
    let open = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let mut closed = open.clone();
    closed["required"] = json!(["title"]);
    closed["additionalProperties"] = json!(false);
    for (schema, strict) in [(open, false), (closed, true)] {
        server.push(Turn::new().text("{\"title\":\"x\"}"));
        let mut asked = human("hi");
        asked.settings.output = OutputFormat::Json { name: "a title!".to_owned(), schema: schema.clone() };
        ask(&*model, asked).await;
        let format = json!({"type": "json_schema", "name": "a_title_", "schema": schema, "strict": strict});
        assert_eq!(server.last_request().body["text"], json!({"format": format}));
    }
}

#[tokio::test]
async fn system_messages_at_the_start_are_instructions_and_later_ones_are_said() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("ok"));
    let mut asked = request([Message::system("B"), Message::human("hi"), Message::system("C")]);
    asked.system = Some("A".into());
    ask(&*model(&server, Dialect::Responses), asked).await;
    let sent = server.last_request();
    assert_eq!(sent.system(), "A\n\nB");
    assert_eq!(sent.messages()[1], json!({"type": "message", "role": "system", "content": "C"}));
}

#[tokio::test]
async fn every_place_where_it_can_break_is_an_error_and_the_next_turn_works() {
    let server = ModelServer::start().await;
    let quick = config(&server, Dialect::Responses, json!({"stream_chunk_timeout": 0.2}));
    let model = hart_models::build(&quick, &http());
    let turn = || {
        Turn::new().reasoning("think").text("say").tool_call("c1", "ls", json!({"path": "a"})).chunk_chars(2)
    };
    // Created twice, then reasoning (8 events), text (7), arguments (9), and the end.
    for events in 0..27 {
        server.push(turn().cut_after(events));
        let error = fails(&*model, human("hi")).await;
        assert_eq!(error.kind, ModelErrorKind::Interrupted, "{events}: {error:?}");
        let partial = error.partial.as_ref();
        // What had been said by then is kept.
        let text = partial.map(|message| message.text()).unwrap_or_default();
        assert!("say".starts_with(&text) && (events < 15 || text == "say"), "{events}: {text}");
    }
    for events in [0, 2, 5, 13, 21, 26] {
        server.push(turn().hang_after(events));
        let error = fails(&*model, human("hi")).await;
        assert!(matches!(error.kind, ModelErrorKind::Timeout(_)), "{events}: {error:?}");
    }
    for turn in [Turn::new(), Turn::new().reasoning("t"), Turn::new().text("s"), turn()] {
        server.push(turn.stream_error("server_error", "boom"));
        let error = fails(&*model, human("hi")).await;
        assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Overloaded, "boom"));
    }
    server.push(turn().stop("length"));
    let said = try_ask(&*model, human("hi")).await.unwrap();
    assert_eq!((said.reasoning.as_str(), said.text.as_str()), ("think", "say"));
    assert_eq!(said.message.unwrap().response_metadata["finish_reason"], "length");
}

#[tokio::test]
async fn openai_itself_is_spoken_to_so_and_others_only_when_told() {
    let resolve = |entry: Value| {
        let entry: ModelEntry = serde_json::from_value(entry).unwrap();
        ModelConfig::resolve(entry, &|_| Some("key-1".to_owned()))
    };
    let own = "https://api.openai.com/v1/";
    for (entry, dialect) in [
        (json!({"use": "openai"}), Dialect::Responses),
        (json!({"use": "langchain_openai:ChatOpenAI"}), Dialect::Responses),
        (json!({"use": "openai", "base_url": own}), Dialect::Responses),
        (json!({"use": "openai", "base_url": "https://api.openai.com/v1/responses"}), Dialect::Responses),
        (json!({"use": "openai", "use_responses_api": false}), Dialect::OpenAi),
        (json!({"use": "openai", "base_url": "http://proxy/v1"}), Dialect::OpenAi),
        (
            json!({"use": "openai", "base_url": "http://proxy/v1", "use_responses_api": true}),
            Dialect::Responses,
        ),
        (json!({"use": "openai", "base_url": "http://proxy/v1", "use_responses_api": null}), Dialect::OpenAi),
        (json!({"use": "groq"}), Dialect::OpenAi),
        (json!({"use": "groq", "use_responses_api": true}), Dialect::Responses),
        (json!({"use": "anthropic", "use_responses_api": false}), Dialect::Anthropic),
    ] {
        let mut whole = entry.clone();
        whole["model"] = json!("m");
        let config = resolve(whole).unwrap();
        assert_eq!(config.dialect, dialect, "{entry}");
        assert!(!config.base_url.ends_with("/responses"));
    }
    let refused = resolve(json!({"use": "anthropic", "model": "m", "use_responses_api": true}));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "model `m`: `use_responses_api` has no meaning for `use: anthropic`; remove it"
    );
}
