//! The records of a recording, as they are written.
//!
//! Invariant: a record that this version wrote, it reads; another version is told by [`VERSION`].

use hart_kernel::{ChatChunk, ModelError, ModelErrorKind, ModelProfile, Price, TimeoutPhase, Timestamp};
use hart_types::{Message, ToolCallChunk};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lines::Hash;
use crate::StartRun;

pub(super) const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// An attempt at the run.
    Begun(Box<Begun>),
    /// A model was asked.
    Asked(Box<Asked>),
    /// A tool was called.
    Called { call: String, tool: String, came_to: Value },
    /// It had become too long; nothing follows in this attempt.
    Cut { limit: u64 },
}

#[derive(Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) version: u32,
    /// The version of hart.
    pub(super) hart: String,
    pub(super) attempt: u32,
    pub(super) at: Timestamp,
    pub(super) start: StartRun,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) at: Timestamp,
    /// Not the loop itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) side: bool,
    pub(super) caller: String,
    pub(super) model: RecordedProfile,
    pub(super) question: Question,
    /// What the hashes are of, as far as it was not written before.
    pub(super) texts: Vec<(Hash, Value)>,
    /// The fragments; none where they would show what is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pieces: Option<Vec<Piece>>,
    pub(super) answer: Answer,
}

/// A request, by the hashes of its parts.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) system: Hash,
    pub(super) tools: Hash,
    pub(super) settings: Hash,
    /// The messages that the thread had before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) history: Option<History>,
    /// So many messages, of the history and others, are those of the caller's previous request.
    pub(super) keep: usize,
    pub(super) new: Vec<Hash>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    pub(super) count: usize,
    pub(super) hash: Hash,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Piece {
    #[serde(rename = "t")]
    Text(String),
    #[serde(rename = "r")]
    Reasoning(String),
    #[serde(rename = "c")]
    Call(ToolCallChunk),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Message(Box<Message>),
    Failed(Box<Failed>),
}

/// A [`ModelError`] without its source.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Failed {
    kind: String,
    model: String,
    provider: Option<String>,
    message: String,
    status: Option<u16>,
    partial: Option<Message>,
}

impl Failed {
    pub(super) fn of(error: &ModelError) -> Self {
        Self {
            kind: error.kind.code().to_owned(),
            model: error.model.clone(),
            provider: error.provider.clone(),
            message: error.message.clone(),
            status: error.status,
            partial: error.partial.as_deref().cloned(),
        }
    }

    pub(super) fn into_error(self) -> ModelError {
        let mut error = ModelError::new(kind(&self.kind), self.model, self.message).partial(self.partial);
        if let Some(provider) = self.provider {
            error = error.provider(provider);
        }
        match self.status {
            Some(status) => error.status(status),
            None => error,
        }
    }

    pub(super) fn text(&self) -> String {
        format!("failed ({}): {}", self.kind, self.message)
    }
}

/// By its code. Which phase of a call timed out, and the numbers of an overflow, change nothing for whoever plays it.
fn kind(code: &str) -> ModelErrorKind {
    use ModelErrorKind as Kind;
    match code {
        "network" => Kind::Network,
        "timeout" => Kind::Timeout(TimeoutPhase::Total),
        "auth" => Kind::Auth,
        "rate_limit" => Kind::RateLimit,
        "overloaded" => Kind::Overloaded,
        "context_overflow" => Kind::ContextOverflow { limit: None, used: None },
        "bad_request" => Kind::BadRequest,
        "content_filter" => Kind::ContentFilter,
        "interrupted" => Kind::Interrupted,
        "not_recorded" => Kind::NotRecorded,
        "resting" => Kind::Resting,
        "cancelled" => Kind::Cancelled,
        _ => Kind::Malformed,
    }
}

impl Piece {
    pub(super) fn of(chunk: &ChatChunk) -> Option<Self> {
        match chunk {
            ChatChunk::Text(text) => Some(Self::Text(text.clone())),
            ChatChunk::Reasoning(text) => Some(Self::Reasoning(text.clone())),
            ChatChunk::ToolCall(call) => Some(Self::Call(call.clone())),
            ChatChunk::Restart(_) | ChatChunk::Waiting(_) | ChatChunk::Done(_) => None,
        }
    }

    pub(super) fn into_chunk(self) -> ChatChunk {
        match self {
            Self::Text(text) => ChatChunk::Text(text),
            Self::Reasoning(text) => ChatChunk::Reasoning(text),
            Self::Call(call) => ChatChunk::ToolCall(call),
        }
    }
}

/// A model that was asked, as far as agents care.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedProfile {
    pub name: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    served_as: String,
    context_window: Option<u32>,
    max_output_tokens: Option<u32>,
    vision: bool,
    thinking: bool,
    /// Per million tokens: read, written, read from a cache.
    price: Option<(f64, f64, Option<f64>)>,
}

impl From<&ModelProfile> for RecordedProfile {
    fn from(profile: &ModelProfile) -> Self {
        Self {
            name: profile.name.clone(),
            provider: profile.provider.clone(),
            served_as: profile.served_as.clone(),
            context_window: profile.context_window,
            max_output_tokens: profile.max_output_tokens,
            vision: profile.vision,
            thinking: profile.thinking,
            price: profile.price.map(|price| (price.input, price.output, price.cached_input)),
        }
    }
}

impl From<RecordedProfile> for ModelProfile {
    fn from(recorded: RecordedProfile) -> Self {
        Self {
            name: recorded.name,
            provider: recorded.provider,
            served_as: recorded.served_as,
            context_window: recorded.context_window,
            max_output_tokens: recorded.max_output_tokens,
            vision: recorded.vision,
            thinking: recorded.thinking,
            price: recorded.price.map(|(input, output, cached_input)| Price { input, output, cached_input }),
        }
    }
}
