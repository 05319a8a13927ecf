//! The tests of `hart-app` as its users see it, in one binary.
//!
//! Invariant: nothing here reads the environment of the test process; every test brings its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bundled_skills;
mod client;
mod config;
mod consent;
mod delegation;
mod demo;
mod either_client;
mod guide;
mod middleware;
mod middleware_at_work;
mod native;
mod recording;
mod settings_at_work;
