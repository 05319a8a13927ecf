//! What a model does not take is not sent to it, and that is told once.

use std::sync::{Arc, Mutex};

use hart_kernel::{ChatModel, ChatRequest, Effort, OutputFormat, Reasoning, ToolChoice};
use hart_models::{Dialect, ModelConfig};
use hart_testkit::{ModelServer, RecordedRequest, Turn};
use hart_types::{Block, Message};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::{Level, Subscriber};

use crate::support::{DIALECTS, ask, config, http, human, request, sends, tool};

/// Keeps the warnings of one thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Asks twice, and gives back what was sent and what was told about it.
async fn asked_twice(
    server: &ModelServer,
    model: &dyn ChatModel,
    asked: &ChatRequest,
) -> (Arc<RecordedRequest>, Vec<String>) {
    let warnings = Warnings::default();
    let guard = tracing::subscriber::set_default(warnings.clone());
    for _ in 0..2 {
        server.push(Turn::new().text("ok"));
        ask(model, asked.clone()).await;
    }
    drop(guard);
    let told = warnings.0.lock().unwrap().clone();
    (server.last_request(), told)
}

fn built(config: &ModelConfig) -> Arc<dyn ChatModel> {
    hart_models::build(config, &http())
}

type Case = (&'static str, Value, fn(&mut ChatRequest), &'static [&'static str]);

/// The capability that is missing, what is configured, what is asked, and the keys that must not be sent.
const CASES: fn() -> Vec<Case> = || {
    vec![
        (
            "temperature",
            json!({"capabilities": {"temperature": false}}),
            |asked| asked.settings.temperature = Some(0.3),
            &["temperature"],
        ),
        (
            "temperature",
            json!({"capabilities": {"temperature": false}, "temperature": 0.5, "top_p": 0.9}),
            |_| {},
            &["temperature", "top_p", "topP"],
        ),
        (
            "stop",
            json!({"capabilities": {"stop": false}, "stop": ["a"]}),
            |asked| asked.settings.stop = vec!["END".into()],
            &["stop", "stop_sequences", "stopSequences"],
        ),
        (
            "tool_choice",
            json!({"capabilities": {"tool_choice": ["auto", "none"]}}),
            |asked| asked.settings.tool_choice = ToolChoice::Required,
            &["tool_choice", "toolConfig"],
        ),
        (
            "tool_choice",
            json!({"capabilities": {"tool_choice": ["auto"]}}),
            |asked| asked.settings.tool_choice = ToolChoice::None,
            &["tool_choice", "toolConfig"],
        ),
        (
            "thinking",
            json!({"capabilities": {"thinking": "none", "effort": ["low"]}, "when_thinking_enabled": {"think": true}}),
            |asked| asked.settings.reasoning = Reasoning::On(Effort::High),
            &["reasoning_effort", "think", "thinking", "output_config", "reasoning", "thinkingConfig"],
        ),
        (
            "reasoning_effort",
            json!({"supports_reasoning_effort": false, "reasoning_effort": "high"}),
            |_| {},
            &["reasoning_effort", "reasoning"],
        ),
        (
            "response schema",
            json!({"capabilities": {"structured_output": false}}),
            |asked| {
                asked.settings.output =
                    OutputFormat::Json { name: "x".into(), schema: json!({"type": "object"}) }
            },
            &["response_format", "output_config", "text", "responseJsonSchema", "format"],
        ),
        (
            "parallel_tool_calls",
            json!({"capabilities": {"parallel_calls": false}, "parallel_tool_calls": true}),
            |_| {},
            &["parallel_tool_calls"],
        ),
    ]
};

#[tokio::test]
async fn what_is_not_taken_is_not_sent_and_told_once() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        for (parameter, more, change, absent) in CASES() {
            let model = built(&config(&server, dialect, more.clone()));
            let mut asked = human("hi");
            asked.tools = [tool("ls")].into();
            change(&mut asked);
            let (sent, told) = asked_twice(&server, &*model, &asked).await;
            assert!(!sends(&sent.body, absent), "{dialect:?}: sent with {more}: {}", sent.body);
            assert_eq!(told.len(), 1, "{dialect:?} {parameter}: {told:?}");
            assert!(told[0].starts_with(&format!("`{parameter}`: the model ")), "{}", told[0]);
            assert!(told[0].contains("hart models show m"), "{}", told[0]);
        }
    }
}

