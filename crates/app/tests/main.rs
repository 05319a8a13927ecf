//! The tests of `hart-app` as its users see it, in one binary.
//!
//! Invariant: nothing here reads the environment of the test process; every test brings its own.

mod config;
mod demo;
