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
mod chain;
mod guards;
mod sdk;
mod histories;
mod plan;
mod setting;
mod stage;
mod support;
mod titles;
