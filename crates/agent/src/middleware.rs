//! The built-in middlewares, one file each: hook glue only. What they apply lives in the crate that owns the noun.
//!
//! Invariant: a middleware does not know its neighbours; `chain.rs` does.

mod clarification;
mod context_editing;
mod dangling_tool_call;
mod read_before_write;
mod sandbox;
mod sandbox_audit;
mod summarization;
mod tool_output_budget;
mod tool_selection;

pub use clarification::Clarification;
pub use context_editing::ContextEditing;
pub use dangling_tool_call::DanglingToolCall;
pub use read_before_write::ReadBeforeWrite;
pub use sandbox::Sandbox;
pub use sandbox_audit::{AuditLog, SandboxAudit};
pub use summarization::{NotCompacted, Summarization};
pub use tool_output_budget::ToolOutputBudget;
pub use tool_selection::ToolSelection;
