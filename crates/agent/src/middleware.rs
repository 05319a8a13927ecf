//! The built-in middlewares, one file each: hook glue only. What they apply lives in the crate that owns the noun.
//!
//! Invariant: a middleware does not know its neighbours; `chain.rs` does.

mod clarification;
mod dangling_tool_call;
mod sandbox;

pub use clarification::Clarification;
pub use dangling_tool_call::DanglingToolCall;
pub use sandbox::Sandbox;
