//! The innermost model call: streams fragments to the sink and returns the finished message.
//!
//! Invariant: every fragment carries the id of the message it becomes.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use hart_types::{AiChunk, Body, Message, MessageId, REASONING_CONTENT, ToolCallChunk, UsageMetadata};
use serde_json::{Map, Value, json};

use crate::{
    Agent, AgentEvent, Asker, ChatChunk, ChatModel, ChatRequest, HookError, ModelCore, ModelError,
    ModelRequest, ModelResponse, Restart, RunContext, State, Update, Waiting,
};

pub(crate) struct ModelCall<'a> {
    pub(crate) agent: &'a Agent,
}

impl ModelCall<'_> {
    pub(crate) fn request(&self, state: &State) -> ChatRequest {
        ChatRequest {
            caller: self.agent.name.clone(),
            system: self.agent.system.clone(),
            messages: state.messages().clone(),
            tools: self.agent.specs.clone(),
            settings: self.agent.settings.clone(),
        }
    }
}

#[async_trait]
impl ModelCore for ModelCall<'_> {
    async fn call(&self, cx: &RunContext, request: ModelRequest) -> Result<ModelResponse, HookError> {
        let ModelRequest { model, chat, .. } = request;
        let mut answer = Box::pin(stream(cx, model.as_ref(), chat));
        let message = tokio::select! {
            biased;
            message = &mut answer => message?,
            // A model that listens ends by itself, with what it had said; another is left.
            () = cx.cancel.cancelled() => match tokio::time::timeout(LAST_WORDS, answer).await {
                Ok(message) => message?,
                Err(_) => return Err(ModelError::cancelled().into()),
            },
        };
        Ok(ModelResponse { message, update: Update::none() })
    }
}

const LAST_WORDS: Duration = Duration::from_millis(200);

async fn stream(cx: &RunContext, model: &dyn ChatModel, request: ChatRequest) -> Result<Message, ModelError> {
    let mut id = cx.next_message_id();
    // The message that the latest fragments belong to: a broken answer is kept under the id its readers saw.
    let mut told: Option<MessageId> = None;
    let mut stream = cx.ask(Asker::Agent, model, request).await?;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|mut error| {
            let seen = told.as_ref().unwrap_or(&id).clone();
            let partial = error.take_partial().map(|partial| partial.with_id(seen));
            error.partial(partial)
        })?;
        let fragment = match chunk {
            ChatChunk::Text(text) => Fragment { text, ..Fragment::default() },
            ChatChunk::Reasoning(reasoning) => Fragment { reasoning, ..Fragment::default() },
            ChatChunk::ToolCall(call) => Fragment { call: Some(call), ..Fragment::default() },
            // The fragments so far belong to a message that will never be whole; the next ones to another.
            ChatChunk::Restart(restart) => {
                let void = told.as_ref() == Some(&id);
                cx.emit(AgentEvent::Custom(retry_event(&restart, void.then_some(&id)))).await;
                if void {
                    id = cx.next_message_id();
                }
                continue;
            }
            ChatChunk::Waiting(waiting) => {
                cx.emit(AgentEvent::Custom(wait_event(&waiting))).await;
                continue;
            }
            ChatChunk::Done(mut message) => {
                let usage = message.as_ai().and_then(|ai| ai.usage.clone());
                let cost =
                    usage.as_ref().and_then(|usage| model.profile().price.map(|price| price.of_usage(usage)));
                let told = CLOSING.iter().filter_map(|key| message.response_metadata.get_key_value(*key));
                let told = told.map(|(key, value)| (key.clone(), value.clone())).collect();
                let asked = usage.is_some().then(|| model.profile().name.clone());
                let last = Fragment { usage, cost, told, asked, last: true, ..Fragment::default() };
                cx.emit(AgentEvent::MessageChunk(Box::new(last.into_message(&id)))).await;
                message.id = Some(id);
                return Ok(*message);
            }
        };
        let is_first = told.as_ref() != Some(&id);
        if is_first {
            told = Some(id.clone());
        }
        cx.emit(AgentEvent::MessageChunk(Box::new(fragment.into_message(&id)))).await;
        if is_first {
            // Whoever waits for the first word has it before the rest is read, which may be all there.
            tokio::task::yield_now().await;
        }
    }
    Err(ModelError::cut_short(&model.profile().name))
}

/// DeerFlow's event, and which message will never be whole, if a client saw some of it.
fn retry_event(restart: &Restart, void: Option<&MessageId>) -> Value {
    json!({
        "type": "llm_retry",
        "attempt": restart.attempt,
        "max_attempts": restart.max_attempts,
        "wait_ms": millis(restart.wait),
        "reason": restart.kind.code(),
        "message": restart.to_string(),
        "error": restart.reason,
        "model": restart.model,
        "message_id": void,
    })
}

fn wait_event(waiting: &Waiting) -> Value {
    json!({
        "type": "llm_wait",
        "wait_ms": waiting.wait.map(millis),
        "message": waiting.to_string(),
        "model": waiting.model,
    })
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// What clients look for in the fragments of an answer. It is told in one of them: they join words of the same name.
const CLOSING: [&str; 5] =
    ["finish_reason", "stop_reason", "model_name", "model_provider", "system_fingerprint"];

#[derive(Default)]
struct Fragment {
    text: String,
    reasoning: String,
    call: Option<ToolCallChunk>,
    usage: Option<UsageMetadata>,
    /// In millionths of the currency.
    cost: Option<u64>,
    /// About the whole answer.
    told: Map<String, Value>,
    /// The configured name of the model that the usage is of.
    asked: Option<String>,
    last: bool,
}

impl Fragment {
    fn into_message(self, id: &MessageId) -> Message {
        let mut chunk = AiChunk { position: self.last.then(|| "last".to_owned()), ..AiChunk::default() };
        chunk.tool_call_chunks.extend(self.call);
        chunk.ai.usage = self.usage;
        let mut message = Message::new(Body::AiChunk(chunk), self.text).with_id(id.clone());
        if !self.reasoning.is_empty() {
            // Where LangChain's clients look for streamed reasoning: fragments under one key concatenate.
            message.additional_kwargs.insert(REASONING_CONTENT.to_owned(), Value::from(self.reasoning));
        }
        message.response_metadata = self.told;
        if let Some(cost) = self.cost {
            // Whoever adds up what a run cost need not know which model asked what price.
            message.response_metadata.insert("cost".to_owned(), Value::from(cost as f64 / 1e6));
        }
        if let Some(asked) = self.asked {
            message.response_metadata.insert("model".to_owned(), Value::from(asked));
        }
        message
    }
}
