//! The built-in middlewares, one file each: hook glue only. What they apply lives in the crate that owns the noun.
//!
//! Invariant: a middleware does not know its neighbours; `chain.rs` does.

mod clarification;
mod dangling_tool_call;
mod dynamic_context;
mod read_before_write;
mod sandbox;
mod sandbox_audit;
mod thread_data;
mod title;
mod todo;
mod tool_output_budget;
mod unsupported_content;
mod uploads;
mod view_image;

pub use clarification::Clarification;
pub use dangling_tool_call::DanglingToolCall;
pub use dynamic_context::{DynamicContext, DynamicContextConfig, MemorySource};
pub use read_before_write::ReadBeforeWrite;
pub use sandbox::Sandbox;
pub use sandbox_audit::{AuditLog, SandboxAudit};
pub use thread_data::{ThreadData, ThreadPaths};
pub use title::{Title, TitleConfig};
pub use todo::Todo;
pub use tool_output_budget::ToolOutputBudget;
pub use unsupported_content::UnsupportedContent;
pub use uploads::Uploads;
pub use view_image::{ViewImage, ViewImageConfig};
