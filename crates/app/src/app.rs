//! The running program: a frozen configuration, its parts, and the few things one can ask of them.
//!
//! Invariant: an `App` owns all it uses; two of them in one process do not see each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hart_agent::Mode;
use hart_kernel::{
    Agent, BuildError, Checkpointer, EventSink, Interrupt, Resume, RunContext, RunError, RunInput, RunReport,
    Snapshot, State, Update,
};
use hart_models::probe::{self, Check, ProbeOptions, Profile};
use hart_runtime::Runtime;
use hart_sandbox::{SandboxError, SandboxProvider, ThreadDirs, TierReport, VPath};
use hart_tools::Artifacts;
use hart_types::{Message, RunId, ThreadId, UserId};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::agents::Order;
use crate::choice::{self, ChooseError, ModelChoice, ModelListing};
use crate::config::{AppConfig, ConfigError, LoadOptions};
use crate::doctor::{self, Finding};
use crate::extensions::Extensions;
use crate::sheet::{self, ModelSheet};
use crate::thread_log::{LockError, ThreadLock, ThreadLog};
use crate::workshop::Workshop;
use crate::{Env, home, wire};

#[derive(Debug)]
pub struct App {
    pub(crate) workshop: Arc<Workshop>,
    /// Opened when it is first needed: most commands need none.
    runtime: OnceCell<Runtime>,
    log: ThreadLog,
    user: UserId,
}

/// What one asks an agent to do.
#[derive(Clone, Debug)]
pub struct Task {
    pub input: TaskInput,
    pub thread: ThreadId,
    pub run: RunId,
    pub mode: Mode,
    /// Whether the agent keeps a list of steps; as its mode has it, without it.
    pub plan_mode: Option<bool>,
    pub model: ModelChoice,
    /// Whose thread it is.
    pub user: UserId,
    /// At most this many steps, within what the configuration allows.
    pub recursion_limit: Option<u32>,
}

/// Who a thread belongs to where nobody else is named.
pub(crate) const OWNER: &str = "default";
/// What a run starts with: words, or the answer to what the thread asked.
#[derive(Clone, Debug)]
pub enum TaskInput {
    Text(String),
    Resume(Resume),
}

