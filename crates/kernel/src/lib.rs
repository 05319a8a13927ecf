//! Runs one agent: the loop, the hooks, the typed state, and the ports it needs.
//!
//! Invariant: the kernel names its ports (model, tool, checkpointer, event sink, clock) and nothing above them. It
//! knows six hooks and the key `messages`; every other behaviour is a middleware.

mod agent;
mod checkpoint;
mod clock;
mod context;
mod error;
mod event;
mod middleware;
mod model;
mod model_call;
mod model_error;
mod route;
mod run;
mod state;
mod tool;
mod tool_call;

pub use agent::{Agent, AgentBuilder};
pub use async_trait::async_trait;
pub use checkpoint::{CheckpointError, Checkpointer, Step, StepSource};
pub use clock::{Clock, SystemClock, Timestamp};
pub use context::{RunContext, Scratch};
pub use error::{BuildError, RunError};
pub use event::{AgentEvent, EventSink, NoEvents, Snapshot};
pub use middleware::{
    Command, HookError, HookResult, Middleware, ModelCore, ModelNext, ModelRequest, ModelResponse, Next,
    ToolCore, ToolNext, ToolOutcome, ToolRequest,
};
pub use model::{
    ChatChunk, ChatModel, ChatRequest, ChatStream, Effort, ModelProfile, ModelSettings, OutputFormat,
    Reasoning, Restart, ToolChoice, Waiting,
};
pub use model_error::{ModelError, ModelErrorKind, ModelFailure, TimeoutPhase};
pub use route::{Goto, Node, route};
pub use run::RunReport;
pub use state::{
    LoggedWrite, MessageList, MessageWrites, Messages, ReduceError, Schema, Scope, State, StateError,
    StateKey, Update,
};
pub use tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Typed, TypedTool};
