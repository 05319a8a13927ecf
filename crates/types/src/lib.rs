//! The words everyone speaks: ids, messages and tool calls, spelled as LangGraph JSON spells them.
//!
//! Invariant: this crate does no IO and knows no runtime; it holds what crosses a wire, and nothing that acts.

mod address;
mod content;
mod id;
mod interrupt;
mod json_type;
mod message;
mod run;
mod secrets;
mod stop_reason;
mod tool_call;
mod usage;

pub use address::is_public_address;
pub use content::{Block, BlockView, Content, FileSource, ImageSource};
pub use id::{
    AssistantId, CheckpointId, CronId, MessageId, NodeId, RunId, SandboxId, ThreadId, ToolCallId, UserId,
};
pub use interrupt::{Interrupt, Resume};
pub use json_type::json_type;
pub use message::{Ai, AiChunk, Body, Message, REASONING_CONTENT, REMOVE_ALL, ToolResult, ToolStatus};
pub use run::{
    CancelAction, Durability, EventId, IfExists, IfNotExists, MultitaskStrategy, OnCompletion, OnDisconnect,
    PruneStrategy, RunStatus, StreamMode, ThreadStatus,
};
pub use secrets::{NotSecrets, Secrets};
pub use stop_reason::StopReason;
pub use tool_call::{InvalidToolCall, ToolCall, ToolCallChunk};
pub use usage::{InputTokenDetails, OutputTokenDetails, UsageMetadata};
