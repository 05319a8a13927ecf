//! Runs over a real store, with a model that follows the words it is sent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chaos;
mod clocks;
mod crashes;
mod crons;
mod delegation;
mod files;
mod making;
mod on_its_way;
mod processes;
mod recording;
mod runs;
mod sim;
mod stream;
mod support;
mod surrounded;
mod threads;
mod told;
