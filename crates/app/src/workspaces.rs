//! The files of threads on this machine, undone and copied with their runs and threads.
//!
//! Invariant: only what a thread's sandbox sees is touched.

use std::sync::Arc;

use hart_runtime::{Workspace, WorkspaceError, Workspaces};
use hart_sandbox::{LocalSandboxProvider, SnapshotError, Snapshots, ThreadDirs};
use hart_types::RunId;

/// Snapshots of each thread's directories.
#[derive(Debug)]
pub(crate) struct ThreadFiles {
    sandboxes: Arc<LocalSandboxProvider>,
}

impl ThreadFiles {
    pub(crate) fn new(sandboxes: Arc<LocalSandboxProvider>) -> Self {
        Self { sandboxes }
    }

    fn dirs(&self, of: &Workspace) -> ThreadDirs {
        self.sandboxes.thread_dirs(&of.thread, &of.user)
    }

    fn snapshots(&self, of: &Workspace) -> Snapshots {
        Snapshots::new(self.dirs(of))
    }
}

#[hart_kernel::async_trait]
impl Workspaces for ThreadFiles {
    async fn before_run(&self, of: &Workspace, run: &RunId) -> Result<(), WorkspaceError> {
        self.snapshots(of).before_run(run).await.map_err(failed)
    }

    async fn after_run(&self, of: &Workspace, run: &RunId) -> Result<(), WorkspaceError> {
        self.snapshots(of).after_run(run).await.map_err(failed)
    }

    async fn undo_run(&self, of: &Workspace, run: &RunId) -> Result<(), WorkspaceError> {
        let restored = self.snapshots(of).undo_run(run).await.map_err(failed)?;
        match restored.left.as_slice() {
            [] => Ok(()),
            left => Err(WorkspaceError::Failed(format!("not as before: {}", left.join("; ")))),
        }
    }

    async fn copy(&self, from: &Workspace, to: &Workspace) -> Result<(), WorkspaceError> {
        self.snapshots(from).copy_to(self.dirs(to)).await.map(|_| ()).map_err(failed)
    }

    async fn delete(&self, of: &Workspace) -> Result<(), WorkspaceError> {
        let deleted = self.sandboxes.delete_files(&of.thread, &of.user).await;
        deleted.map_err(|error| WorkspaceError::Failed(error.to_string()))
    }
}

fn failed(error: SnapshotError) -> WorkspaceError {
    match error.is_full() {
        true => WorkspaceError::Full,
        false => WorkspaceError::Failed(error.to_string()),
    }
}
