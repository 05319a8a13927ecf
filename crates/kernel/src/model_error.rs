//! Why a model did not answer: classified, so that callers decide by kind and people read what to do next.
//!
//! Invariant: no API key is in it, and its text names the model, the provider, the request and the next step.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use hart_types::Message;

/// Boxed: results pass through many hands and should stay small.
#[derive(Debug)]
pub struct ModelError(Box<ModelFailure>);

/// What is known about it.
#[derive(Debug)]
pub struct ModelFailure {
    pub kind: ModelErrorKind,
    /// The configured name.
    pub model: String,
    pub provider: Option<String>,
    /// The provider's words where it said any.
    pub message: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The provider's name for the request, for its support.
    pub request_id: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// What had arrived of a broken answer.
    pub partial: Option<Box<Message>>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No connection.
    Network,
    /// Connected, but nothing (more) came.
    Timeout(TimeoutPhase),
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    RateLimit,
    /// The provider is busy or broken; it says so itself.
    Overloaded,
    /// The conversation does not fit; with the numbers, where the provider tells them.
    ContextOverflow {
        limit: Option<u64>,
        used: Option<u64>,
    },
    /// The provider does not take the request, and will not take it a second time.
    BadRequest,
    /// The provider declined to answer for what was said.
    ContentFilter,
    /// An answer that is not the protocol.
    Malformed,
    /// The answer broke off.
    Interrupted,
    /// The recording has no such conversation.
    NotRecorded,
    /// Not asked: it failed so often lately that it is given a rest.
    Resting,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutPhase {
    /// Until the connection stood.
    Connect,
    /// Until the answer began.
    FirstByte,
    /// Between two pieces of the answer.
    Idle,
    /// The whole answer.
    Total,
}

impl ModelError {
    pub fn new(kind: ModelErrorKind, model: impl Into<String>, message: impl Into<String>) -> Self {
        Self(Box::new(ModelFailure {
            kind,
            model: model.into(),
            provider: None,
            message: message.into(),
            status: None,
            request_id: None,
            retry_after: None,
            partial: None,
            source: None,
        }))
    }

    pub(crate) fn cut_short(model: &str) -> Self {
        Self::new(ModelErrorKind::Interrupted, model, "the stream ended before the answer was complete")
    }

    pub fn cancelled() -> Self {
        Self::new(ModelErrorKind::Cancelled, "", "cancelled")
    }

    #[must_use]
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.0.provider = Some(provider.into());
        self
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    #[must_use]
    pub fn request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    #[must_use]
    pub fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    #[must_use]
    pub fn partial(mut self, message: Option<Message>) -> Self {
        self.0.partial = message.map(Box::new);
        self
    }

    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds to what the provider said.
    #[must_use]
    pub fn note(mut self, note: &str) -> Self {
        if !self.0.message.is_empty() && !note.is_empty() {
            self.0.message.push_str("; ");
        }
        self.0.message.push_str(note);
        self
    }

