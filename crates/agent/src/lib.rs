//! Assembles *the* super agent: prompt, ordered middleware, tools.
//!
//! Invariant: nothing here reads a file, an environment variable or a global; what an agent is made of arrives as a
//! parameter. The serving side (runs, storage, HTTP) is unknown to this crate.

mod answer;
mod builder;
mod call_limits;
mod chain;
mod clearing;
pub mod compaction;
mod features;
mod finish;
mod loops;
pub mod middleware;
mod mode;
mod prompt;
mod reminder;
mod repair;
mod title;
mod view;
mod spending;
mod tool_meta;

pub use builder::{SuperAgent, SuperAgentBuilder};
pub use call_limits::{CallLimit, CallLimitsConfig, ExitBehavior};
mod projection;
mod tool_ranking;

pub use builder::{SuperAgent, SuperAgentBuilder};
pub use clearing::{ClearedThrough, ContextEditingConfig};
pub use features::Features;
pub use loops::{LoopDetectionConfig, ToolFrequency};
pub use mode::Mode;
pub use prompt::{Delegation, Listed, Prompt, escape};
pub use spending::{BudgetConfig, OnLimit};
pub use tool_ranking::{ToolSelectionConfig, ToolsUsed};
