//! Tools on files: look, find, read, write, edit.
//!
//! Invariant: a path is read by the sandbox (`Sandbox::path`) before anything is done with it.

mod delete;
mod edits;
mod glob;
mod grep;
mod ls;
mod read_file;
mod str_replace;
mod write_file;

pub(crate) use delete::Delete;
pub(crate) use glob::Glob;
pub(crate) use grep::Grep;
pub(crate) use ls::Ls;
pub(crate) use read_file::ReadFile;
pub(crate) use str_replace::StrReplace;
pub(crate) use write_file::WriteFile;
