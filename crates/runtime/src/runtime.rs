//! Runs on threads: let in, executed, followed, stopped.
//!
//! Invariant: a run that was admitted ends, in its record and on its stream, whatever happens to it or to its readers.

mod assistants;
mod crons;
mod outbox;
mod threads;
mod worker;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hart_kernel::{Clock, Timestamp};
use hart_types::{CancelAction, MultitaskStrategy, RunId, RunStatus, ThreadId, ThreadStatus};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::follow::{After, Follower};
use crate::port::{Admission, Created, RunEnd, RunQuery, Store, StoreError};
use crate::request::{AgentFactory, StartRun};
use crate::tape::{Sequence, Tape};
use crate::values::ValuesEncoder;
use crate::workspaces::Workspaces;
use crate::{Failure, Run, Thread, Totals};

pub use assistants::{AssistantError, assistant_id};
pub use crons::{CronError, CronRequestError, CronRequests};
pub use outbox::{ATTEMPT, Postman, Undelivered};
pub use threads::{StateError, ThreadState};

/// A copy is the same runtime.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    agents: Arc<dyn AgentFactory>,
    workspaces: Arc<dyn Workspaces>,
    clock: Arc<dyn Clock>,
    sequence: Arc<Sequence>,
    /// Runs that were admitted here and whose log is still at hand.
    live: Mutex<HashMap<RunId, Arc<Live>>>,
    /// What states look like, by thread: messages are encoded once.
    encoders: Mutex<HashMap<ThreadId, Arc<ValuesEncoder>>>,
    /// Agents whose assistants are in the store.
    registered: Mutex<HashSet<String>>,
    /// Wakes whoever waits for the next cron.
    crons_changed: Notify,
    /// Wakes whoever delivers.
    letters_changed: Notify,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// A run in this process.
struct Live {
    tape: Arc<Tape>,
    request: StartRun,
    cancel: CancellationToken,
    /// What a cancellation makes of what was done.
    action: Mutex<CancelAction>,
    /// True once the run has ended, in its record too.
    ended: watch::Sender<bool>,
    ended_at: OnceLock<Instant>,
}

/// What a runtime is made of.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub agents: Arc<dyn AgentFactory>,
    pub workspaces: Arc<dyn Workspaces>,
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Why a run did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("Thread with ID {0} not found")]
    NoThread(ThreadId),
    #[error(
        "Thread is already running a task. Wait for it to finish or choose a different multitask strategy."
    )]
    Busy,
    #[error("the server is shutting down; try again in a moment")]
    Closing,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run could not be stopped.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    #[error("there is no run `{0}`")]
    NoRun(RunId),
    #[error("run `{run}` is not cancellable (status: {status})")]
    Ended { run: RunId, status: RunStatus },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How long the log of a run that ended stays at hand, at least until another one ends.
const LINGER: Duration = Duration::from_secs(60);

