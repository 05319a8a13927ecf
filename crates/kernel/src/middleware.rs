//! The six hooks. A tool acts when the model asks; a middleware acts whether or not it does.
//!
//! Invariant: the first middleware of a chain is the outermost. `before_*` run first to last, `after_*` last to first,
//! `wrap_*` nest.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use hart_types::{Message, ToolCall};

use crate::{
    ChatModel, ChatRequest, Goto, Interrupt, ModelError, Placement, RunContext, Schema, State, StateError,
    Tool, Update,
};

/// Extends an agent. Built-ins use exactly this trait.
///
/// ```
/// use hart_kernel::{Command, HookError, Middleware, RunContext, State, Update, async_trait};
/// use hart_types::Message;
///
/// struct Greeting;
///
/// #[async_trait]
/// impl Middleware for Greeting {
///     async fn before_agent(&self, _cx: &RunContext, _state: &State) -> Result<Command, HookError> {
///         Ok(Update::none().messages(Message::system("Be kind.")).into())
///     }
/// }
/// ```
#[async_trait]
pub trait Middleware: Any + Send + Sync {
    /// The node's name in `updates` frames and in errors.
    fn name(&self) -> &'static str {
        short_type_name::<Self>()
    }

    /// Declares the state keys this middleware owns.
    fn declare(&self, _schema: &mut Schema) -> Result<(), StateError> {
        Ok(())
    }

    /// Tools it contributes.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Where it goes when it is added to a chain that is already there.
    fn placement(&self) -> Placement {
        Placement::Standard
    }

    /// Runs once a run, also when a paused run is resumed: [`RunContext::is_resuming`] tells.
    async fn before_agent(&self, _cx: &RunContext, _state: &State) -> HookResult {
        Ok(Command::none())
    }

    async fn before_model(&self, _cx: &RunContext, _state: &State) -> HookResult {
        Ok(Command::none())
    }

    /// Around a model call: change the request, call `next` once, again, or not at all.
    async fn wrap_model_call(
        &self,
        _cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        next.run(request).await
    }

    async fn after_model(&self, _cx: &RunContext, _state: &State) -> HookResult {
        Ok(Command::none())
    }

    /// Around one tool call. Calls of one answer run concurrently, each through its own nest of wrappers.
    async fn wrap_tool_call(
        &self,
        _cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        next.run(request).await
    }

    /// Runs for every middleware whose `before_agent` returned, also after an error, a panic, a cancellation or a
    /// pause: [`RunContext::is_paused`] tells.
    async fn after_agent(&self, _cx: &RunContext, _state: &State) -> HookResult {
        Ok(Command::none())
    }
}

pub type HookResult = Result<Command, HookError>;

/// Why a hook, or what it wraps, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    State(#[from] StateError),
    /// Not a failure: a question is open, and the hook runs again when it is answered. See [`RunContext::interrupt`].
    #[error("waits for an answer")]
    Interrupt(Box<Interrupt>),
    /// The same with several questions at once. See [`RunContext::interrupt_all`].
    #[error("waits for answers")]
    Interrupts(Vec<Interrupt>),
    #[error("did not return within {0:?}")]
    TimedOut(std::time::Duration),
    #[error("panicked: {0}")]
    Panic(String),
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

/// A state update plus, sometimes, a jump.
#[derive(Debug, Default)]
pub struct Command {
    pub update: Update,
    pub goto: Option<Goto>,
}

impl Command {
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn goto(mut self, goto: Goto) -> Self {
        self.goto = Some(goto);
        self
    }
}

impl From<Update> for Command {
    fn from(update: Update) -> Self {
        Self { update, goto: None }
    }
}

#[derive(Clone)]
pub struct ModelRequest {
    /// Who is asked.
    pub model: Arc<dyn ChatModel>,
    pub chat: ChatRequest,
    pub state: State,
}

impl std::fmt::Debug for ModelRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model = &self.model.profile().name;
        f.debug_struct("ModelRequest").field("model", model).field("chat", &self.chat).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct ModelResponse {
    pub message: Message,
    /// Applied together with the message.
    pub update: Update,
}

#[derive(Clone, Debug)]
pub struct ToolRequest {
    pub call: Arc<ToolCall>,
    pub state: State,
}

#[derive(Debug)]
pub struct ToolOutcome {
    /// The `tool` message that answers the call.
    pub message: Message,
    /// Applied after the results of the whole batch, in call order.
    pub command: Command,
}

/// The rest of the chain inside a wrapper. It is `Copy`, so a retry is a loop.
pub struct Next<'a, Core: ?Sized> {
    pub(crate) rest: &'a [Arc<dyn Middleware>],
    pub(crate) cx: &'a RunContext,
    pub(crate) core: &'a Core,
}

pub type ModelNext<'a> = Next<'a, dyn ModelCore + 'a>;
pub type ToolNext<'a> = Next<'a, dyn ToolCore + 'a>;

impl<'a> ModelNext<'a> {
    // Not an `async fn`: that would put the request into one more future at every link of the chain.
    pub fn run(self, request: ModelRequest) -> BoxFuture<'a, Result<ModelResponse, HookError>> {
        match self.rest.split_first() {
            Some((head, rest)) => head.wrap_model_call(self.cx, request, Next { rest, ..self }),
            None => self.core.call(self.cx, request),
        }
    }
}

impl<'a> ToolNext<'a> {
    pub fn run(self, request: ToolRequest) -> BoxFuture<'a, Result<ToolOutcome, HookError>> {
        match self.rest.split_first() {
            Some((head, rest)) => head.wrap_tool_call(self.cx, request, Next { rest, ..self }),
            None => self.core.call(self.cx, request),
        }
    }
}

impl<Core: ?Sized> Clone for Next<'_, Core> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Core: ?Sized> Copy for Next<'_, Core> {}

impl<Core: ?Sized> std::fmt::Debug for Next<'_, Core> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Next({} more)", self.rest.len())
    }
}

/// What the innermost model wrapper calls.
#[async_trait]
pub trait ModelCore: Send + Sync {
    async fn call(&self, cx: &RunContext, request: ModelRequest) -> Result<ModelResponse, HookError>;
}

/// What the innermost tool wrapper calls.
#[async_trait]
pub trait ToolCore: Send + Sync {
    async fn call(&self, cx: &RunContext, request: ToolRequest) -> Result<ToolOutcome, HookError>;
}

pub(crate) fn short_type_name<T: ?Sized>() -> &'static str {
    let full = std::any::type_name::<T>();
    full.rsplit(':').next().unwrap_or(full)
}
