//! The sandbox against real files and real processes.
//!
//! Invariant: no test judges by the clock; limits on waiting are only there so that a failure ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start processes and read the environment to do so"
)]

mod audit;
mod bombs;
mod closed_kernel;
mod confinement;
mod conformance;
mod egress;
mod ending;
mod escapes;
mod exec;
mod files;
mod hostile_files;
mod identity;
mod kept;
mod permissions;
mod provider;
mod races;
mod search;
mod snapshots;
mod streams;
mod support;
mod writers;
