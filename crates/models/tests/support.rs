//! Asks a model the way the kernel does, and keeps everything it says.

use std::sync::Arc;

use futures_util::StreamExt as _;
use hart_kernel::{
    ChatChunk, ChatModel, ChatRequest, ChatStream, ModelError, ModelSettings, Reasoning, ToolSpec,
};
use hart_models::{Dialect, ModelConfig, ModelEntry, build};
use hart_testkit::ModelServer;
use hart_types::{Body, Message};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const KEY: &str = "sk-test-very-secret";
/// Those that send a call's arguments as text, which can be broken in ways that an object cannot.
pub(crate) const WITH_TEXT_ARGUMENTS: [Dialect; 3] =
    [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses];

pub(crate) const DIALECTS: [Dialect; 5] =
    [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses, Dialect::Gemini, Dialect::Ollama];

pub(crate) fn http() -> reqwest::Client {
    hart_models::http::client().unwrap()
}

/// A configuration for `server`, with `more` keys.
pub(crate) fn config(server: &ModelServer, dialect: Dialect, more: Value) -> ModelConfig {
    let (provider, base) = match dialect {
        Dialect::OpenAi | Dialect::Responses => ("openai-compatible", server.openai_base()),
        Dialect::Anthropic => ("anthropic", server.anthropic_base()),
        Dialect::Gemini => ("gemini", server.gemini_base()),
        Dialect::Ollama => ("ollama", server.ollama_base()),
    };
    let mut entry =
        json!({"name": "m", "use": provider, "model": "mock-1", "base_url": base, "api_key": KEY});
    if dialect == Dialect::Responses {
        entry["use_responses_api"] = json!(true);
    }
    if dialect == Dialect::Anthropic {
        // Whole requests are compared here; what caching adds to them has its own tests.
        entry["prompt_caching"] = json!(false);
    }
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let entry: ModelEntry = serde_json::from_value(entry).unwrap();
    ModelConfig::resolve(entry, &|_| None).unwrap()
}

pub(crate) fn model(server: &ModelServer, dialect: Dialect) -> Arc<dyn ChatModel> {
    build(&config(server, dialect, json!({})), &http())
}

pub(crate) fn request(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    ChatRequest {
        caller: "lead".into(),
        system: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        settings: ModelSettings::default(),
    }
}

pub(crate) fn human(text: &str) -> ChatRequest {
    request([Message::human(text)])
}

pub(crate) fn thinking(mut request: ChatRequest, reasoning: Reasoning) -> ChatRequest {
    request.settings.reasoning = reasoning;
    request
}

pub(crate) fn tool(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        effect: hart_kernel::Effect::Pure,
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    })
}

/// What a model said: its fragments put together, and the message it ended with.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) call_args: Vec<String>,
    pub(crate) message: Option<Message>,
}

pub(crate) async fn collect(mut stream: ChatStream) -> Result<Said, ModelError> {
    let mut said = Said::default();
    while let Some(chunk) = stream.next().await {
        assert!(said.message.is_none(), "nothing comes after the end");
        match chunk? {
            ChatChunk::Restart(restart) => panic!("nothing here retries: {restart}"),
            ChatChunk::Waiting(waiting) => panic!("nothing here waits: {waiting}"),
            ChatChunk::Text(text) => said.text.push_str(&text),
            ChatChunk::Reasoning(text) => said.reasoning.push_str(&text),
            ChatChunk::ToolCall(call) => {
                let index = call.index.unwrap().as_u64().unwrap() as usize;
                said.call_args.resize((index + 1).max(said.call_args.len()), String::new());
                said.call_args[index].push_str(&call.args.unwrap());
            }
            ChatChunk::Done(message) => said.message = Some(*message),
        }
    }
    Ok(said)
}

pub(crate) async fn try_ask(model: &dyn ChatModel, request: ChatRequest) -> Result<Said, ModelError> {
    collect(model.stream(request, &CancellationToken::new()).await?).await
}

/// The whole answer, checked against its fragments.
pub(crate) async fn ask(model: &dyn ChatModel, request: ChatRequest) -> Message {
    let said = try_ask(model, request).await.unwrap();
    let message = said.message.expect("an answer ends with its message");
    assert_eq!(said.text, message.text(), "the fragments are the text");
    assert!(matches!(message.body, Body::Ai(_)));
    message
}

pub(crate) async fn fails(model: &dyn ChatModel, request: ChatRequest) -> ModelError {
    match try_ask(model, request).await {
        Err(error) => {
            assert!(!format!("{error} {error:?}").contains(KEY), "the key shows: {error:?}");
            error
        }
        Ok(said) => panic!("an answer instead of an error: {said:?}"),
    }
}

/// Everything a model said that does not give up at once.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) restarts: Vec<hart_kernel::Restart>,
    pub(crate) answer: Option<Result<Message, ModelError>>,
}

pub(crate) async fn hear(model: &dyn ChatModel, request: ChatRequest) -> Heard {
    let mut heard = Heard::default();
    let mut stream = model.stream(request, &CancellationToken::new()).await.unwrap();
    while let Some(item) = stream.next().await {
        assert!(heard.answer.is_none(), "nothing comes after the end");
        match item {
            Ok(ChatChunk::Text(text)) => heard.text.push_str(&text),
            Ok(ChatChunk::Reasoning(_) | ChatChunk::ToolCall(_) | ChatChunk::Waiting(_)) => {}
            Ok(ChatChunk::Restart(restart)) => {
                heard.text.clear();
                heard.restarts.push(*restart);
            }
            Ok(ChatChunk::Done(message)) => heard.answer = Some(Ok(*message)),
            Err(error) => heard.answer = Some(Err(error)),
        }
    }
    heard
}

/// Whether a request has a parameter by any of its names, wherever its dialect keeps it.
pub(crate) fn sends(body: &Value, names: &[&str]) -> bool {
    const SAID: [&str; 7] =
        ["messages", "input", "contents", "tools", "system", "instructions", "systemInstruction"];
    let Value::Object(map) = body else { return false };
    map.iter().any(|(key, value)| {
        names.contains(&key.as_str()) || (!SAID.contains(&key.as_str()) && sends(value, names))
    })
}
