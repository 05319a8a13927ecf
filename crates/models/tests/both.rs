//! What holds in every dialect.

use hart_kernel::{ModelSettings, ToolChoice};
use hart_models::Dialect;
use hart_testkit::{ModelServer, Turn};
use hart_types::{Message, ToolCallId, ToolStatus};
use serde_json::json;

use crate::support::{DIALECTS, ask, config, http, human, model, request, tool, try_ask};

#[tokio::test]
async fn text_comes_whole_however_it_is_cut() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        let text = "Grüße, 世界! \"quoted\" \\ and\na line 🦌";
        for turn in [
            Turn::new().text(text),
            Turn::new().text(text).chunk_chars(1),
            Turn::new().text(text).wire_bytes(1),
            Turn::new().text(text).chunk_chars(3).wire_bytes(7),
            Turn::new().text(text).without_done(),
            Turn::new().text(text).without_usage(),
        ] {
            server.push(turn);
            assert_eq!(ask(&*model, human("hi")).await.text(), text);
        }
    }
}

/// The other dialects have their own, each with its provider's kind of payload.
#[tokio::test]
async fn reasoning_goes_back_byte_for_byte_over_three_turns() {
    for (dialect, thoughts) in [
        (Dialect::OpenAi, [r#""reasoning_content":"one\n🦌","#, r#""reasoning_content":"two \"q\"","#]),
        (
            Dialect::Anthropic,
            [
                r#"{"type":"thinking","thinking":"one\n🦌","signature":"c2lnLTE="}"#,
                r#"{"type":"thinking","thinking":"two \"q\"","signature":"c2lnLTI="}"#,
            ],
        ),
    ] {
        let server = ModelServer::start().await;
        let config = config(&server, dialect, json!({"send_reasoning": true}));
        let model = hart_models::build(&config, &http());
        let turn = |thought, signature, call| {
            Turn::new()
                .reasoning(thought)
                .signature(signature)
                .tool_call(call, "ls", json!({}))
                .chunk_chars(2)
        };
        let mut messages = vec![Message::human("hi")];
        for (turn, call) in
            [(turn("one\n🦌", "c2lnLTE=", "c1"), "c1"), (turn("two \"q\"", "c2lnLTI=", "c2"), "c2")]
        {
            server.push(turn);
            messages.push(ask(&*model, request(messages.clone())).await);
            messages.push(Message::tool(&ToolCallId::from(call), "ls", ToolStatus::Success, "nothing"));
        }
        server.push(Turn::new().text("done"));
        ask(&*model, request(messages)).await;
        let sent = |nth: usize| String::from_utf8(server.requests()[nth].raw.to_vec()).unwrap();
        assert!(sent(1).contains(thoughts[0]), "{dialect:?}: {}", sent(1));
        let last = sent(2);
        let places =
            thoughts.map(|thought| last.find(thought).unwrap_or_else(|| panic!("{dialect:?}: {last}")));
        assert!(places[0] < places[1], "{dialect:?}: {last}");
    }
}

#[tokio::test]
async fn parallel_calls_and_their_results() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        server.push(
            Turn::new()
                .text("Both:")
                .tool_call("call_1", "ls", json!({"path": "/ä"}))
                .tool_call("call_2", "cat", json!({"path": "b", "n": [1, 2.5]}))
                .chunk_chars(1)
                .wire_bytes(1),
        );
        let mut first = human("look");
        first.system = Some("Be brief.".into());
        first.tools = [tool("ls"), tool("cat")].into();
        let said = try_ask(&*model, first).await.unwrap();
        let answer = said.message.unwrap();
        assert_eq!(said.call_args, [r#"{"path":"/ä"}"#, r#"{"path":"b","n":[1,2.5]}"#]);
        let calls = answer.tool_calls();
        assert_eq!((calls[0].name.as_str(), &calls[0].args["path"]), ("ls", &json!("/ä")));
        assert_eq!((calls[1].name.as_str(), &calls[1].args["n"]), ("cat", &json!([1, 2.5])));
        let asked = server.last_request();
        assert_eq!(asked.system(), "Be brief.");
        assert_eq!(asked.tool_names(), ["ls", "cat"]);
        assert!(asked.is_stream());

        server.push(Turn::new().text("done"));
        let result = |id: &str, status, text: &str| Message::tool(&ToolCallId::from(id), "x", status, text);
        let second = request([
            Message::human("look"),
            answer,
            result("call_1", ToolStatus::Success, "a.txt"),
            result("call_2", ToolStatus::Error, "no such file"),
        ]);
        ask(&*model, second).await;
        let asked = server.last_request();
        let results = asked.tool_results();
        assert_eq!((results[0].call_id.as_str(), results[0].content.as_str()), ("call_1", "a.txt"));
        assert_eq!((results[1].call_id.as_str(), results[1].content.as_str()), ("call_2", "no such file"));
        if matches!(dialect, Dialect::Anthropic | Dialect::Gemini) {
            assert!(!results[0].is_error && results[1].is_error);
            assert_eq!(asked.messages().len(), 3, "the results share one message");
        }
    }
}

#[tokio::test]
async fn broken_arguments_become_an_invalid_call_that_can_be_sent_again() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        server.push(Turn::new().tool_call_raw_args("call_1", "ls", "{\"path\": \"/a"));
        let answer = ask(&*model, human("look")).await;
        assert!(answer.tool_calls().is_empty());
        let invalid = answer.as_ai().unwrap().invalid_tool_calls[0].clone();
        assert_eq!(invalid.args.as_deref(), Some("{\"path\": \"/a"));
        assert!(invalid.error.unwrap().contains("line 1 column"));

        server.push(Turn::new().text("sorry"));
        let explained = Message::tool(&ToolCallId::from("call_1"), "ls", ToolStatus::Error, "bad arguments");
        ask(&*model, request([Message::human("look"), answer, explained])).await;
        let sent = server.last_request().messages()[1].clone();
        match dialect {
            Dialect::OpenAi => {
                let call = json!({"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
                assert_eq!(sent["tool_calls"], json!([call]));
            }
            Dialect::Anthropic => {
                assert_eq!(
                    sent["content"],
                    json!([{"type": "tool_use", "id": "call_1", "name": "ls", "input": {}}])
                );
            }
            Dialect::Responses => {
                let call =
                    json!({"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": "{}"});
                assert_eq!(sent, call);
            }
            Dialect::Gemini => {
                let call = json!({"functionCall": {"name": "ls", "args": {}, "id": "call_1"}});
                assert_eq!(sent["parts"], json!([call]));
            }
            Dialect::Ollama => {
                let function = json!({"index": 0, "name": "ls", "arguments": {}});
                let call = json!({"id": "call_1", "type": "function", "function": function});
                assert_eq!(sent["tool_calls"], json!([call]));
            }
        }
    }
}

#[tokio::test]
async fn counts_are_normalised() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        server.push(Turn::new().text("x").usage(1000, 20).cached(700).cache_written(100).reasoning_tokens(5));
        let answer = ask(&*model(&server, dialect), human("hi")).await;
        let usage = answer.as_ai().unwrap().usage.clone().unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (1000, 20, 1020));
        let details = usage.input_token_details.unwrap_or_default();
        // Ollama counts the whole prompt and tells nothing of its cache.
        assert_eq!(details.cache_read, (dialect != Dialect::Ollama).then_some(700));
        match dialect {
            Dialect::OpenAi | Dialect::Responses | Dialect::Gemini => {
                assert_eq!(usage.output_token_details.unwrap().reasoning, Some(5));
            }
            Dialect::Anthropic => assert_eq!(details.cache_creation, Some(100)),
            Dialect::Ollama => assert_eq!(usage.output_token_details, None),
        }
        let metadata = &answer.response_metadata;
        let stop = metadata.get("finish_reason").or(metadata.get("stop_reason")).unwrap();
        assert!(stop == "stop" || stop == "end_turn" || stop == "STOP");
        assert_eq!(metadata["model_name"], "mock-1");
        assert!(metadata.contains_key("id") || dialect == Dialect::Ollama);
        assert!(metadata["model_provider"].is_string());
    }
}

