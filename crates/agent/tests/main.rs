//! The super agent at the model's HTTP boundary: real requests out, real tools in a real sandbox.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod boundary;
mod chain;
mod consent;
mod foreign;
mod guards;
mod support;
