//! What can go wrong in a sandbox, in words its reader can act on.
//!
//! Invariant: no message contains a host path; what a model reads names virtual paths only.

use std::io;

use crate::path::{PathError, VPath};
use crate::permissions::Operation;

pub type Result<T, E = SandboxError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("no such file or directory: `{0}`; list its parent directory to see what is there")]
    NotFound(VPath),
    #[error("`{0}` already exists; choose another name or overwrite it")]
    AlreadyExists(VPath),
    #[error("`{0}` is a directory; name a file in it")]
    IsDirectory(VPath),
    #[error("`{0}` is not a directory, or a part of it is a file")]
    NotADirectory(VPath),
    #[error("the directory `{0}` is not empty; remove what is in it first")]
    NotEmpty(VPath),
    #[error("`{path}` is a {kind}, not a file; it cannot be read or written")]
    NotAFile { path: VPath, kind: &'static str },
    #[error("`{0}` is not UTF-8 text; treat it as a binary file")]
    NotUtf8(VPath),
    #[error("`{0}` is read-only; write under /mnt/user-data/workspace or /mnt/user-data/outputs")]
    ReadOnly(VPath),
    #[error(
        "permission denied: `{path}` may not be {}, by the rule about `{rule}`; do without it, or ask the user",
        operation.participle()
    )]
    Forbidden { path: VPath, operation: Operation, rule: String },
    #[error("`{path}` has {size} bytes, the limit is {limit}; work on a part of it")]
    TooLarge { path: VPath, size: u64, limit: u64 },
    #[error("the command has {len} bytes, the limit is {limit}; write it to a file and run that file")]
    CommandTooLong { len: usize, limit: usize },
    #[error("the command contains a NUL byte; remove it")]
    NulInCommand,
    #[error("environment variable `{name}` cannot be set: {reason}")]
    BadEnvironment { name: String, reason: &'static str },
    #[error("bad pattern `{pattern}`: {reason}")]
    BadPattern { pattern: String, reason: String },
    #[error("sandbox configuration: {what}; {fix}")]
    BadConfig { what: String, fix: String },
    /// Isolation is missing, so commands are refused. Never answered by running unconfined.
    #[error("commands cannot run here: {reason}\n  help: {fix}")]
    Unavailable { reason: String, fix: String },
    #[error("the command could not be started: {reason}")]
    Spawn { reason: String },
    #[error("{limit} commands run in the background already; end one of them first, or wait until one ends")]
    TooManyBackground { limit: usize },
    /// A limit of the thread or of the disk is reached.
    #[error("no room to write: {reason}")]
    DiskFull { rule: &'static str, reason: String },
    #[error("`{path}`: {source}")]
    Io { path: VPath, source: io::Error },
}

impl SandboxError {
    /// The id of the rule by which something was refused, if this is a refusal.
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            Self::Path(PathError::Outside { .. }) => Some("path.outside"),
            Self::Path(PathError::Symlink { .. }) => Some("path.symlink"),
            Self::Path(PathError::Nul { .. } | PathError::Empty | PathError::TooLong { .. }) => {
                Some("path.syntax")
            }
            Self::ReadOnly(_) => Some("path.read-only"),
            Self::Forbidden { .. } => Some("path.forbidden"),
            Self::NotAFile { .. } => Some("path.special-file"),
            Self::Unavailable { .. } => Some("tier.refused"),
            Self::DiskFull { rule, .. } => Some(rule),
            _ => None,
        }
    }

    pub(crate) fn io(path: &VPath, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.clone(), source: source.into() }
    }
}
