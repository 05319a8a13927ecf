//! The gateway at its HTTP boundary: a real server, a real client, a store on disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod assistants;
mod bad_input;
mod crons;
mod langgraph;
mod operator;
mod refusals;
mod support;
mod webhooks;
