//! The kernel's checkpointer over a store, as durable as the run asked for.
//!
//! Invariant: steps reach the store in the order they were made, each after the events that tell of it, and the last of
//! them before the run is called ended.

use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{CheckpointError, Checkpointer, Step, async_trait};
use hart_types::{CheckpointId, Durability, ThreadId};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::port::{Lease, Store, StoreError};
use crate::tape::Tape;

pub(crate) struct StepLog {
    to: Arc<Destination>,
    durability: Durability,
    /// What waits for the run's end.
    held: Mutex<Vec<Step>>,
    /// The write that is under way behind the run's back; the next one waits for it. Held by whoever waits for it, so
    /// that nobody who comes later takes it for done.
    under_way: tokio::sync::Mutex<UnderWay>,
    tasks: TaskTracker,
}

#[derive(Default)]
enum UnderWay {
    #[default]
    Nothing,
    Write(JoinHandle<Written>),
    /// A write failed, and whoever comes later must not think that all is written.
    Failed,
}

/// Where steps go, and by what right.
struct Destination {
    store: Arc<dyn Store>,
    /// None for what is written by hand, with no run.
    run: Option<(Lease, Arc<Tape>)>,
    /// Told when the right is lost.
    lost: CancellationToken,
    /// The call whose agent they are of; none for the thread's own.
    call: Option<String>,
}

type Written = Result<(), CheckpointError>;

impl StepLog {
    /// Of a run, which is told by `lost` when it is no longer ours.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        lease: Lease,
        tape: Arc<Tape>,
        lost: CancellationToken,
        durability: Durability,
        tasks: TaskTracker,
    ) -> Self {
        let to = Arc::new(Destination { store, run: Some((lease, tape)), lost, call: None });
        Self { to, durability, held: Mutex::default(), under_way: Default::default(), tasks }
    }

    /// For reading, and for writing by hand.
    pub(crate) fn by_hand(store: Arc<dyn Store>, tasks: TaskTracker) -> Self {
        let to = Arc::new(Destination { store, run: None, lost: CancellationToken::new(), call: None });
        let durability = Durability::Sync;
        Self { to, durability, held: Mutex::default(), under_way: Default::default(), tasks }
    }

    /// Writes what was held back, and waits for what is under way.
    pub(crate) async fn flush(&self, thread: &ThreadId) -> Written {
        let mut under_way = self.under_way.lock().await;
        let written = under_way.finished().await;
        *under_way = if written.is_ok() { UnderWay::Nothing } else { UnderWay::Failed };
        written?;
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        if held.is_empty() { Ok(()) } else { self.to.write(thread, held).await }
    }

    async fn write_behind(&self, thread: &ThreadId, steps: Vec<Step>) {
        let mut under_way = self.under_way.lock().await;
        let mut earlier = std::mem::take(&mut *under_way);
        let (to, thread) = (Arc::clone(&self.to), thread.clone());
        *under_way = UnderWay::Write(self.tasks.spawn(async move {
            earlier.finished().await?;
            to.write(&thread, steps).await
        }));
    }
}

impl UnderWay {
    async fn finished(&mut self) -> Written {
        let cut_off = |message: &str| CheckpointError { message: message.to_owned(), source: None };
        match self {
            Self::Nothing => Ok(()),
            Self::Failed => Err(cut_off("an earlier step was not written")),
            Self::Write(writing) => writing.await.unwrap_or_else(|_| Err(cut_off("a write was cut off"))),
        }
    }
}

impl Destination {
    /// A full disk is waited for: the run stands still and goes on by itself. Who writes by hand is told at once.
    async fn write(&self, thread: &ThreadId, steps: Vec<Step>) -> Written {
        let Some((lease, tape)) = &self.run else {
            return self.append(thread, steps, None).await.map_err(failed);
        };
        // A step whose story is not in the log would leave a hole in it after a crash.
        tape.flushed().await;
        let mut told = false;
        loop {
            match self.append(thread, steps.clone(), Some(lease)).await {
                Err(StoreError::Full) => tape.wait_for_room(&mut told).await,
                Err(error @ StoreError::Lost(_)) => {
                    self.lost.cancel();
                    return Err(failed(error));
                }
                written => return written.map_err(failed),
            }
        }
    }
}

impl Destination {
    async fn append(
        &self,
        thread: &ThreadId,
        steps: Vec<Step>,
        lease: Option<&Lease>,
    ) -> Result<(), StoreError> {
        match (&self.call, lease) {
            (None, lease) => self.store.append_steps(thread, steps, lease).await,
            (Some(call), Some(lease)) => self.store.append_child_steps(thread, call, steps, lease).await,
            // Whoever writes by hand writes to the thread.
            (Some(_), None) => Ok(()),
        }
    }
}

#[async_trait]
impl Checkpointer for StepLog {
    async fn append(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), CheckpointError> {
        match self.durability {
            Durability::Sync => self.to.write(thread, steps).await,
            Durability::Async => {
                self.write_behind(thread, steps).await;
                Ok(())
            }
            Durability::Exit => {
                self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(steps);
                Ok(())
            }
        }
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        match &self.to.call {
            None => self.to.store.steps(thread, at).await.map_err(failed),
            Some(call) => self.to.store.child_steps(thread, call).await.map_err(failed),
        }
    }

    /// Safe at once, however durable the run is: whoever asks a question in there must find itself again.
    fn inside(&self, call: &str) -> Option<Arc<dyn Checkpointer>> {
        let to = Destination {
            store: Arc::clone(&self.to.store),
            run: self.to.run.clone(),
            lost: self.to.lost.clone(),
            call: Some(call.to_owned()),
        };
        Some(Arc::new(Self {
            to: Arc::new(to),
            durability: Durability::Sync,
            held: Mutex::default(),
            under_way: Default::default(),
            tasks: self.tasks.clone(),
        }))
    }
}

pub(crate) fn failed(error: StoreError) -> CheckpointError {
    CheckpointError { message: error.to_string(), source: Some(Box::new(error)) }
}
