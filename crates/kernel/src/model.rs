//! The model port: a conversation goes in, a stream of fragments and one finished message come out.
//!
//! Invariant: the kernel knows no provider. Whatever a provider must see again (signatures, encrypted reasoning) is
//! inside the finished message's content blocks.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::Stream;
use hart_types::{Message, ToolCallChunk};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{MessageList, ModelError, ToolSpec};

/// A language model. Implementations live in `hart-models`; an embedder may bring its own.
///
/// Dropping the stream, or cancelling the token, must end the provider's request.
#[async_trait]
pub trait ChatModel: Send + Sync {
    fn profile(&self) -> &ModelProfile;

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError>;
}

/// Any number of fragments, then exactly one [`ChatChunk::Done`], or an error.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<ChatChunk, ModelError>> + Send>>;

/// What a provider needs to answer.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// Who asks: the agent's name, or the helper's (`title`, …). Recordings are keyed by it.
    pub caller: Arc<str>,
    pub system: Option<Arc<str>>,
    pub messages: MessageList,
    pub tools: Arc<[Arc<ToolSpec>]>,
    pub settings: ModelSettings,
}

/// How to answer. A model that does not take a setting ignores it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSettings {
    pub tool_choice: ToolChoice,
    pub reasoning: Reasoning,
    pub max_tokens: Option<u32>,
    pub temperature: Option<f32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    pub output: OutputFormat,
}

/// What shape the answer has.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutputFormat {
    #[default]
    Text,
    /// JSON that fits a schema; enforced by providers that can, asked for in words otherwise.
    Json { name: String, schema: Value },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    Required,
    Named(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Whatever the model does by itself.
    #[default]
    Default,
    Off,
    On(Effort),
    /// At most this many tokens of thought.
    Budget(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Low,
    Medium,
    High,
}

#[derive(Debug)]
pub enum ChatChunk {
    Text(String),
    Reasoning(String),
    ToolCall(ToolCallChunk),
    /// What came so far is void: the answer broke off and is being asked for again.
    Restart(Box<ModelError>),
    /// The whole answer: an `ai` message with content, tool calls, usage and metadata.
    Done(Box<Message>),
}

/// What a model can do, as far as its callers care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelProfile {
    pub name: String,
    pub context_window: Option<u32>,
    pub vision: bool,
    pub thinking: bool,
}
