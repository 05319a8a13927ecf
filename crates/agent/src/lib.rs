//! Assembles *the* super agent: prompt, ordered middleware, tools.
//!
//! Invariant: nothing here reads a file, an environment variable or a global; what an agent is made of arrives as a
//! parameter. The serving side (runs, storage, HTTP) is unknown to this crate.

pub mod approval;
mod builder;
mod chain;
mod features;
pub mod guardrails;
pub mod middleware;
mod mode;
mod view;

pub use builder::{SuperAgent, SuperAgentBuilder};
pub use features::{Features, FilePermissions};
pub use mode::Mode;
