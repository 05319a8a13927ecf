//! The files of a thread are kept before the tools of a run may change them.

use std::sync::atomic::{AtomicUsize, Ordering};

use hart_kernel::async_trait;
use hart_runtime::*;
use hart_types::{RunId, RunStatus, StreamMode};
use serde_json::Value;

use crate::support::{World, data, says};

/// There is room for them at the third attempt, if ever.
#[derive(Debug)]
struct Crowded {
    attempts: AtomicUsize,
    broken: bool,
}

#[async_trait]
impl Workspaces for Crowded {
    async fn before_run(&self, _: &Workspace, _: &RunId) -> Result<(), WorkspaceError> {
        match self.attempts.fetch_add(1, Ordering::SeqCst) {
            _ if self.broken => Err(WorkspaceError::Failed("the disk is broken".to_owned())),
            0 | 1 => Err(WorkspaceError::Full),
            _ => Ok(()),
        }
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

/// What is told of files while a tool is called.
async fn told(broken: bool) -> Vec<Value> {
    let world = World::keeping(Crowded { attempts: AtomicUsize::new(0), broken }).await;
    let run = world.run(says("t", r#"CALL nothing {}"#)).await;
    assert_eq!(run.status, RunStatus::Success);
    let frames = world.frames(&run, &[StreamMode::Custom], After::Start).await;
    let kinds =
        frames.iter().filter(|frame| frame.event == "custom").map(|frame| data(frame)["type"].clone());
    kinds.collect()
}

#[tokio::test]
async fn tools_wait_until_there_is_room_for_a_copy_of_what_they_may_change() {
    assert_eq!(told(false).await, ["storage_full"]);
}

#[tokio::test]
async fn files_that_cannot_be_kept_at_all_hold_up_nobody() {
    assert_eq!(told(true).await, ["workspace_not_kept"]);
}