impl Runtime {
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        let last = parts.store.last_event().await?;
        let Parts { store, agents, workspaces, clock } = parts;
        let inner = Inner {
            store,
            agents,
            workspaces,
            clock,
            sequence: Arc::new(Sequence::after(last)),
            live: Mutex::default(),
            encoders: Mutex::default(),
            registered: Mutex::default(),
            crons_changed: Notify::new(),
            letters_changed: Notify::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        };
        let runtime = Self { inner: Arc::new(inner) };
        runtime.end_orphans().await?;
        runtime.register_agents().await?;
        Ok(runtime)
    }

    /// Ends the runs that an earlier process left behind, so that their threads can be used.
    async fn end_orphans(&self) -> Result<(), StoreError> {
        let left = RunQuery {
            status: vec![RunStatus::Pending, RunStatus::Running],
            limit: u64::MAX,
            ..RunQuery::default()
        };
        for run in self.inner.store.runs(&left).await? {
            tracing::warn!(run = %run.id, thread = %run.thread, "ended: its server stopped before it did");
            self.inner.store.end_run(&run.id, orphaned(self.now())).await?;
        }
        Ok(())
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub fn agents(&self) -> &Arc<dyn AgentFactory> {
        &self.inner.agents
    }

    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// How long until then, at least a moment.
    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default().max(Duration::from_millis(1))
    }

    /// Admits a run. It is on its way when this returns, whether or not anybody follows it.
    pub async fn start(&self, request: StartRun) -> Result<Run, StartError> {
        let run = self.admit(request).await?;
        self.spawn_lane(run.thread.clone());
        Ok(run)
    }

    /// Takes a run in. Nobody executes it yet.
    async fn admit(&self, mut request: StartRun) -> Result<Run, StartError> {
        if self.inner.closing.is_cancelled() {
            return Err(StartError::Closing);
        }
        let now = self.now();
        let thread = self.thread_for(&mut request, now).await?;
        let run = new_run(&request, &thread, now);
        let live = Arc::new(self.inner.live(&run, request));
        // Before it is admitted: whoever sees the run can follow it.
        self.inner.lock_live().insert(run.id.clone(), Arc::clone(&live));
        match self.inner.store.admit(run.clone()).await {
            Ok(Admission::Admitted { run, others }) => {
                self.make_room(&run, others).await?;
                Ok(run)
            }
            other => {
                self.inner.lock_live().remove(&run.id);
                match other? {
                    Admission::Repeated(same) => Ok(same),
                    _ => Err(StartError::Busy),
                }
            }
        }
    }

    /// Stops a run; returns when that is under way. See [`Runtime::wait`].
    pub async fn cancel(&self, id: &RunId, action: CancelAction) -> Result<(), CancelError> {
        let run = self.inner.store.run(id).await?.ok_or_else(|| CancelError::NoRun(id.clone()))?;
        if !run.status.is_active() {
            return Err(CancelError::Ended { run: id.clone(), status: run.status });
        }
        let live = self.inner.lock_live().get(id).cloned();
        match live {
            Some(live) => {
                *live.action.lock().unwrap_or_else(PoisonError::into_inner) = action;
                live.cancel.cancel();
                // One that nobody executes yet ends here; the lane finds it gone.
                if run.status == RunStatus::Pending {
                    self.end_pending(&run, &live, action).await?;
                }
            }
            None => {
                self.inner.store.end_run(id, interrupted(self.now())).await?;
            }
        }
        Ok(())
    }

    /// As [`Runtime::cancel`], for whoever cannot wait.
    pub fn cancel_later(&self, id: RunId, action: CancelAction) {
        let runtime = self.clone();
        self.inner.tasks.spawn(async move {
            match runtime.cancel(&id, action).await {
                Ok(()) | Err(CancelError::Ended { .. } | CancelError::NoRun(_)) => {}
                Err(CancelError::Store(error)) => {
                    tracing::error!(run = %id, %error, "a run could not be stopped")
                }
            }
        });
    }

    /// Returns when the run has ended, here or before.
    pub async fn wait(&self, id: &RunId) {
        let live = self.inner.lock_live().get(id).cloned();
        if let Some(live) = live {
            let mut ended = live.ended.subscribe();
            // An error means that the sender is gone, and the run with it.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    /// Reads a run's log.
    pub fn follow(&self, id: &RunId, after: After) -> Follower {
        let tape = self.inner.lock_live().get(id).map(|live| Arc::clone(&live.tape));
        Follower::new(id.clone(), Arc::clone(&self.inner.store), tape, after)
    }

    /// Admits nothing more, gives runs until `grace` to end, then stops them.
    pub async fn close(&self, grace: Duration) {
        self.inner.closing.cancel();
        self.inner.tasks.close();
        if tokio::time::timeout(grace, self.inner.tasks.wait()).await.is_err() {
            for live in self.inner.lock_live().values() {
                live.cancel.cancel();
            }
            let _ = tokio::time::timeout(Duration::from_secs(5), self.inner.tasks.wait()).await;
        }
    }

    /// The thread a run is on, made if the request says so.
    async fn thread_for(&self, request: &mut StartRun, now: Timestamp) -> Result<ThreadId, StartError> {
        let (id, temporary) = match &request.thread {
            Some(id) => (id.clone(), false),
            None => (ThreadId::generate(), !request.keep_thread),
        };
        let known = if request.thread.is_some() { self.inner.store.thread(&id).await? } else { None };
        if known.is_none() && request.thread.is_some() && !request.create_thread {
            return Err(StartError::NoThread(id));
        }
        let about = Map::from_iter([
            ("graph_id".to_owned(), Value::from(request.agent.as_str())),
            ("assistant_id".to_owned(), Value::from(request.assistant.as_str())),
        ]);
        match known {
            Some(thread) => {
                under(&mut request.metadata, thread.metadata.clone());
                under(&mut request.metadata, std::mem::take(&mut request.assistant_metadata));
                if about.iter().any(|(key, value)| thread.metadata.get(key) != Some(value)) {
                    let patch = crate::port::ThreadPatch { metadata: Some(about), ..Default::default() };
                    self.inner.store.patch_thread(&id, patch).await?;
                }
            }
            None => {
                under(&mut request.metadata, std::mem::take(&mut request.assistant_metadata));
                let mut thread = Thread::new(id.clone(), request.user.clone(), now);
                (thread.temporary, thread.metadata) = (temporary, about);
                if let Created::Existing(_) = self.inner.store.create_thread(thread).await? {
                    tracing::debug!(thread = %id, "made by somebody else a moment ago");
                }
            }
        }
        Ok(id)
    }

    /// What a new run's strategy means for those before it.
    async fn make_room(&self, run: &Run, others: Vec<Run>) -> Result<(), StartError> {
        let action = match run.multitask {
            MultitaskStrategy::Interrupt => CancelAction::Interrupt,
            MultitaskStrategy::Rollback => CancelAction::Rollback,
            MultitaskStrategy::Enqueue | MultitaskStrategy::Reject => return Ok(()),
        };
        for other in others {
            match self.cancel(&other.id, action).await {
                // It ended while we asked: that is what was wanted.
                Ok(()) | Err(CancelError::Ended { .. } | CancelError::NoRun(_)) => {}
                Err(CancelError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Inner {
    fn lock_live(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self, run: &Run, request: StartRun) -> Live {
        let tape = Tape::new(
            run.id.clone(),
            run.thread.clone(),
            Arc::clone(&self.sequence),
            Arc::clone(&self.clock),
        );
        Live {
            tape: Arc::new(tape),
            request,
            cancel: CancellationToken::new(),
            action: Mutex::new(CancelAction::Interrupt),
            ended: watch::Sender::new(false),
            ended_at: OnceLock::new(),
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("live", &self.inner.lock_live().len()).finish_non_exhaustive()
    }
}

/// What `map` does not say itself.
fn under(map: &mut Map<String, Value>, mut base: Map<String, Value>) {
    base.extend(std::mem::take(map));
    *map = base;
}

fn new_run(request: &StartRun, thread: &ThreadId, now: Timestamp) -> Run {
    let delay = Duration::try_from_secs_f64(request.after_seconds).unwrap_or_default();
    let mut metadata = request.metadata.clone();
    metadata.insert("graph_id".to_owned(), Value::from(request.agent.as_str()));
    metadata.insert("assistant_id".to_owned(), Value::from(request.assistant.as_str()));
    Run {
        id: RunId::generate(),
        thread: thread.clone(),
        assistant: request.assistant.clone(),
        user: request.user.clone(),
        status: RunStatus::Pending,
        metadata,
        kwargs: request.kwargs.clone(),
        multitask: request.multitask,
        created_at: now,
        updated_at: now,
        start_at: now.checked_add(delay).unwrap_or(now),
        error: None,
        totals: Totals::default(),
        base: request.checkpoint.clone(),
        idempotency_key: request.idempotency_key.clone(),
    }
}

/// The end of a run whose process is gone. What it had done is kept; what it was doing is not known.
fn orphaned(at: Timestamp) -> RunEnd {
    let message =
        "the server stopped before the run did; what was done until then is kept, send a message to go on";
    RunEnd {
        status: RunStatus::Error,
        error: Some(Failure { error: "Orphaned".to_owned(), message: message.to_owned() }),
        thread_status: ThreadStatus::Error,
        ..interrupted(at)
    }
}

/// The end of a run that was stopped before it did anything.
fn interrupted(at: Timestamp) -> RunEnd {
    RunEnd {
        status: RunStatus::Interrupted,
        error: None,
        totals: Totals::default(),
        thread_status: ThreadStatus::Idle,
        at,
        base: None,
        values: None,
    }
}
