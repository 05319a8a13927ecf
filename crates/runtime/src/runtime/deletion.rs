//! Forgetting runs.
//!
//! Invariant: a run is undone only where nothing stands on it; what others did since is never touched.

use hart_types::{CancelAction, RunId};

use super::{CancelError, Runtime};
use crate::port::Deleted;
use crate::workspaces::Workspace;

impl Runtime {
    /// Forgets a run. One that goes on is rolled back; the last one of its thread is undone, with its files; of any
    /// other its record, its stream and its states in the history go, while the thread keeps what it did.
    pub async fn delete_run(&self, id: &RunId) -> Result<(), CancelError> {
        let run = self.inner.store.run(id).await?.ok_or_else(|| CancelError::NoRun(id.clone()))?;
        let files = Workspace { thread: run.thread.clone(), user: run.user.clone() };
        let mut status = run.status;
        loop {
            if status.is_active() {
                match self.cancel(id, CancelAction::Rollback).await {
                    Ok(()) | Err(CancelError::Ended { .. } | CancelError::NoRun(_)) => {}
                    Err(error) => return Err(error),
                }
                self.wait(id).await;
            }
            match self.inner.store.delete_run(id, self.now()).await? {
                // It was rolled back, or somebody else was faster.
                Deleted::Missing => break,
                Deleted::Forgotten => break,
                Deleted::Undone => {
                    if let Err(error) = self.inner.workspaces.undo_run(&files, id).await {
                        tracing::warn!(run = %id, %error, "the files of a run that was undone are not as before");
                    }
                    self.inner.doorbells.state_changed(&run.thread);
                    break;
                }
                Deleted::Active => status = hart_types::RunStatus::Running,
            }
        }
        // Nobody can follow what is not there.
        self.inner.lock_live().remove(id);
        Ok(())
    }
}
