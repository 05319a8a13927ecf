//! What an agent knows beyond the conversation: skills.
//!
//! Invariant: what came from a package is data until it was read whole, scanned and locked; nothing here runs any of it,
//! and nothing here decides what a model is shown.

pub mod front_matter;
pub mod ranking;
pub mod skills;