#[tokio::test]
async fn tool_choices_are_spelled() {
    let server = ModelServer::start().await;
    let spelled = |dialect, choice: &ToolChoice| match (dialect, choice) {
        (_, ToolChoice::Auto) => json!(null),
        (Dialect::OpenAi | Dialect::Responses, ToolChoice::None) => json!("none"),
        (Dialect::OpenAi | Dialect::Responses, ToolChoice::Required) => json!("required"),
        (Dialect::Responses, ToolChoice::Named(n)) => json!({"type": "function", "name": n}),
        (Dialect::OpenAi, ToolChoice::Named(n)) => json!({"type": "function", "function": {"name": n}}),
        (Dialect::Anthropic, ToolChoice::None) => json!({"type": "none"}),
        (Dialect::Anthropic, ToolChoice::Required) => json!({"type": "any"}),
        (Dialect::Anthropic, ToolChoice::Named(n)) => json!({"type": "tool", "name": n}),
        (Dialect::Gemini, ToolChoice::None) => json!({"mode": "NONE"}),
        (Dialect::Gemini, ToolChoice::Required) => json!({"mode": "ANY"}),
        (Dialect::Gemini, ToolChoice::Named(n)) => json!({"mode": "ANY", "allowedFunctionNames": [n]}),
        (Dialect::Ollama, _) => json!(null),
    };
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        for choice in
            [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Named("ls".into())]
        {
            server.push(Turn::new().text("ok"));
            let mut asked = human("hi");
            asked.tools = [tool("ls"), tool("cat")].into();
            asked.settings = ModelSettings {
                tool_choice: choice.clone(),
                max_tokens: Some(77),
                temperature: Some(0.7),
                ..ModelSettings::default()
            };
            ask(&*model, asked).await;
            let sent = server.last_request();
            let body = &sent.body;
            let (told, limits, length) = match dialect {
                Dialect::OpenAi | Dialect::Anthropic => (&body["tool_choice"], body, "max_tokens"),
                Dialect::Responses => (&body["tool_choice"], body, "max_output_tokens"),
                Dialect::Gemini => (
                    &body["toolConfig"]["functionCallingConfig"],
                    &body["generationConfig"],
                    "maxOutputTokens",
                ),
                Dialect::Ollama => (&body["tool_choice"], &body["options"], "num_predict"),
            };
            assert_eq!(*told, spelled(dialect, &choice));
            assert_eq!((&limits[length], &limits["temperature"]), (&json!(77), &json!(0.7)));
            // Ollama knows no choice: a tool that must not be called is not offered.
            let offered = match (dialect, &choice) {
                (Dialect::Ollama, ToolChoice::None) => vec![],
                (Dialect::Ollama, ToolChoice::Named(_)) => vec!["ls"],
                _ => vec!["ls", "cat"],
            };
            assert_eq!(sent.tool_names(), offered);
        }
    }
}

#[tokio::test]
async fn the_same_conversation_gives_the_same_bytes_and_a_longer_one_the_same_start() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let model = model(&server, dialect);
        let mut first = human("one");
        first.system = Some("S".into());
        first.tools = [tool("ls")].into();
        let mut longer = first.clone();
        longer.messages.push(Message::ai("two").into());
        longer.messages.push(Message::human("three").into());
        server.push_all([Turn::new(), Turn::new(), Turn::new()]);
        for request in [first.clone(), first, longer] {
            ask(&*model, request).await;
        }
        let requests = server.requests();
        let [a, b, c] = &requests[requests.len() - 3..] else { panic!("three requests") };
        assert_eq!(a.raw, b.raw);
        let until_one = a.raw.windows(3).position(|w| w == b"one").unwrap();
        assert_eq!(a.raw[..until_one], c.raw[..until_one]);
    }
}
