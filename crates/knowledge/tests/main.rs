//! Skills in real folders and real archives.
//!
//! Invariant: every test has a folder of its own, and no test asserts a duration.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod archives;
mod evolution;
mod fuzz;
mod layouts;
mod library;
mod shelf;
