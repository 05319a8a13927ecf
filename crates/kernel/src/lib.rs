//! Runs one agent: the loop, the hooks, the typed state, and the ports it needs.
//!
//! Invariant: the kernel names its ports (model, tool, checkpointer, journal, deck, event sink, clock) and nothing above them. It
//! knows six hooks and the key `messages`; every other behaviour is a middleware.

mod agent;
mod breakpoint;
mod budget;
mod checkpoint;
mod child;
mod clock;
mod context;
mod deck;
mod error;
mod event;
mod guarded;
mod interrupt;
mod journal;
mod middleware;
mod model;
mod model_call;
mod model_error;
mod placement;
mod report;
mod route;
mod run;
mod side_call;
mod state;
mod toggle;
mod tool;
mod tool_call;
mod writing;

pub use agent::{Agent, AgentBuilder};
pub use async_trait::async_trait;
pub use breakpoint::{Breakpoints, Nodes};
pub use budget::{Amount, Budget, Exhausted, Limits, Reservation, Resource, Used};
pub use checkpoint::{CheckpointError, Checkpointer, Step, StepSource};
pub use child::{Child, NotEntered};
pub use clock::{Clock, SystemClock, TimeZone, Timestamp};
pub use context::{InputIds, Preparation, RunContext, Scratch};
pub use deck::{Asker, Deck, NotPlayed};
pub use error::{BuildError, RunError};
pub use event::{AgentEvent, EventSink, NoEvents, Reached, Snapshot};
pub use guarded::panic_text;
/// The words that messages, calls and ids are written in; whoever writes a middleware needs them.
pub use hart_types as types;
pub use hart_types::{Interrupt, Resume};
pub use interrupt::ResumeError;
pub use journal::{Begun, Effect, EffectKey, Journal};
pub use middleware::{
    Command, HookError, HookResult, Middleware, ModelCore, ModelNext, ModelRequest, ModelResponse, Next,
    ToolCore, ToolNext, ToolOutcome, ToolRequest,
};
pub use model::{
    ChatChunk, ChatModel, ChatRequest, ChatStream, Effort, ModelProfile, ModelSettings, OutputFormat, Price,
    Reasoning, Restart, ToolChoice, Waiting, complete,
};
pub use model_error::{ModelError, ModelErrorKind, ModelFailure, TimeoutPhase};
pub use placement::{Anchor, Chain, ChainError, PlaceExt, Placed, Placement, Slot};
pub use report::{Ended, RunInput, RunReport};
pub use route::{Goto, Node, route};
pub use side_call::{SideCall, SideCallError, side_call};
pub use state::{
    LoggedWrite, MessageList, MessageWrites, Messages, ReduceError, Schema, Scope, State, StateError,
    StateKey, Update,
};
pub use toggle::Toggle;
pub use tool::{Reconciled, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Typed, TypedTool};
pub use tool_call::TRANSIENT;
