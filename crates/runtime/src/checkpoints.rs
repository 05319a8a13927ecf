//! The kernel's checkpointer over a store, as durable as the run asked for.
//!
//! Invariant: steps reach the store in the order they were made, each with the events that tell of it, and the last of
//! them before the run is called ended. No effect begins before the step that asks for it is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hart_kernel::{CheckpointError, Checkpointer, Node, Step, async_trait};
use hart_types::{CheckpointId, Durability, ThreadId};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::port::{Lease, Progress, Store, StoreError};
use crate::tape::{Hold, Tape};

/// The model is on its way meanwhile, and its first word is what somebody waits for.
const NOT_URGENT: Duration = Duration::from_millis(5);

pub(crate) struct StepLog {
    to: Arc<Destination>,
    durability: Durability,
    /// What waits for the run's end.
    held: Mutex<Vec<Step>>,
    /// The write that is under way behind the run's back; the next one waits for it. Held by whoever waits for it, so
    /// that nobody who comes later takes it for done.
    under_way: tokio::sync::Mutex<UnderWay>,
    /// Nothing was written yet, by anybody.
    empty: AtomicBool,
    /// The step of the run's input, if its name is on the disk already.
    input: Option<CheckpointId>,
    tasks: TaskTracker,
}

#[derive(Default)]
enum UnderWay {
    #[default]
    Nothing,
    /// The second is told when somebody waits for it.
    Write(JoinHandle<Written>, Arc<Notify>),
    /// A write failed, and whoever comes later must not think that all is written.
    Failed,
}

/// Where steps go, and by what right.
struct Destination {
    store: Arc<dyn Store>,
    /// None for what is written by hand, with no run. The lease is there when the run has begun.
    run: Option<(Arc<OnceLock<Lease>>, Arc<Tape>)>,
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
        lease: Arc<OnceLock<Lease>>,
        tape: Arc<Tape>,
        lost: CancellationToken,
        durability: Durability,
        tasks: TaskTracker,
    ) -> Self {
        let to = Arc::new(Destination { store, run: Some((lease, tape)), lost, call: None });
        Self::to(to, durability, tasks)
    }

    /// The thread has no steps: nobody need look for them.
    pub(crate) fn found_empty(&self) {
        self.empty.store(true, Ordering::Relaxed);
    }

    /// The same, where it is known what the step of the input is called.
    pub(crate) fn named(mut self, input: Option<CheckpointId>) -> Self {
        self.input = input;
        self
    }

    /// For reading, and for writing by hand.
    pub(crate) fn by_hand(store: Arc<dyn Store>, tasks: TaskTracker) -> Self {
        let to = Arc::new(Destination { store, run: None, lost: CancellationToken::new(), call: None });
        Self::to(to, Durability::Sync, tasks)
    }

    fn to(to: Arc<Destination>, durability: Durability, tasks: TaskTracker) -> Self {
        let (held, under_way) = (Mutex::default(), Default::default());
        Self { to, durability, held, under_way, empty: AtomicBool::new(false), input: None, tasks }
    }

    /// Writes what was held back, and waits for what is under way.
    pub(crate) async fn flush(&self, thread: &ThreadId) -> Written {
        let mut under_way = self.under_way.lock().await;
        let written = under_way.finished().await;
        *under_way = if written.is_ok() { UnderWay::Nothing } else { UnderWay::Failed };
        written?;
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        if held.is_empty() { Ok(()) } else { self.to.write(thread, held.into(), None).await }
    }

    /// `wait` is how long it stays out of the way of what is more urgent, unless somebody waits for it.
    async fn write_behind(&self, thread: &ThreadId, steps: Arc<[Step]>, hold: Option<Hold>, wait: Duration) {
        let mut under_way = self.under_way.lock().await;
        let mut earlier = std::mem::take(&mut *under_way);
        let (to, thread) = (Arc::clone(&self.to), thread.clone());
        let awaited = Arc::new(Notify::new());
        let hurry = Arc::clone(&awaited);
        let writing = self.tasks.spawn(async move {
            if !wait.is_zero() {
                let _ = tokio::time::timeout(wait, hurry.notified()).await;
            }
            earlier.finished().await?;
            to.write(&thread, steps, hold).await
        });
        *under_way = UnderWay::Write(writing, awaited);
    }

    /// Whether the run need not wait for the disk: a model that is asked next changes nothing, so the step has as long
    /// as it thinks.
    fn has_time(&self, steps: &[Step]) -> bool {
        let next = steps.last().and_then(|last| last.next.as_deref());
        self.to.run.is_some() && self.to.call.is_none() && next == Node::Model.name()
    }

    /// Whether they are the run's input, which another attempt would take in again from the record of the run, under the
    /// same names.
    fn are_recorded(&self, steps: &[Step]) -> bool {
        self.input.is_some() && self.input.as_ref() == steps.last().map(|last| &last.id)
    }
}

