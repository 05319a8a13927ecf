//! File operations of a thread, safe against whatever its commands plant in the same directories.
//!
//! Invariant: a file is reached from its root's descriptor, and the kernel refuses every step that leaves the root.

mod explore;
mod keep;
mod lines;
mod ops;
mod place;
mod resolve;
mod walk;
mod write;

pub(crate) use explore::{Explorer, Seen, explore, path_order};
pub use lines::content_mark;
pub(crate) use lines::{create_log, hex, mark, read_lines, scan};
pub(crate) use ops::{list, modify_read, open, read, remove, stat};
pub(crate) use place::{OpenRoot, Place, Root, Roots, explain};
pub(crate) use resolve::resolve;
pub(crate) use walk::is_noise;
pub(crate) use write::{Change, FileKey, Reception, append, create_or_replace, key};
