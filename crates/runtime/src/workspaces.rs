//! The files of a thread, as far as its runs and its copies concern them.
//!
//! Invariant: a run never fails because its files could not be remembered; that they could not is said. Where it is for
//! want of room, it waits.

use hart_types::{RunId, ThreadId, UserId};

/// A thread and whose it is: what its files are found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    pub thread: ThreadId,
    pub user: UserId,
}

/// Why files are not as they should be, for the operator and the client.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("the disk is full")]
    Full,
    #[error("{0}")]
    Failed(String),
}

#[hart_kernel::async_trait]
pub trait Workspaces: Send + Sync + 'static {
    /// Remembers the files as they are before a run. Said again of a run that goes on, it changes nothing.
    async fn before_run(&self, of: &Workspace, run: &RunId) -> Result<(), WorkspaceError>;

    /// Remembers them as the run left them.
    async fn after_run(&self, of: &Workspace, run: &RunId) -> Result<(), WorkspaceError>;

    /// Makes them as they were before the run.
    async fn undo_run(&self, of: &Workspace, run: &RunId) -> Result<(), WorkspaceError>;

    /// Gives a copy of them to another thread.
    async fn copy(&self, from: &Workspace, to: &Workspace) -> Result<(), WorkspaceError>;

    async fn delete(&self, of: &Workspace) -> Result<(), WorkspaceError>;
}

/// Threads without files.
#[derive(Clone, Copy, Debug)]
pub struct NoWorkspaces;

#[hart_kernel::async_trait]
impl Workspaces for NoWorkspaces {
    async fn before_run(&self, _: &Workspace, _: &RunId) -> Result<(), WorkspaceError> {
        Ok(())
    }
    async fn after_run(&self, _: &Workspace, _: &RunId) -> Result<(), WorkspaceError> {
        Ok(())
    }
    async fn undo_run(&self, _: &Workspace, _: &RunId) -> Result<(), WorkspaceError> {
        Ok(())
    }
    async fn copy(&self, _: &Workspace, _: &Workspace) -> Result<(), WorkspaceError> {
        Ok(())
    }
    async fn delete(&self, _: &Workspace) -> Result<(), WorkspaceError> {
        Ok(())
    }
}
