//! The gateway at its HTTP boundary: a real server, a real client, a store on disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod admission;
mod assistants;
mod bad_input;
mod crons;
mod events;
mod gaps;
mod langgraph;
mod lines;
mod native;
mod operator;
mod page;
mod questions;
mod recorded;
mod recorded_runs;
mod refusals;
mod secrets;
mod slow_readers;
mod socket;
mod states;
mod support;
mod thread_stream;
mod tools;
mod webhooks;
