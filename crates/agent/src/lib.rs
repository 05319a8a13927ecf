//! Assembles *the* super agent: prompt, ordered middleware, tools.
//!
//! Invariant: nothing here reads a file, an environment variable or a global; what an agent is made of arrives as a
//! parameter. The serving side (runs, storage, HTTP) is unknown to this crate.

mod builder;
mod chain;
mod clearing;
pub mod compaction;
mod features;
pub mod middleware;
mod mode;
mod projection;
mod tool_ranking;

pub use builder::{SuperAgent, SuperAgentBuilder};
pub use clearing::{ClearedThrough, ContextEditingConfig};
pub use features::Features;
pub use mode::Mode;
pub use tool_ranking::{ToolSelectionConfig, ToolsUsed};
