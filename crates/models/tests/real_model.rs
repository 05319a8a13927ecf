//! A real model, small and clumsy, behind a real server: llama.cpp on this machine.
//!
//! Invariant: nothing here depends on the model being clever, only on the protocol being kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "tests fail by panicking, and this one tells what a real model did"
)]

use std::sync::Arc;

use futures_util::StreamExt as _;
use hart_kernel::{
    ChatChunk, ChatModel, ChatRequest, ModelError, ModelErrorKind, ModelSettings, OutputFormat, ToolChoice,
    ToolSpec,
};
use hart_models::tokens::TokenCounter;
use hart_models::{Context, Dialect, HttpSettings, LimitSettings, Limits, ModelConfig, ModelEntry};
use hart_types::{Message, StopReason, ToolCallId, ToolStatus};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const DIALECTS: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

fn config(dialect: Dialect) -> ModelConfig {
    #[expect(clippy::disallowed_methods, reason = "where the script started the server")]
    let root = std::env::var("HART_REAL_MODEL").expect("run it with `make test-real-model`");
    let (provider, base) =
        if dialect == Dialect::Anthropic { ("anthropic", root) } else { ("llamacpp", format!("{root}/v1")) };
    let entry = json!({"use": provider, "model": "smollm2", "base_url": base, "temperature": 0.0});
    let entry: ModelEntry = serde_json::from_value(entry).unwrap();
    ModelConfig::resolve(entry, &|_| None).unwrap()
}

/// As users have it: this server closes a connection that it thinks idle, also while a request is on its way.
fn model(dialect: Dialect) -> Arc<dyn ChatModel> {
    let context = Context::new(HttpSettings::default(), Limits::new(LimitSettings::default())).unwrap();
    context.model(&config(dialect), []).unwrap()
}

fn request(messages: impl IntoIterator<Item = Message>, max_tokens: u32) -> ChatRequest {
    ChatRequest {
        caller: "lead".into(),
        system: Some("You are a helpful assistant.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        settings: ModelSettings { max_tokens: Some(max_tokens), ..ModelSettings::default() },
    }
}

fn weather() -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        effect: hart_kernel::Effect::Pure,
        name: "get_weather".into(),
        description: "Tells the weather in a city.".into(),
        input_schema: json!({
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": false,
        }),
    })
}

/// The fragments of the text, and the message.
async fn ask(model: &dyn ChatModel, request: ChatRequest) -> Result<(Vec<String>, Message), ModelError> {
    let mut stream = model.stream(request, &CancellationToken::new()).await?;
    let (mut texts, mut done) = (Vec::new(), None);
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ChatChunk::Text(text) => texts.push(text),
            ChatChunk::Done(message) => done = Some(*message),
            ChatChunk::Restart(_) => texts.clear(),
            ChatChunk::Reasoning(_) | ChatChunk::ToolCall(_) | ChatChunk::Waiting(_) => {}
        }
    }
    let message = done.expect("an answer ends with its message");
    assert_eq!(texts.concat(), message.text(), "the fragments are the text");
    Ok((texts, message))
}

fn input_tokens(message: &Message) -> u64 {
    message.as_ai().unwrap().usage.as_ref().expect("the server counts").input_tokens
}

#[tokio::test]
async fn it_streams_and_counts_and_stops() {
    for dialect in DIALECTS {
        let model = model(dialect);
        let asked = request([Message::human("Tell me about deer in one sentence.")], 40);
        let (texts, message) = ask(&*model, asked.clone()).await.unwrap();
        println!("{dialect:?}: {} fragments: {}", texts.len(), message.text());
        assert!(texts.len() > 3, "it comes in pieces: {texts:?}");
        let usage = message.as_ai().unwrap().usage.clone().unwrap();
        assert!((1..=40).contains(&usage.output_tokens), "{usage:?}");
        let reason = message.stop_reason();
        assert!(matches!(reason, Some(StopReason::Stop | StopReason::Length)), "{reason:?}");

        let mut stopped = asked;
        stopped.settings.stop = vec![" ".into(), "e".into()];
        let (_, message) = ask(&*model, stopped).await.unwrap();
        println!("{dialect:?}: until the first `e`: {:?}", message.text());
        assert!(!message.text().contains('e'));
    }
}

#[tokio::test]
async fn our_count_comes_close_and_closer() {
    let texts = [
        "The deer walk through the valley in the early morning, looking for fresh grass. ".repeat(12),
        "fn main() {\n    let deer = vec![1, 2, 3];\n    println!(\"{deer:?}\");\n}\n".repeat(12),
        "鹿群在清晨穿过薄雾笼罩的山谷，沿着溪流寻找新鲜的青草。".repeat(6),
    ];
    let config = config(Dialect::OpenAi);
    let (model, counter) = (model(Dialect::OpenAi), TokenCounter::of(&config));
    for (n, text) in texts.iter().enumerate() {
        for round in 0..2 {
            let mut asked = request([Message::human(format!("{round}: {text}"))], 1);
            if round == 1 {
                asked.tools = [weather()].into();
            }
            let estimated = counter.count_request(&asked);
            let (_, message) = ask(&*model, asked).await.unwrap();
            let actual = input_tokens(&message);
            let off = estimated as f64 / actual as f64 - 1.0;
            println!("text {n}: {estimated} estimated, {actual} counted ({:+.1} %)", off * 100.0);
            // The vocabulary knows next to no Chinese, and the template writes its own pages about tools.
            if n < 2 && round == 0 {
                assert!(off.abs() < 0.35, "{estimated} for {actual}");
            }
            counter.observe(estimated, actual);
        }
        assert!((0.4..=2.5).contains(&counter.ratio()));
    }
    // The same kind of text again and again: the correction settles.
    let mut last = f64::MAX;
    for round in 0..6 {
        let asked = request([Message::human(format!("{round}, again: {}", texts[0]))], 1);
        let estimated = counter.count_request(&asked);
        let actual = input_tokens(&ask(&*model, asked).await.unwrap().1);
        counter.observe(estimated, actual);
        last = (estimated as f64 / actual as f64 - 1.0).abs();
        println!("again: {estimated} estimated, {actual} counted");
    }
    assert!(last < 0.25, "{last}");
}

