//! The wire types held against what LangGraph and DeerFlow really send.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod fuzz;
mod golden;
mod leniency;
