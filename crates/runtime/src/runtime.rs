//! Runs on threads: let in, executed, followed, stopped.
//!
//! Invariant: a run that was admitted ends, in its record and on its stream, whatever happens to it or to its readers.

mod assistants;
mod branches;
mod crons;
mod deletion;
mod following;
mod history;
mod making;
mod nodes;
mod outbox;
mod parts;
mod retention;
mod telemetry;
mod threads;
mod worker;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hart_kernel::{Clock, InputIds, Timestamp};
use hart_types::{CancelAction, Durability, MultitaskStrategy, NodeId, RunId, RunStatus, ThreadId};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub(crate) use self::history::ShownStep;
use self::making::Making;
use self::nodes::Signs;
use crate::doorbell::Doorbells;
use crate::port::{Admission, AtOnce, Lease, RunEnd, Store, StoreError};
use crate::request::{AgentFactory, StartRun};
use crate::tape::{Hold, Tape};
use crate::telemetry::{Metrics, RunWatch, Traces};
use crate::to_the_end::ToTheEnd;
use crate::values::{Spelling, ValuesEncoder};
use crate::workspaces::Workspaces;
use crate::{Run, Totals};

pub use assistants::{AssistantError, assistant_id};
pub use crons::{CronError, CronRequestError, CronRequests};
pub use outbox::{ATTEMPT, Postman, Undelivered};
pub use parts::{Adopt, Parts, Settings};
pub use retention::Retention;
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
    settings: Settings,
    /// This process, as others know it.
    node: NodeId,
    /// What was last seen of the others.
    signs: Mutex<Signs>,
    /// Held by the one run at a time that may be what its processes died of.
    suspect: Arc<Semaphore>,
    /// Runs that were admitted here and whose log is still at hand.
    live: Mutex<HashMap<RunId, Arc<Live>>>,
    /// Those of them that have ended, oldest first. Taken before `live`.
    lingering: Mutex<VecDeque<RunId>>,
    /// What states look like, by thread: messages are encoded once.
    encoders: Mutex<HashMap<(ThreadId, Spelling), Arc<ValuesEncoder>>>,
    /// Tell those who follow a thread that something happens on it.
    doorbells: Arc<Doorbells>,
    /// Agents whose assistants are in the store.
    registered: Mutex<HashSet<String>>,
    /// Wakes whoever waits for the next cron.
    crons_changed: Notify,
    metrics: Arc<Metrics>,
    traces: Arc<Traces>,
    /// Wakes whoever delivers.
    letters_changed: Notify,
    tasks: TaskTracker,
    /// Shows that this process lives and forgets what is old, as long as the runtime is there.
    keeper: Mutex<JoinSet<()>>,
    closing: CancellationToken,
}

/// A run in this process.
struct Live {
    tape: Arc<Tape>,
    request: StartRun,
    start_at: Timestamp,
    cancel: CancellationToken,
    /// What a cancellation makes of what was done.
    action: Mutex<CancelAction>,
    /// By what right this process writes for it, once it executes it.
    lease: Arc<OnceLock<Lease>>,
    /// Its agent, where that was made while the run was let in.
    making: Mutex<Option<Making>>,
    /// Another process has it now.
    lost: CancellationToken,
    stage: watch::Sender<Stage>,
    known_since: Instant,
    ended_at: OnceLock<Instant>,
}

/// A run that is asked for, how it is known here, and what is asked.
type Expected = (Run, Arc<Live>, StartRun);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits or is executed in this process.
    Here,
    /// It is another process's.
    Elsewhere,
    /// Also in its record.
    Ended,
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
    #[error("the idempotency key was used for another request; a new request needs a new key")]
    KeyTaken,
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

/// How often a run of another process is looked at by whoever waits for its end.
const GLANCE: Duration = Duration::from_millis(100);

/// How long the log of a run that ended stays at hand, at least until another one ends.
const LINGER: Duration = Duration::from_secs(60);
/// How many such logs there are at most: under load a minute is many runs, and the store has them.
const LINGERING: usize = 64;

