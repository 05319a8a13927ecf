//! The kernel's checkpointer over a store, as durable as the run asked for.
//!
//! Invariant: steps reach the store in the order they were made, and the last of them before the run is called ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hart_kernel::{CheckpointError, Checkpointer, Step, async_trait};
use hart_types::{CheckpointId, Durability, ThreadId};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::port::{Store, StoreError};

pub(crate) struct StepLog {
    store: Arc<dyn Store>,
    durability: Durability,
    /// What waits for the run's end.
    held: Mutex<Vec<Step>>,
    /// The write that is under way behind the run's back; the next one waits for it.
    under_way: Mutex<Option<JoinHandle<Written>>>,
    tasks: TaskTracker,
}

type Written = Result<(), CheckpointError>;

impl StepLog {
    pub(crate) fn new(store: Arc<dyn Store>, durability: Durability, tasks: TaskTracker) -> Self {
        Self { store, durability, held: Mutex::default(), under_way: Mutex::default(), tasks }
    }

    /// Writes what was held back, and waits for what is under way.
    pub(crate) async fn flush(&self, thread: &ThreadId) -> Written {
        let earlier = self.take_under_way();
        if let Some(earlier) = earlier {
            finished(earlier).await?;
        }
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        if held.is_empty() { Ok(()) } else { write(&*self.store, thread, held).await }
    }

    fn write_behind(&self, thread: &ThreadId, steps: Vec<Step>) {
        let earlier = self.take_under_way();
        let (store, thread) = (Arc::clone(&self.store), thread.clone());
        let writing = self.tasks.spawn(async move {
            if let Some(earlier) = earlier {
                finished(earlier).await?;
            }
            write(&*store, &thread, steps).await
        });
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) = Some(writing);
    }

    fn take_under_way(&self) -> Option<JoinHandle<Written>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn finished(writing: JoinHandle<Written>) -> Written {
    writing.await.unwrap_or_else(|error| {
        Err(CheckpointError { message: "a write was cut off".to_owned(), source: Some(Box::new(error)) })
    })
}

/// A full disk is waited for: the run stands still and goes on by itself.
async fn write(store: &dyn Store, thread: &ThreadId, steps: Vec<Step>) -> Written {
    loop {
        match store.append_steps(thread, steps.clone()).await {
            Err(StoreError::Full) => {
                tracing::error!(%thread, "storage_full: the disk is full; the run waits");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            written => return written.map_err(failed),
        }
    }
}

#[async_trait]
impl Checkpointer for StepLog {
    async fn append(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), CheckpointError> {
        match self.durability {
            Durability::Sync => write(&*self.store, thread, steps).await,
            Durability::Async => {
                self.write_behind(thread, steps);
                Ok(())
            }
            Durability::Exit => {
                self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(steps);
                Ok(())
            }
        }
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        self.store.steps(thread, at).await.map_err(failed)
    }
}

fn failed(error: StoreError) -> CheckpointError {
    CheckpointError { message: error.to_string(), source: Some(Box::new(error)) }
}
