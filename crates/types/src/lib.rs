//! The words everyone speaks: ids, messages and tool calls, spelled as LangGraph JSON spells them.
//!
//! Invariant: this crate does no IO and knows no runtime; it holds what crosses a wire, and nothing that acts.

mod id;

pub use id::{CheckpointId, MessageId, RunId, SandboxId, ThreadId, ToolCallId, UserId};