impl UnderWay {
    async fn finished(&mut self) -> Written {
        let cut_off = |message: &str| CheckpointError { message: message.to_owned(), source: None };
        match self {
            Self::Nothing => Ok(()),
            Self::Failed => Err(cut_off("an earlier step was not written")),
            Self::Write(writing, awaited) => {
                awaited.notify_one();
                writing.await.unwrap_or_else(|_| Err(cut_off("a write was cut off")))
            }
        }
    }
}

impl Destination {
    /// A full disk is waited for: the run stands still and goes on by itself. Who writes by hand is told at once.
    async fn write(&self, thread: &ThreadId, steps: Arc<[Step]>, mut hold: Option<Hold>) -> Written {
        let Some((lease, tape)) = &self.run else {
            return self.store.append_steps(thread, steps.to_vec()).await.map_err(failed);
        };
        let Some(lease) = lease.get() else {
            return Err(CheckpointError { message: "the run has not begun".to_owned(), source: None });
        };
        let mut told = false;
        loop {
            let turn = tape.turn().await;
            // A step whose story is not in the log would leave a hole in it after a crash.
            let events = turn.events();
            let last = events.last().map(|event| event.id.seq);
            let progress = Progress { call: self.call.clone(), steps: Arc::clone(&steps), events };
            match self.store.append_progress(progress, lease).await {
                Ok(()) => {
                    last.into_iter().for_each(|last| turn.recorded(last));
                    return Ok(());
                }
                Err(StoreError::Full) => {
                    drop(turn);
                    // Why the run stands still must be seen.
                    drop(hold.take());
                    tape.wait_for_room(&mut told).await;
                }
                Err(error) => {
                    if matches!(error, StoreError::Lost(_)) {
                        hold.into_iter().for_each(Hold::stay);
                        self.lost.cancel();
                    }
                    return Err(failed(error));
                }
            }
        }
    }
}

#[async_trait]
impl Checkpointer for StepLog {
    async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError> {
        self.empty.store(false, Ordering::Relaxed);
        match self.durability {
            Durability::Sync if self.has_time(&steps) && self.are_recorded(&steps) => {
                self.write_behind(thread, steps, None, NOT_URGENT).await;
                Ok(())
            }
            Durability::Sync if self.has_time(&steps) => {
                // Readers are kept from what comes behind a step until it is on the disk.
                let hold = self.to.run.as_ref().map(|(_, tape)| Hold::on(tape));
                self.write_behind(thread, steps, hold, Duration::ZERO).await;
                Ok(())
            }
            Durability::Sync => {
                self.flush(thread).await?;
                self.to.write(thread, steps, None).await
            }
            Durability::Async => {
                self.write_behind(thread, steps, None, Duration::ZERO).await;
                Ok(())
            }
            Durability::Exit => {
                self.held.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&steps);
                Ok(())
            }
        }
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        match &self.to.call {
            None if at.is_none() && self.empty.load(Ordering::Relaxed) => Ok(Vec::new()),
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
        Some(Arc::new(Self::to(Arc::new(to), Durability::Sync, self.tasks.clone())))
    }
}

pub(crate) fn failed(error: StoreError) -> CheckpointError {
    CheckpointError { message: error.to_string(), source: Some(Box::new(error)) }
}
