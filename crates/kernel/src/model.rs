//! The model port: a conversation goes in, a stream of fragments and one finished message come out.
//!
//! Invariant: the kernel knows no provider. Whatever a provider must see again (signatures, encrypted reasoning) is
//! inside the finished message's content blocks.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};
use hart_types::{Message, ToolCallChunk};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{MessageList, ModelError, ModelErrorKind, ToolSpec};

/// A language model. Implementations live in `hart-models`; an embedder may bring its own.
///
/// Dropping the stream, or cancelling the token, must end the provider's request.
#[async_trait]
pub trait ChatModel: Send + Sync {
    fn profile(&self) -> &ModelProfile;

    /// About how many tokens a text takes, without asking anyone.
    fn count_text(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(4)
    }

    /// About how many tokens a request takes.
    fn count_request(&self, request: &ChatRequest) -> u64 {
        let messages = request.messages.iter().map(|message| count_message(self, message));
        let tools =
            request.tools.iter().map(|tool| tool.description.len() + tool.input_schema.to_string().len());
        let system = request.system.as_deref().map_or(0, |system| self.count_text(system));
        messages.sum::<u64>() + tools.map(|bytes| bytes as u64 / 4).sum::<u64>() + system
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError>;
}

/// Asks and waits for the whole answer.
pub async fn complete(
    model: &dyn ChatModel,
    request: ChatRequest,
    cancel: &CancellationToken,
) -> Result<Message, ModelError> {
    let stream = model.stream(request, cancel).await?;
    whole(stream, model).await
}

/// Waits for the whole answer.
pub(crate) async fn whole(mut stream: ChatStream, model: &dyn ChatModel) -> Result<Message, ModelError> {
    while let Some(chunk) = stream.next().await {
        if let ChatChunk::Done(message) = chunk? {
            return Ok(*message);
        }
    }
    Err(ModelError::cut_short(&model.profile().name))
}

/// A message's text, and what its calls say.
fn count_message<M: ChatModel + ?Sized>(model: &M, message: &Message) -> u64 {
    let calls = message.as_ai().map_or(0, |ai| {
        ai.tool_calls.iter().map(|call| serde_json::to_string(&call.args).map_or(0, |args| args.len())).sum()
    });
    model.count_text(&message.text()) + calls as u64 / 4 + 4
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
    /// What came so far, if anything, is void: the answer is being asked for again.
    Restart(Box<Restart>),
    /// Nothing is wrong, but the request has to wait for its turn.
    Waiting(Box<Waiting>),
    /// The whole answer: an `ai` message with content, tool calls, usage and metadata.
    Done(Box<Message>),
}

/// Why an answer is asked for again, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Who failed: the configured name.
    pub failed: String,
    pub kind: ModelErrorKind,
    /// The whole error, in words.
    pub reason: String,
    /// Who is asked next.
    pub model: String,
    /// Which attempt at that model comes next, from 1, and how many there can be.
    pub attempt: u32,
    pub max_attempts: u32,
    /// How long until then.
    pub wait: Duration,
}

/// What a request waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub model: String,
    /// To follow the model's name.
    pub reason: String,
    /// How long, where that is known.
    pub wait: Option<Duration>,
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}, ", self.failed, self.kind.what())?;
        if self.model == self.failed {
            f.write_str("trying again")?;
        } else {
            write!(f, "asking `{}` instead", self.model)?;
        }
        if self.wait >= Duration::from_secs(1) {
            write!(f, " in {:.0} s", self.wait.as_secs_f64())?;
        }
        if self.attempt > 1 {
            write!(f, " (attempt {} of {})", self.attempt, self.max_attempts)?;
        }
        Ok(())
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.model, self.reason)?;
        match self.wait {
            Some(wait) => write!(f, ", waiting {:.0} s", wait.as_secs_f64().ceil()),
            None => f.write_str(", waiting"),
        }
    }
}

/// What a model can do, as far as its callers care.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelProfile {
    /// As it is configured.
    pub name: String,
    pub provider: String,
    /// As its provider calls it.
    pub served_as: String,
    pub context_window: Option<u32>,
    pub max_output_tokens: Option<u32>,
    pub vision: bool,
    pub thinking: bool,
    pub price: Option<Price>,
}

/// In one currency, per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Of input that the provider had cached; the full price where it is not known.
    pub cached_input: Option<f64>,
}
