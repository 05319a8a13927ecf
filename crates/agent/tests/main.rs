//! The super agent at the model's HTTP boundary: real requests out, real tools in a real sandbox.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod attachments;
mod boundary;
mod caching;
mod bad_input;
mod boundary;
mod bounds_support;
mod budgets;
mod chain;
mod endings;
mod guards;
mod sdk;
mod histories;
mod plan;
mod setting;
mod stage;
mod loops;
mod compaction;
mod compaction_ladder;
mod context_edits;
mod guards;
mod long_results;
mod long_world;
mod support;
mod titles;