#[tokio::test]
async fn a_demanded_call_comes_and_its_result_goes_back() {
    for dialect in DIALECTS {
        let model = model(dialect);
        let question = Message::human("What is the weather in Paris? Use the tool.");
        let mut asked = request([question.clone()], 200);
        asked.tools = [weather()].into();
        asked.settings.tool_choice = ToolChoice::Required;
        let (_, called) = ask(&*model, asked.clone()).await.unwrap();
        println!("{dialect:?}: {:?}", called.as_ai().unwrap().tool_calls);
        let Some(call) = called.tool_calls().first().cloned() else {
            // Some servers take the demand in one dialect and forget it in the other.
            assert_eq!(dialect, Dialect::Anthropic, "{called:?}");
            continue;
        };
        assert_eq!(call.name, "get_weather");
        assert!(["Paris", "Rome"].contains(&call.args["city"].as_str().unwrap()), "{call:?}");
        let id = call.id.unwrap_or_else(|| ToolCallId::from("call_0"));
        let result = Message::tool(&id, "get_weather", ToolStatus::Success, "Sunny, 21 degrees.");
        let mut again = request([question, called, result], 40);
        again.tools = asked.tools;
        let (_, answer) = ask(&*model, again).await.unwrap();
        println!("{dialect:?}: {:?} {:?}", answer.text(), answer.tool_calls());
    }
}

#[tokio::test]
async fn json_fits_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "sunny": {"type": "boolean"}},
        "required": ["city", "sunny"],
        "additionalProperties": false,
    });
    let mut asked = request([Message::human("It is sunny in Rome. Which city, and is it sunny?")], 100);
    asked.settings.output = OutputFormat::Json { name: "weather".into(), schema };
    let (_, answer) = ask(&*model(Dialect::OpenAi), asked).await.unwrap();
    println!("{}", answer.text());
    let value: Value = serde_json::from_str(&answer.text()).unwrap();
    assert!(value["city"].is_string() && value["sunny"].is_boolean(), "{value}");
}

#[tokio::test]
async fn a_cancelled_answer_ends_and_the_next_one_comes() {
    for dialect in DIALECTS {
        let model = model(dialect);
        let cancel = CancellationToken::new();
        let long = request([Message::human("Write a very long story about a deer.")], 2000);
        let mut stream = model.stream(long, &cancel).await.unwrap();
        let mut seen = 0;
        let error = loop {
            match stream.next().await {
                Some(Ok(_)) => seen += 1,
                Some(Err(error)) => break error,
                None => panic!("it ended by itself after {seen} fragments"),
            }
            if seen == 3 {
                cancel.cancel();
            }
        };
        assert_eq!(error.kind, ModelErrorKind::Cancelled);
        assert!(seen <= 4, "{seen} fragments came");
        drop(stream);
        let (_, message) = ask(&*model, request([Message::human("Say hi.")], 8)).await.unwrap();
        println!("{dialect:?}: after the cancelled one: {:?}", message.text());
    }
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_told_as_such_with_the_numbers() {
    for dialect in DIALECTS {
        let model = model(dialect);
        let long = "The deer walk through the valley. ".repeat(2000);
        let error = ask(&*model, request([Message::human(long)], 8)).await.unwrap_err();
        println!("{dialect:?}: {error}");
        let ModelErrorKind::ContextOverflow { limit, used } = error.kind else { panic!("{error:?}") };
        println!("{dialect:?}: {used:?} of {limit:?}");
        ask(&*model, request([Message::human("Say hi.")], 8)).await.unwrap();
    }
}

#[tokio::test]
async fn whatever_it_says_can_be_answered() {
    let model = model(Dialect::OpenAi);
    let prompts = [
        "Call get_weather for Paris.",
        "Answer only with JSON: {\"a\":",
        "<tool_call>{\"name\": \"get_weather\"",
        "🦌🦌🦌 \u{0}\u{7} \u{feff} ``` </think>",
        "",
    ];
    for prompt in prompts {
        let mut messages = vec![Message::human(prompt)];
        for round in 0..2 {
            let mut asked = request(messages.clone(), 32);
            asked.tools = [weather()].into();
            asked.settings.temperature = Some(1.5);
            match ask(&*model, asked).await {
                Ok((_, answer)) => {
                    println!(
                        "{prompt:?} {round}: {:?} {:?}",
                        answer.text(),
                        answer.as_ai().unwrap().tool_calls
                    );
                    let calls: Vec<_> =
                        answer.tool_calls().iter().filter_map(|call| call.id.clone()).collect();
                    messages.push(answer);
                    for id in calls {
                        messages.push(Message::tool(&id, "get_weather", ToolStatus::Error, "no such city"));
                    }
                    messages.push(Message::human("Go on."));
                }
                Err(error) => {
                    println!("{prompt:?} {round}: {error}");
                    let typed =
                        [ModelErrorKind::BadRequest, ModelErrorKind::Overloaded, ModelErrorKind::Malformed];
                    assert!(typed.contains(&error.kind), "{error:?}");
                    break;
                }
            }
        }
    }
}
