//! The model port: a conversation goes in, a stream of fragments and one finished message come out.
//!
//! Invariant: the kernel knows no provider. Whatever a provider must see again (signatures, encrypted reasoning) is
//! inside the finished message's content blocks.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::Stream;
use hart_types::{Message, ToolCallChunk};
use tokio_util::sync::CancellationToken;

use crate::{MessageList, ToolSpec};

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Low,
    Medium,
    High,
}

#[derive(Clone, Debug)]
pub enum ChatChunk {
    Text(String),
    Reasoning(String),
    ToolCall(ToolCallChunk),
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

/// Why a model did not answer. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    #[error("cannot reach `{model}` at {url}; check the address and that the server is running")]
    Unreachable {
        model: String,
        url: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("`{model}` refused the API key ({status}): {message}")]
    Unauthorized { model: String, status: u16, message: String },
    #[error("`{model}` is rate limited: {message}")]
    RateLimited { model: String, message: String, retry_after: Option<Duration> },
    #[error("the conversation does not fit `{model}`: {message}")]
    ContextOverflow { model: String, message: String },
    #[error("`{model}` rejected the request ({status}): {message}")]
    Rejected { model: String, status: u16, message: String },
    #[error("`{model}` sent nothing for {} s; the server hangs, or raise `stream_chunk_timeout`", after.as_secs())]
    Silent { model: String, after: Duration },
    #[error("the answer of `{model}` broke off: {message}")]
    Interrupted { model: String, message: String },
    #[error("`{model}` sent something that is not its protocol: {message}")]
    Protocol { model: String, message: String },
    /// The recording has no such conversation; `difference` shows where it parts from the nearest one.
    #[error("the recording has no answer here\n{difference}")]
    NotRecorded { difference: String },
    #[error("cancelled")]
    Cancelled,
}
