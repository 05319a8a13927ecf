//! The deck port: what a run asks of the world is recorded on it, or played from it.
//!
//! Invariant: a run cannot tell whether its deck records, plays or is missing. What is played is not asked again: no
//! model hears of it and no tool is called.

use std::sync::Arc;

use async_trait::async_trait;
use hart_types::{CheckpointId, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{ChatModel, ChatRequest, ChatStream, Clock, ModelError, RunContext};

/// Stands between one run and all that is outside of it.
#[async_trait]
pub trait Deck: Send + Sync {
    /// Asks the model, or answers in its place.
    async fn ask(
        &self,
        asker: Asker,
        model: &dyn ChatModel,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError>;

    /// What a call came to when it was recorded; `None` has it made.
    async fn result(&self, call: &ToolCall) -> Result<Option<Value>, NotPlayed>;

    /// What a call came to, as [`Deck::result`] gives it back.
    async fn came_to(&self, call: &ToolCall, outcome: Value);

    /// The time that the run goes by, where it is not the present.
    fn clock(&self) -> Option<Arc<dyn Clock>> {
        None
    }

    /// All that came since the last one led to this step, which is about to be durable; or, without one, to the end.
    async fn reached(&self, step: Option<&CheckpointId>);
}

/// Who asks a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The loop: its calls are steps of the run.
    Agent,
    /// A middleware, on the side.
    Side,
}

/// Why a call cannot be played; it ends the run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotPlayed(pub String);

impl RunContext {
    /// Asks a model by way of the deck, where there is one.
    pub(crate) async fn ask(
        &self,
        asker: Asker,
        model: &dyn ChatModel,
        request: ChatRequest,
    ) -> Result<ChatStream, ModelError> {
        match &self.deck {
            Some(deck) => deck.ask(asker, model, request, &self.cancel).await,
            None => model.stream(request, &self.cancel).await,
        }
    }
}