impl Runtime {
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        Self::open_with(parts, Settings::default()).await
    }

    /// Several processes may have the same store open.
    pub async fn open_with(parts: Parts, settings: Settings) -> Result<Self, StoreError> {
        let Parts { store, agents, workspaces, clock } = parts;
        let node = NodeId::generate();
        store.join(&node).await?;
        let inner = Arc::new(Inner {
            store,
            agents,
            workspaces,
            clock,
            settings,
            node,
            signs: Mutex::default(),
            suspect: Arc::new(Semaphore::new(1)),
            live: Mutex::default(),
            lingering: Mutex::default(),
            encoders: Mutex::default(),
            doorbells: Arc::default(),
            registered: Mutex::default(),
            crons_changed: Notify::new(),
            metrics: Arc::default(),
            traces: Arc::default(),
            letters_changed: Notify::new(),
            tasks: TaskTracker::new(),
            keeper: Mutex::default(),
            closing: CancellationToken::new(),
        });
        let runtime = Self { inner };
        if settings.adopt == Adopt::Everything {
            unless_full(runtime.inner.adopt_all().await)?;
        }
        unless_full(runtime.register_agents().await.map(|_| ()))?;
        let weak = Arc::downgrade(&runtime.inner);
        let mut keeper = runtime.inner.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.spawn(nodes::keep_alive(weak.clone()));
        keeper.spawn(retention::forget(weak, settings.retention));
        drop(keeper);
        Ok(runtime)
    }

    /// This process, as others know it.
    pub fn node(&self) -> &NodeId {
        &self.inner.node
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
        let expected = self.expected(request).await?;
        let runtime = self.clone();
        let starting = async move { runtime.admit_at_once(expected).await };
        // Whoever asks may go away in the middle; what was taken in by then must be executed all the same.
        ToTheEnd::new(starting.in_current_span(), &self.inner.tasks).await
    }

    /// Takes a run in and executes it when it is its turn. Where nothing is before it, that is while its admission gets
    /// to the disk: nobody is shown anything of it until then, and no effect begins.
    async fn admit_at_once(&self, (run, live, request): Expected) -> Result<Run, StartError> {
        let thread = run.thread.clone();
        let admitting = self.inner.store.admit_at_once(run.clone(), request, &self.inner.node);
        let (admitted, making) = self.inner.make_during(admitting, &run, &live).await;
        let AtOnce { admission, claimed, written } = match admitted {
            Ok(at_once) => at_once,
            Err(error) => return self.decided(run, Err(error)).await,
        };
        let hold = Hold::on(&live.tape);
        let begun = claimed.is_some();
        if begun {
            live.has_agent(making);
            self.inner.spawn_lane(thread.clone(), claimed);
        }
        if let Err(error) = written.await {
            hold.stay();
            live.lost.cancel();
            return self.decided(run, Err(error)).await;
        }
        drop(hold);
        let run = self.decided(run, Ok(admission)).await?;
        if !begun {
            self.inner.spawn_lane(thread, None);
        }
        Ok(run)
    }

    /// Takes a run in that nobody executes yet.
    async fn admit(&self, request: StartRun) -> Result<Run, StartError> {
        let (run, _, request) = self.expected(request).await?;
        let admission = self.inner.store.admit(run.clone(), request, &self.inner.node).await;
        self.decided(run, admission).await
    }

    /// A run that is about to be asked for: whoever sees it in the store can follow it here.
    async fn expected(&self, mut request: StartRun) -> Result<Expected, StartError> {
        if self.inner.closing.is_cancelled() {
            return Err(StartError::Closing);
        }
        request.withhold_secrets();
        request.input_ids = Some(InputIds::generate());
        let now = self.now();
        let thread = self.thread_for(&mut request).await?;
        if let Some(name) = &request.checkpoint
            && let Some(state) = self.inner.state_at(&thread, name).await?
        {
            request.checkpoint = Some(state.at);
        }
        let run = new_run(&request, &thread, now);
        let live = Arc::new(self.inner.live(&run, request.clone()));
        self.inner.lock_live().insert(run.id.clone(), Arc::clone(&live));
        Ok((run, live, request))
    }

    async fn decided(&self, run: Run, admission: Result<Admission, StoreError>) -> Result<Run, StartError> {
        match admission {
            Ok(Admission::Admitted { run, others }) => {
                self.make_room(&run, others).await?;
                Ok(run)
            }
            other => {
                self.inner.lock_live().remove(&run.id);
                match other? {
                    Admission::Repeated(same) => Ok(same),
                    Admission::KeyTaken => Err(StartError::KeyTaken),
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
        match self.inner.here(id) {
            Some(live) => {
                live.stop(action);
                // One that nobody executes yet ends here; the lane finds it gone.
                if run.status == RunStatus::Pending && self.inner.end_waiting(&run, &live, action).await? {
                    return Ok(());
                }
                // Whoever goes on with it after a crash must know, too. A disk that cannot take it keeps nobody from stopping.
                if let Err(error) = self.inner.store.ask_to_stop(id, action).await {
                    tracing::warn!(run = %id, %error, "that a run was told to stop is not kept");
                }
                Ok(())
            }
            None => Ok(self.inner.stop_elsewhere(&run, action).await?),
        }
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

    /// Returns when the run has ended, here, before or in another process.
    pub async fn wait(&self, id: &RunId) {
        let live = self.inner.lock_live().get(id).cloned();
        if let Some(live) = live {
            let mut stage = live.stage.subscribe();
            // An error means that the sender is gone, and the run with it.
            if let Ok(stage) = stage.wait_for(|stage| *stage != Stage::Here).await
                && *stage == Stage::Ended
            {
                return;
            }
        }
        // A store that cannot be asked now may know it in a moment.
        while !matches!(self.inner.store.run(id).await, Ok(run) if run.as_ref().is_none_or(|run| !run.status.is_active()))
        {
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Admits nothing more and gives runs until `grace` to end. Then a server leaves them to the next one, which goes on
    /// behind their last step; any other process stops them.
    pub async fn close(&self, grace: Duration) {
        self.inner.closing.cancel();
        self.inner.tasks.close();
        if tokio::time::timeout(grace, self.inner.tasks.wait()).await.is_ok() {
            return;
        }
        let Settings { adopt, resume, .. } = self.inner.settings;
        for live in self.inner.lock_live().values() {
            match adopt {
                Adopt::Everything if resume && live.may_be_resumed() => live.lost.cancel(),
                _ => live.cancel.cancel(),
            }
        }
        let _ = tokio::time::timeout(Duration::from_secs(5), self.inner.tasks.wait()).await;
    }

    /// The thread a run is on, and what that says about its runs. One that is not there is made when the run is let in.
    async fn thread_for(&self, request: &mut StartRun) -> Result<ThreadId, StartError> {
        let known = match &request.thread {
            Some(id) => self.inner.store.thread(id).await?,
            None => None,
        };
        let id = request.thread.clone().unwrap_or_else(ThreadId::generate);
        if known.is_none() && !request.makes_thread() {
            return Err(StartError::NoThread(id));
        }
        if let Some(thread) = known {
            // Its files and its memory are found by whose it is, whoever starts the run.
            request.user = thread.user;
            under(&mut request.metadata, thread.metadata);
        } else if !request.is_passing() {
            request.thread_metadata.clone_from(&request.metadata);
        }
        under(&mut request.metadata, std::mem::take(&mut request.assistant_metadata));
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

impl Live {
    fn stop(&self, action: CancelAction) {
        *self.action.lock().unwrap_or_else(PoisonError::into_inner) = action;
        self.cancel.cancel();
    }

    /// One that keeps its steps to itself until its end has nothing to go on from.
    fn may_be_resumed(&self) -> bool {
        self.request.durability != Durability::Exit
    }
}

impl Inner {
    fn watch(&self, run: &Run, agent: &str) -> RunWatch {
        RunWatch::new(
            Arc::clone(&self.metrics),
            Arc::clone(&self.traces),
            Arc::clone(&self.clock),
            run,
            agent,
        )
    }

    fn lock_live(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self, run: &Run, request: StartRun) -> Live {
        let tape =
            Tape::new(run.id.clone(), run.thread.clone(), Arc::clone(&self.store), Arc::clone(&self.clock));
        let keeps_states = request.durability == Durability::Exit;
        Live {
            tape: Arc::new(tape.keeping_states(keeps_states)),
            request,
            start_at: run.start_at,
            cancel: CancellationToken::new(),
            action: Mutex::new(CancelAction::Interrupt),
            lease: Arc::default(),
            making: Mutex::default(),
            lost: CancellationToken::new(),
            stage: watch::Sender::new(Stage::Here),
            known_since: Instant::now(),
            ended_at: OnceLock::new(),
        }
    }

    /// A run that waits or is executed in this process.
    fn here(&self, id: &RunId) -> Option<Arc<Live>> {
        let live = self.lock_live().get(id).cloned()?;
        let here = *live.stage.borrow() == Stage::Here;
        here.then_some(live)
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
        fingerprint: request.fingerprint.clone(),
    }
}

/// On a full disk there is much to read; what is to be written is tried again from time to time.
fn unless_full(done: Result<(), StoreError>) -> Result<(), StoreError> {
    match done {
        Err(StoreError::Full) => {
            // Of the disk the store tells.
            tracing::debug!("storage_full: what was left behind waits until there is space");
            Ok(())
        }
        done => done,
    }
}

/// The end of a run that was stopped before it did anything.
fn interrupted(at: Timestamp) -> RunEnd {
    RunEnd {
        status: RunStatus::Interrupted,
        error: None,
        totals: Totals::default(),
        at,
        base: None,
        values: None,
        events: Vec::new(),
    }
}
