//! One agent, run through its public face: scripted models and tools, real hooks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cancel;
mod checkpoint;
mod children;
mod contract;
mod effects;
mod going_on;
mod hooks;
mod interrupts;
mod recovery;
mod support;
mod tools;
