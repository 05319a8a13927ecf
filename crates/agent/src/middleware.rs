//! The built-in middlewares, one file each: hook glue only. What they apply lives in the crate that owns the noun.
//!
//! Invariant: a middleware does not know its neighbours; `chain.rs` does.

mod clarification;
mod dangling_tool_call;
mod edited_call;
mod guardrail;
mod human_in_the_loop;
mod input_sanitization;
mod pii;
mod read_before_write;
mod sandbox;
mod sandbox_audit;
mod tool_output_budget;
mod untrusted_content;

pub use clarification::Clarification;
pub use dangling_tool_call::DanglingToolCall;
pub use edited_call::EditedToolCall;
pub use guardrail::Guardrail;
pub use human_in_the_loop::HumanInTheLoop;
pub use input_sanitization::InputSanitization;
pub use pii::{Pii, PiiBlocked, PiiConfig, PiiRule};
pub use read_before_write::ReadBeforeWrite;
pub use sandbox::Sandbox;
pub use sandbox_audit::{AuditLog, SandboxAudit};
pub use tool_output_budget::ToolOutputBudget;
pub use untrusted_content::{UntrustedContent, UntrustedContentConfig};
