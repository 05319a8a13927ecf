//! The super agent at the model's HTTP boundary: real requests out, real tools in a real sandbox.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod approval;
mod attachments;
mod bad_input;
mod boundary;
mod bounds_support;
mod budgets;
mod caching;
mod chain;
mod compaction;
mod compaction_ladder;
mod consent;
mod consent_world;
mod context_edits;
mod delegated_skills;
mod delegation;
mod delegation_bounds;
mod endings;
mod foreign;
mod goals;
mod guards;
mod histories;
mod long_results;
mod long_world;
mod loops;
mod own_subagents;
mod plan;
mod sdk;
mod setting;
mod side_calls;
mod skills;
mod stage;
mod support;
mod titles;
mod whole_chain;
