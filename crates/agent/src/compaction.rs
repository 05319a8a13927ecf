//! Making a conversation fit into its model's window: when, where to cut, and what stands for what was cut.
//!
//! Invariant: a compaction is a view. The thread's messages are never rewritten; a record in the state says how the
//! model is shown them, and stays the same, byte for byte, until the next compaction.

mod ask;
mod budget;
mod config;
mod cut;
mod extract;
mod history;
mod record;
mod shrink;
mod summary;
mod view;

pub use ask::{Compact, CompactAsk};
pub use config::{Clause, Size, SummarizationConfig, Triggers};
pub use record::{Compacted, Compaction};

pub(crate) use budget::reported;
pub(crate) use shrink::{Job, Reason, Shrunk, Step};
pub(crate) use view::Views;

#[cfg(test)]
mod tests;