    /// Takes out what had arrived of a broken answer.
    pub fn take_partial(&mut self) -> Option<Message> {
        self.0.partial.take().map(|partial| *partial)
    }
}

impl ModelErrorKind {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Network
                | Self::Timeout(_)
                | Self::RateLimit
                | Self::Overloaded
                | Self::Malformed
                | Self::Interrupted
        )
    }

    /// One word for it, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout(_) => "timeout",
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::ContextOverflow { .. } => "context_overflow",
            Self::BadRequest => "bad_request",
            Self::ContentFilter => "content_filter",
            Self::Malformed => "malformed",
            Self::Interrupted => "interrupted",
            Self::NotRecorded => "not_recorded",
            Self::Resting => "resting",
            Self::Cancelled => "cancelled",
        }
    }

    /// What went wrong, to follow the model's name.
    pub fn what(self) -> &'static str {
        match self {
            Self::Network => "cannot be reached",
            Self::Timeout(TimeoutPhase::Connect) => "did not accept the connection in time",
            Self::Timeout(TimeoutPhase::FirstByte) => "did not begin to answer in time",
            Self::Timeout(TimeoutPhase::Idle) => "fell silent in the middle of its answer",
            Self::Timeout(TimeoutPhase::Total) => "did not finish its answer in time",
            Self::Auth => "refused the API key",
            Self::RateLimit => "is rate limited",
            Self::Overloaded => "is overloaded",
            Self::ContextOverflow { .. } => "cannot take a conversation this long",
            Self::BadRequest => "rejected the request",
            Self::ContentFilter => "declined to answer",
            Self::Malformed => "sent something that is not its protocol",
            Self::Interrupted => "broke off its answer",
            Self::NotRecorded => "has no recorded answer here",
            Self::Resting => "failed repeatedly and is given a rest",
            Self::Cancelled => "was cancelled",
        }
    }

    /// What to do next.
    pub fn advice(self) -> Option<&'static str> {
        match self {
            Self::Network => {
                Some("check the address, the network and that the server is running (`hart doctor`)")
            }
            Self::Timeout(_) => Some("the server may hang; or raise `timeout` or `stream_chunk_timeout`"),
            Self::Auth => Some("check the key; `hart models` shows where it comes from"),
            Self::RateLimit => Some("wait a little, or use another model"),
            Self::Overloaded | Self::Resting => Some("try again later, or use another model"),
            Self::ContextOverflow { .. } => Some("start a new thread, or use a model with a larger window"),
            Self::BadRequest => {
                Some("the model may not support what was asked of it; `hart models probe` tells")
            }
            Self::ContentFilter => Some("say it differently, or use another model"),
            Self::Malformed => {
                Some("check that the address speaks the configured protocol (`hart models probe`)")
            }
            Self::Interrupted => Some("try again"),
            Self::NotRecorded | Self::Cancelled => None,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == ModelErrorKind::Cancelled {
            return f.write_str("cancelled");
        }
        write!(f, "`{}`", self.model)?;
        if let Some(provider) = &self.provider {
            write!(f, " ({provider})")?;
        }
        write!(f, " {}", self.kind.what())?;
        if let ModelErrorKind::ContextOverflow { limit, used } = self.kind {
            match (used, limit) {
                (Some(used), Some(limit)) => write!(f, " ({used} of {limit} tokens)")?,
                (Some(used), None) => write!(f, " ({used} tokens)")?,
                (None, Some(limit)) => write!(f, " (at most {limit} tokens)")?,
                (None, None) => {}
            }
        }
        if !self.message.is_empty() {
            let separator = if self.kind == ModelErrorKind::NotRecorded { "\n" } else { ": " };
            write!(f, "{separator}{}", self.message)?;
        }
        match (self.status, &self.request_id) {
            (Some(status), Some(id)) => write!(f, " (HTTP {status}, request {id})")?,
            (Some(status), None) => write!(f, " (HTTP {status})")?,
            (None, Some(id)) => write!(f, " (request {id})")?,
            (None, None) => {}
        }
        match self.kind.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl Deref for ModelError {
    type Target = ModelFailure;

    fn deref(&self) -> &ModelFailure {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_everything_and_says_what_to_do() {
        let error = ModelError::new(ModelErrorKind::Auth, "main", "invalid x-api-key").provider("anthropic");
        assert_eq!(
            error.status(401).request_id(Some("req_1".into())).to_string(),
            "`main` (anthropic) refused the API key: invalid x-api-key (HTTP 401, request req_1); \
             check the key; `hart models` shows where it comes from"
        );
        let kind = ModelErrorKind::ContextOverflow { limit: Some(8192), used: Some(9000) };
        let text = ModelError::new(kind, "m", "").to_string();
        assert!(
            text.starts_with("`m` cannot take a conversation this long (9000 of 8192 tokens);"),
            "{text}"
        );
    }
}