impl<T: Into<String>> From<T> for TaskInput {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl From<TaskInput> for RunInput {
    fn from(input: TaskInput) -> Self {
        match input {
            TaskInput::Text(text) => Update::none().messages(Message::human(text)).into(),
            TaskInput::Resume(resume) => resume.into(),
        }
    }
}

impl Task {
    /// A task on a new thread.
    pub fn new(input: impl Into<TaskInput>, model: ModelChoice) -> Self {
        Self {
            input: input.into(),
            thread: ThreadId::generate(),
            run: RunId::generate(),
            mode: Mode::default(),
            plan_mode: None,
            model,
            user: UserId::from(OWNER),
            recursion_limit: None,
        }
    }
}

/// A file the agent handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// As the agent calls it.
    pub path: String,
    /// Where it is on this machine.
    pub host_path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the sandbox cannot be set up")]
    Sandbox(#[from] SandboxError),
    #[error("the network cannot be set up")]
    Http(#[from] hart_models::HttpError),
}

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("cannot use {}; check that the data directory is writable, or set HART_HOME to another", path.display())]
    Home {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] hart_store::OpenError),
    #[error("the runs that are remembered cannot be read")]
    Runs(#[source] hart_runtime::port::StoreError),
    #[error("opening the data directory was cut off")]
    Cut(#[source] tokio::task::JoinError),
}

/// Why a thread could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("the agent cannot be built")]
    Agent(#[from] BuildError),
    #[error(transparent)]
    Thread(#[from] RunError),
}

/// Why a task did not even start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Thread(#[from] LockError),
    #[error("the agent cannot be built")]
    Agent(#[from] BuildError),
}

/// Why a model could not be probed, or the result not be kept.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Model(#[from] ChooseError),
    #[error("the profile cannot be written to {}; set HART_HOME to a directory you may write to", home.join("models").display())]
    Save { home: PathBuf, source: std::io::Error },
}

impl App {
    pub fn open(options: LoadOptions<'_>) -> Result<Self, OpenError> {
        let env = options.env.clone();
        Self::with_config(AppConfig::load(options)?, env)
    }

    pub fn with_config(config: AppConfig, env: Env) -> Result<Self, OpenError> {
        Self::extended(config, env, Extensions::default())
    }

    pub(crate) fn extended(config: AppConfig, env: Env, extensions: Extensions) -> Result<Self, OpenError> {
        let user = UserId::from(OWNER);
        let log = ThreadLog::new(config.home.clone(), user.clone());
        let workshop = Arc::new(Workshop::new(config, env, extensions)?);
        Ok(Self { workshop, runtime: OnceCell::new(), log, user })
    }

    pub fn config(&self) -> &AppConfig {
        &self.workshop.config
    }

    /// What runs agents and remembers it. The first call opens the data directory, and makes it where there is none.
    pub async fn runtime(&self) -> Result<&Runtime, StorageError> {
        self.runtime.get_or_try_init(|| wire::runtime(&self.workshop)).await
    }

    /// The named model, or the best there is: configured, by key in the environment, on loopback, the demo.
    pub async fn choose_model(&self, name: Option<&str>) -> Result<ModelChoice, ChooseError> {
        choice::choose(&self.workshop, name).await
    }

    /// All models there are to choose from, the default first.
    pub async fn models(&self) -> Result<Vec<ModelListing>, ChooseError> {
        choice::list(&self.workshop).await
    }

    /// Everything that is in force for the named model, or for the default one.
    pub async fn model_sheet(&self, name: Option<&str>) -> Result<ModelSheet, ChooseError> {
        let (config, reason) = choice::connected(&self.workshop, name).await?;
        let Workshop { config: all, env, profiles, .. } = &*self.workshop;
        Ok(sheet::of(all, env, profiles, &config, &reason))
    }

    /// Finds out what the named model's endpoint does and keeps it for later runs. `progress` hears each result.
    pub async fn probe_model(
        &self,
        name: Option<&str>,
        context: u32,
        progress: &(dyn Fn(&Check) + Sync),
    ) -> Result<(Profile, Option<PathBuf>), ProbeError> {
        let (config, _) = choice::connected(&self.workshop, name).await?;
        let options = ProbeOptions { context, now: wire::now() };
        let http = self.workshop.calls.client(&config).map_err(ChooseError::from)?;
        let profile = probe::probe(&config, &http, options, progress).await;
        // Nothing was learnt from one that does not talk, and what was known of it may still hold.
        let path = profile.talks().then(|| self.workshop.profiles.save(&config.name, &profile)).transpose();
        let path =
            path.map_err(|source| ProbeError::Save { home: self.workshop.config.home.clone(), source })?;
        Ok((profile, path))
    }

    pub async fn doctor(&self) -> Vec<Finding> {
        doctor::examine(&self.workshop).await
    }

    /// Runs a task to its end. What happens on the way goes to `events`.
    pub async fn run(
        &self,
        task: &Task,
        events: Arc<dyn EventSink>,
        cancel: CancellationToken,
    ) -> Result<RunReport, StartError> {
        let started = self.begin(task)?;
        let cx = started.context(task, events, cancel);
        Ok(started.agent.run(task.input.clone(), &cx).await)
    }

    /// Claims the task's thread and builds its agent; all that can go wrong before the first word goes wrong here.
    pub(crate) fn begin(&self, task: &Task) -> Result<Started, StartError> {
        home::prepare(&self.workshop.config.home)
            .map_err(|source| LockError::Io { path: self.workshop.config.home.clone(), source })?;
        let lock = self.log(&task.user).lock(&task.thread)?;
        Ok(Started { agent: wire::agent(&self.workshop, &self.order(task))?, _lock: lock })
    }

    pub fn has_thread(&self, thread: &ThreadId) -> bool {
        self.log.exists(thread)
    }

    /// How commands are confined on this machine. The first call tries it out, in a few milliseconds.
    pub fn sandbox_tier(&self) -> TierReport {
        self.workshop.sandboxes.tier()
    }

    /// What a thread has come to, without running it.
    pub async fn state(&self, thread: &ThreadId) -> Result<State, StateError> {
        Ok(self.values(&self.user, thread).await?.state().clone())
    }

    pub(crate) async fn values(&self, user: &UserId, thread: &ThreadId) -> Result<Snapshot, StateError> {
        let agent = wire::agent(&self.workshop, &Order::reader(self.checkpointer(user)))?;
        Ok(agent.snapshot(agent.load(thread).await?))
    }

    /// What a thread waits to be told.
    pub async fn open_questions(&self, thread: &ThreadId) -> Result<Vec<Interrupt>, StateError> {
        Ok(self.state(thread).await?.interrupts().to_vec())
    }

    /// The files the thread has handed over so far.
    pub fn artifacts(&self, thread: &ThreadId, state: &State) -> Vec<Artifact> {
        self.artifacts_of(&self.user, thread, state)
    }

    pub(crate) fn artifacts_of(&self, user: &UserId, thread: &ThreadId, state: &State) -> Vec<Artifact> {
        let paths = state.get::<Artifacts>().map_or(&[][..], Vec::as_slice);
        let on_host = |path: &String| {
            let vpath = VPath::parse(path).ok()?;
            let host = self.workshop.sandboxes.host_path(thread, user, &vpath)?;
            Some(Artifact { path: path.clone(), host_path: host.as_path().to_owned() })
        };
        paths.iter().filter_map(on_host).collect()
    }

    /// Where the thread's files are on this machine.
    pub fn thread_dir(&self, thread: &ThreadId) -> PathBuf {
        ThreadDirs::new(&self.workshop.config.home, &self.user, thread).root().to_owned()
    }

    pub fn home(&self) -> &Path {
        &self.workshop.config.home
    }

    /// Ends what still runs.
    pub async fn close(&self) {
        if let Some(runtime) = self.runtime.get() {
            runtime.close(Duration::ZERO).await;
        }
        self.workshop.sandboxes.shutdown().await;
    }

    fn order(&self, task: &Task) -> Order {
        Order {
            model: task.model.clone(),
            mode: task.mode,
            reasoning: None,
            plan_mode: task.plan_mode,
            recursion_limit: task.recursion_limit,
            checkpointer: self.checkpointer(&task.user),
        }
    }

    /// The user's threads as files.
    pub(crate) fn log(&self, user: &UserId) -> ThreadLog {
        self.log.of(user)
    }

    /// Where the user's threads are kept.
    pub(crate) fn checkpointer(&self, user: &UserId) -> Arc<dyn Checkpointer> {
        match &self.workshop.extensions.checkpointer {
            Some(own) => Arc::clone(own),
            None => Arc::new(self.log(user)),
        }
    }
}

/// A claimed thread and the agent to run on it.
pub(crate) struct Started {
    pub(crate) agent: Agent,
    _lock: ThreadLock,
}

impl Started {
    pub(crate) fn context(
        &self,
        task: &Task,
        events: Arc<dyn EventSink>,
        cancel: CancellationToken,
    ) -> RunContext {
        let mut cx = RunContext::new(task.thread.clone()).with_events(events).with_cancel(cancel);
        cx.run_id = task.run.clone();
        cx.user_id = task.user.clone();
        cx
    }
}
