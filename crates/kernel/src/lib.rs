//! Runs one agent: the loop, the hooks, the typed state, and the ports it needs.
//!
//! Invariant: the kernel names its ports (model, tool, checkpointer, event sink, clock) and nothing above them. It
//! knows six hooks and the key `messages`; every other behaviour is a middleware.

mod checkpoint;
mod clock;
mod context;
mod event;
mod middleware;
mod model;
mod route;
mod state;
mod tool;

pub use async_trait::async_trait;
pub use checkpoint::{CheckpointError, Checkpointer, Step, StepSource};
pub use clock::{Clock, SystemClock, Timestamp};
pub use context::{RunContext, Scratch};
pub use event::{AgentEvent, EventSink, NoEvents, Snapshot};
pub use middleware::{
    Command, HookError, HookResult, Middleware, ModelCore, ModelNext, ModelRequest, ModelResponse, Next, ToolCore,
    ToolNext, ToolOutcome, ToolRequest,
};
pub use model::{
    ChatChunk, ChatModel, ChatRequest, ChatStream, Effort, ModelError, ModelProfile, ModelSettings, Reasoning,
    ToolChoice,
};
pub use route::{Goto, Node, route};
pub use state::{MessageWrites, Messages, ReduceError, Schema, Scope, State, StateError, StateKey, Update};
pub use tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Typed, TypedTool};
