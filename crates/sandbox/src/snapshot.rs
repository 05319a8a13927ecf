//! Snapshots of a thread's directories: take, restore, compare, prune.
//!
//! The store lies in `{thread}/snapshots`, where no command sees it. Small files are packed one behind the other, one
//! pack per worker and snapshot; large ones are objects named by their hash, cloned where the file system can. A
//! file that has not changed since the last snapshot is not read again.
//!
//! Invariant: the store holds copies. Nothing in it shares bytes with a file that a command may write in place.

mod diff;
mod manifest;
mod restore;
mod runs;
mod store;
mod tree;

use std::io;
use std::path::PathBuf;

pub use diff::{ChangeLimits, ChangeStatus, ChangeSummary, ChangedFile, WorkspaceChanges};
pub use restore::Restored;

use crate::dirs::ThreadDirs;
use restore::NewUploads;
use store::Store;

/// The snapshots of one thread.
#[derive(Clone, Debug)]
pub struct Snapshots {
    dirs: ThreadDirs,
}

/// Sorts by the order they were taken in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

impl SnapshotId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub id: SnapshotId,
    pub files: usize,
    /// Files whose content had to be read; the others were known from the last snapshot.
    pub read: usize,
    /// What could not be kept, such as files this user may not read: a restore leaves them as they are.
    pub left_out: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("there is no snapshot `{id}`; list them to see what there is")]
    NotFound { id: String },
    #[error("the snapshot `{id}` is damaged ({what}); take a new one")]
    Damaged { id: String, what: String },
    #[error("there are more than {limit} files and directories; delete what is not needed first")]
    TooMany { limit: usize },
    #[error("the snapshot failed while {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

impl SnapshotError {
    /// Whether it was for want of room on the disk.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

type Result<T, E = SnapshotError> = std::result::Result<T, E>;

impl Snapshots {
    pub fn new(dirs: ThreadDirs) -> Self {
        Self { dirs }
    }

    /// Takes a snapshot of all three directories as they are now.
    ///
    /// What a command changes meanwhile may be in it or not, file by file. A file is read again if it changed while
    /// it was read; one that never stands still is kept as it was read last.
    pub async fn take(&self) -> Result<Taken> {
        self.blocking(|this| {
            let store = Store::open(&this.root())?;
            store.take(&tree::scan(&this.dirs)?)
        })
        .await
    }

    /// Makes the directories as they were: what was changed or deleted comes back, what was created goes.
    pub async fn restore(&self, id: &SnapshotId) -> Result<Restored> {
        let id = id.clone();
        self.blocking(move |this| {
            let store = Store::open(&this.root())?;
            restore::restore(&this.dirs, &store, &store.load(&id)?, NewUploads::Go)
        })
        .await
    }

    /// What happened between two snapshots.
    pub async fn diff(&self, before: &SnapshotId, after: &SnapshotId) -> Result<WorkspaceChanges> {
        let (before, after) = (before.clone(), after.clone());
        self.blocking(move |this| {
            let store = Store::open(&this.root())?;
            Ok(diff::diff(&store, &store.load(&before)?, &store.load(&after)?))
        })
        .await
    }

    /// The oldest first.
    pub async fn list(&self) -> Result<Vec<SnapshotId>> {
        self.blocking(|this| Store::open(&this.root())?.list()).await
    }

    /// Keeps the newest `keep` and what they need; returns how many were dropped.
    pub async fn prune(&self, keep: usize) -> Result<usize> {
        self.blocking(move |this| Store::open(&this.root())?.prune(keep)).await
    }

    fn root(&self) -> PathBuf {
        self.dirs.root().join("snapshots")
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || work(&this))
            .await
            .unwrap_or_else(|error| Err(SnapshotError::io("working")(io::Error::other(error))))
    }
}