/// What a dialect has no place for.
fn nowhere(dialect: Dialect, parameter: &str) -> bool {
    match dialect {
        Dialect::OpenAi => false,
        // Older models of that name are given a schema as a tool.
        Dialect::Anthropic => ["reasoning_effort", "response schema"].contains(&parameter),
        Dialect::Responses => parameter == "stop",
        // Whether a model thinks is told by its name there, and older ones take no schema together with tools.
        Dialect::Gemini => {
            ["reasoning_effort", "parallel_tool_calls", "thinking", "response schema"].contains(&parameter)
        }
        Dialect::Ollama => ["reasoning_effort", "parallel_tool_calls", "tool_choice"].contains(&parameter),
    }
}

#[tokio::test]
async fn what_is_taken_or_unknown_is_sent_without_a_word() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        for (parameter, more, change, absent) in CASES() {
            let mut more = more.as_object().unwrap().clone();
            more.remove("capabilities");
            more.remove("supports_reasoning_effort");
            if parameter == "thinking" {
                more.insert("supports_thinking".into(), true.into());
            }
            if nowhere(dialect, parameter) {
                continue;
            }
            let model = built(&config(&server, dialect, Value::Object(more)));
            let mut asked = human("hi");
            asked.tools = [tool("ls")].into();
            change(&mut asked);
            let (sent, told) = asked_twice(&server, &*model, &asked).await;
            assert!(told.is_empty(), "{dialect:?} {parameter}: {told:?}");
            assert!(sends(&sent.body, absent), "{dialect:?} {parameter}: {}", sent.body);
        }
    }
}

#[tokio::test]
async fn the_operator_can_insist() {
    let server = ModelServer::start().await;
    let more = json!({"capabilities": {"temperature": false}, "extra_body": {"temperature": 0.1}});
    let (sent, told) =
        asked_twice(&server, &*built(&config(&server, Dialect::OpenAi, more)), &human("hi")).await;
    assert_eq!((&sent.body["temperature"], told.len()), (&json!(0.1), 0));
}

#[tokio::test]
async fn the_catalogue_reaches_the_request() {
    let server = ModelServer::start().await;
    let more = json!({"use": "openai", "model": "gpt-5", "temperature": 0.2});
    let model = built(&config(&server, Dialect::OpenAi, more));
    let mut asked = human("hi");
    asked.settings.reasoning = Reasoning::Off;
    asked.settings.max_tokens = Some(500_000);
    let (sent, told) = asked_twice(&server, &*model, &asked).await;
    assert!(sent.body.get("temperature").is_none(), "{}", sent.body);
    assert_eq!(sent.body["reasoning_effort"], "minimal", "it cannot be kept from thinking");
    assert_eq!(sent.body["max_completion_tokens"], 128_000);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(model.profile().context_window, Some(400_000));
    assert!(model.profile().vision && model.profile().thinking);

    let more = json!({"model": "claude-opus-5-5"});
    let model = built(&config(&server, Dialect::Anthropic, more));
    let mut asked = human("hi");
    asked.tools = [tool("ls")].into();
    asked.settings.tool_choice = ToolChoice::Named("ls".into());
    asked.settings.reasoning = Reasoning::On(Effort::High);
    let (sent, told) = asked_twice(&server, &*model, &asked).await;
    assert!(sent.body.get("tool_choice").is_none(), "{}", sent.body);
    assert_eq!(sent.body["thinking"]["type"], "adaptive");
    assert_eq!(sent.body["output_config"]["effort"], "high");
    assert_eq!(told.len(), 1, "{told:?}");
}

