//! The built-in middlewares, one file each: hook glue only. What they apply lives in the crate that owns the noun.
//!
//! Invariant: a middleware does not know its neighbours; `chain.rs` does.

mod budget;
mod call_limits;
mod clarification;
mod context_editing;
mod dangling_tool_call;
mod dynamic_context;
mod finish_reason;
mod loop_detection;
mod model_error;
mod read_before_write;
mod sandbox;
mod sandbox_audit;
mod summarization;
mod thread_data;
mod title;
mod todo;
mod token_usage;
mod tool_error;
mod tool_output_budget;
mod tool_retry;
mod tool_selection;
mod unsupported_content;
mod uploads;
mod view_image;

pub use budget::Budget;
pub use call_limits::CallLimits;
pub use clarification::Clarification;
pub use context_editing::ContextEditing;
pub use dangling_tool_call::DanglingToolCall;
pub use dynamic_context::{DynamicContext, DynamicContextConfig, MemorySource};
pub use finish_reason::{FinishReason, FinishReasonConfig};
pub use loop_detection::LoopDetection;
pub use model_error::{ModelError, ModelErrorConfig};
pub use read_before_write::ReadBeforeWrite;
pub use sandbox::Sandbox;
pub use sandbox_audit::{AuditLog, SandboxAudit};
pub use summarization::{NotCompacted, Summarization};
pub use thread_data::{ThreadData, ThreadPaths};
pub use title::{Title, TitleConfig};
pub use todo::Todo;
pub use token_usage::{RunUsage, TokenUsage, UsageCounts, UsageTotals};
pub use tool_error::{ToolError, ToolErrorConfig};
pub use tool_output_budget::ToolOutputBudget;
pub use tool_retry::{ToolRetry, ToolRetryConfig};
pub use tool_selection::ToolSelection;
pub use unsupported_content::UnsupportedContent;
pub use uploads::Uploads;
pub use view_image::{ViewImage, ViewImageConfig};
