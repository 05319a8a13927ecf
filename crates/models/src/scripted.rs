//! A model in memory that says what a test told it to.
//!
//! Invariant: one call takes one turn, in order, and every request is kept.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hart_kernel::{ChatModel, ChatRequest, ChatStream, ModelError, ModelErrorKind, ModelProfile};
use hart_types::{Body, Message, ToolCall};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::playback;

/// One answer of a [`ScriptedModel`].
#[derive(Debug)]
pub enum ScriptedTurn {
    Say(Box<Message>),
    Fail(ModelError),
    /// Nothing, until cancelled.
    Hang,
}

impl ScriptedTurn {
    pub fn text(text: impl Into<String>) -> Self {
        Message::ai(text.into()).into()
    }

    /// Calls one tool; arguments that are no object count as none.
    pub fn call(id: &str, name: &str, args: Value) -> Self {
        let args = match args {
            Value::Object(args) => args,
            _ => Map::new(),
        };
        Self::calls([ToolCall::new(id, name, args)])
    }

    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let mut message = Message::ai("");
        if let Body::Ai(ai) = &mut message.body {
            ai.tool_calls.extend(calls);
        }
        message.into()
    }
}

impl From<Message> for ScriptedTurn {
    fn from(message: Message) -> Self {
        Self::Say(Box::new(message))
    }
}

impl From<ModelError> for ScriptedTurn {
    fn from(error: ModelError) -> Self {
        Self::Fail(error)
    }
}

/// A model for tests that do not need HTTP.
#[derive(Debug)]
pub struct ScriptedModel {
    profile: ModelProfile,
    turns: Mutex<VecDeque<ScriptedTurn>>,
    requests: Mutex<Vec<ChatRequest>>,
}

impl ScriptedModel {
    pub fn new<T: Into<ScriptedTurn>>(turns: impl IntoIterator<Item = T>) -> Self {
        let profile = ModelProfile {
            name: "scripted".to_owned(),
            provider: "scripted".to_owned(),
            served_as: "scripted".to_owned(),
            vision: true,
            thinking: true,
            ..ModelProfile::default()
        };
        Self {
            profile,
            turns: Mutex::new(turns.into_iter().map(Into::into).collect()),
            requests: Mutex::default(),
        }
    }

    #[must_use]
    pub fn with_profile(mut self, profile: ModelProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Appends a turn.
    pub fn push(&self, turn: impl Into<ScriptedTurn>) {
        lock(&self.turns).push_back(turn.into());
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<ChatRequest> {
        lock(&self.requests).clone()
    }

    /// How many turns nobody has asked for yet.
    pub fn remaining(&self) -> usize {
        lock(&self.turns).len()
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        lock(&self.requests).push(request);
        let turn = lock(&self.turns).pop_front();
        match turn {
            Some(ScriptedTurn::Say(message)) => Ok(playback::stream(*message, None, cancel)),
            Some(ScriptedTurn::Fail(error)) => Err(error),
            Some(ScriptedTurn::Hang) => {
                cancel.cancelled().await;
                Err(ModelError::cancelled())
            }
            None => {
                let why = "the script is exhausted: push more turns";
                Err(ModelError::new(ModelErrorKind::BadRequest, &self.profile.name, why))
            }
        }
    }
}

/// A panic elsewhere has already failed the test; what the locks guard is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