#[tokio::test]
async fn an_effort_becomes_the_nearest_word_there_is() {
    let server = ModelServer::start().await;
    let more = json!({"capabilities": {"thinking": "optional", "effort": ["none", "high", "max"]}});
    let model = built(&config(&server, Dialect::OpenAi, more));
    let mut asked = human("hi");
    asked.settings.reasoning = Reasoning::On(Effort::Low);
    let (sent, told) = asked_twice(&server, &*model, &asked).await;
    assert_eq!((&sent.body["reasoning_effort"], told.len()), (&json!("high"), 0));
}

#[tokio::test]
async fn a_note_stands_where_a_blind_model_would_get_an_image() {
    let server = ModelServer::start().await;
    for dialect in DIALECTS {
        let more = json!({"supports_vision": false, "capabilities": {"files": false}});
        let model = built(&config(&server, dialect, more));
        let shown = vec![
            Block::text("What is this?"),
            Block::image_base64("image/png", "QUJD"),
            Block::object(json!({"type": "file", "file": {"file_data": "x"}})),
        ];
        let asked = request([Message::human(shown), Message::ai("A deer."), Message::human("Sure?")]);
        let (sent, told) = asked_twice(&server, &*model, &asked).await;
        let body = sent.body.to_string();
        assert!(body.contains("[An image was here. You cannot see images.]"), "{body}");
        assert!(body.contains("[A file was here.") && body.contains("What is this?"), "{body}");
        assert!(!body.contains("QUJD") && !body.contains("file_data"), "{body}");
        assert_eq!(told.len(), 2, "{told:?}");
    }
}

#[tokio::test]
async fn a_model_that_takes_one_system_message_hears_later_ones_from_the_user() {
    let server = ModelServer::start().await;
    let mut asked = request([
        Message::system("B"),
        Message::human("one"),
        Message::ai("two"),
        Message::system("C"),
        Message::human("three"),
    ]);
    asked.system = Some("A".into());
    for (single, roles, system, fourth) in [
        (json!(true), vec!["system", "user", "assistant", "user"], "A\n\nB", "C\n\nthree"),
        (json!(null), vec!["system", "user", "assistant", "user"], "A\n\nB", "C\n\nthree"),
        (json!(false), vec!["system", "user", "assistant", "system", "user"], "A\n\nB\n\nC", "C"),
    ] {
        let more = json!({"capabilities": {"single_system_message": single}});
        let (sent, _) = asked_twice(&server, &*built(&config(&server, Dialect::OpenAi, more)), &asked).await;
        let sent_roles: Vec<_> = sent.messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
        assert_eq!(sent_roles, roles);
        assert_eq!(sent.system(), system);
        assert_eq!(sent.messages()[3]["content"], fourth);
    }
}

#[tokio::test]
async fn a_schema_and_stops_are_spelled() {
    let server = ModelServer::start().await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    let mut asked = human("hi");
    asked.settings.stop = vec!["END".into()];
    asked.settings.output = OutputFormat::Json { name: "thing".into(), schema: schema.clone() };
    let strict = json!({"capabilities": {"strict_schemas": true}});
    let (sent, _) = asked_twice(&server, &*built(&config(&server, Dialect::OpenAi, strict)), &asked).await;
    let want =
        json!({"type": "json_schema", "json_schema": {"name": "thing", "schema": schema, "strict": true}});
    assert_eq!((&sent.body["response_format"], &sent.body["stop"]), (&want, &json!(["END"])));
    let (sent, _) = asked_twice(
        &server,
        &*built(&config(&server, Dialect::Anthropic, json!({"structured_output": "schema"}))),
        &asked,
    )
    .await;
    let want = json!({"format": {"type": "json_schema", "schema": schema}});
    assert_eq!((&sent.body["output_config"], &sent.body["stop_sequences"]), (&want, &json!(["END"])));
    let words = json!({"capabilities": {"structured_output": false}});
    let (sent, _) = asked_twice(&server, &*built(&config(&server, Dialect::OpenAi, words)), &asked).await;
    assert!(sent.system().contains("JSON schema:\n{\"type\":\"object\""), "{}", sent.system());
}
