//! The dialects over real HTTP, recordings on real files, and hostile bytes.
//!
//! Invariant: no test judges by the clock; a configured timeout is only there to be reached.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    reason = "tests fail by panicking"
)]

mod addresses;
mod anthropic;
mod both;
mod caching;
mod capabilities;
mod counting;
mod fault_table;
mod faults;
mod files;
mod fuzz;
mod garbage_table;
mod gemini;
mod local;
mod network;
mod odd_names;
mod ollama;
mod openai;
mod pages;
mod probe;
mod recording;
mod repair;
mod responses;
mod structured;
mod support;
mod text_calls;
