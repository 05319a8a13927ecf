//! Assembles *the* super agent: prompt, ordered middleware, tools.
//!
//! Invariant: nothing here reads a file, an environment variable or a global; what an agent is made of arrives as a
//! parameter. The serving side (runs, storage, HTTP) is unknown to this crate.

mod answer;
pub mod approval;
mod builder;
mod call_limits;
mod chain;
mod clearing;
pub mod compaction;
mod features;
pub mod follow_up;
mod goal;
pub mod guardrails;
mod loops;
pub mod middleware;
mod mode;
mod personal_data;
mod projection;
mod prompt;
mod reminder;
mod remote;
mod repair;
mod skill_listing;
mod skill_lists;
mod skill_secrets;
mod spending;
mod subagents;
mod surroundings;
mod title;
mod tool_meta;
mod tool_ranking;
mod view;

pub use builder::{SuperAgent, SuperAgentBuilder};
pub use call_limits::{CallLimit, CallLimitsConfig, ExitBehavior};
pub use clearing::{ClearedThrough, ContextEditingConfig};
pub use features::{Features, FilePermissions};
pub use goal::{Blocker, Evaluation, Goal, GoalConfig, GoalWrite, ThreadGoal};
pub use loops::{LoopDetectionConfig, ToolFrequency};
pub use mode::Mode;
pub use prompt::{Delegation, Listed, Prompt, escape};
pub use remote::{AsyncTask, AsyncTasks, RemoteAgents, RemoteError, RemoteStanding, RemoteStatus};
pub use skill_listing::SkillsConfig;
pub use skill_lists::SkillLists;
pub use spending::{BudgetConfig, OnLimit};
pub use subagents::{
    Delegated, Delegations, OnExcess, Part, Status, Subagent, SubagentBuilder, SubagentsConfig, TokenBudget,
};
pub use surroundings::WorkingDirectory;
pub use tool_ranking::{ToolSelectionConfig, ToolsUsed};
