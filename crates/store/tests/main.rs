//! The storage ports over every engine there is, and what a damaged file gets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod conformance;
mod damage;
mod file;
mod migrations;
