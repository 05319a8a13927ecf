//! Remembers across restarts: SQLite behind the runtime's ports.
//!
//! Invariant: no SQL outside this crate, and nothing in it that decides what a run may do.

mod sqlite;

pub use sqlite::{OpenError, SqliteStore};
