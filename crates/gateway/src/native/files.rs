//! The files of threads, as the routes about them ask for them.
//!
//! Invariant: a path is one that the thread's agent sees; nothing here knows where files really are.

use std::io;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::StatusCode;
use hart_kernel::async_trait;
use hart_runtime::Workspace;

use crate::error::ApiError;

/// Implemented where agents have files.
#[async_trait]
pub trait Files: Send + Sync {
    async fn open(&self, of: &Workspace, path: &str) -> Result<Arc<dyn OpenFile>, FileError>;

    /// Makes a file of its parts, whole or not at all. One that is there is never replaced.
    async fn receive(&self, of: &Workspace, path: &str, parts: &mut dyn Incoming) -> Result<u64, FileError>;

    /// The files directly in a directory, by name.
    async fn list(&self, of: &Workspace, directory: &str) -> Result<Vec<FileInfo>, FileError>;

    async fn remove(&self, of: &Workspace, path: &str) -> Result<(), FileError>;

    /// Replaces a file by what `edit` makes of it, while nobody else writes to it; `None` leaves it as it is.
    async fn edit(
        &self,
        of: &Workspace,
        path: &str,
        edit: &mut (dyn for<'a> FnMut(&'a [u8]) -> Option<Vec<u8>> + Send),
    ) -> Result<(), FileError>;
}

/// A file that parts are read of.
#[async_trait]
pub trait OpenFile: Send + Sync {
    fn size(&self) -> u64;

    /// Seconds since 1970.
    fn modified(&self) -> i64;

    /// At most `len` bytes from `offset` on; fewer only where the file ends.
    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes>;
}

/// A file on its way in.
#[async_trait]
pub trait Incoming: Send {
    /// The next part, `None` behind the last one.
    async fn next(&mut self) -> io::Result<Option<Bytes>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    pub name: String,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
}

/// Why there is no content of a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file")]
    NotFound,
    #[error("there is such a file already")]
    Exists,
    /// It is there, but not to be had like this: a directory, or too large.
    #[error("{0}")]
    Refused(String),
    /// There is no room for it.
    #[error("{0}")]
    Full(String),
    /// It may be to be had later.
    #[error("{0}")]
    Failed(String),
}

impl FileError {
    /// `what` was asked for.
    pub(crate) fn about(self, what: &str) -> ApiError {
        match self {
            Self::NotFound => ApiError::not_found(format!("{what} not found")),
            Self::Exists => ApiError::conflict(format!("{what} is there already")),
            Self::Refused(why) => ApiError::unprocessable(why),
            Self::Full(why) => ApiError::new(StatusCode::INSUFFICIENT_STORAGE, why),
            Self::Failed(why) => {
                tracing::error!(what, why, "a file of a thread cannot be reached");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }
}
