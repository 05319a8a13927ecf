//! Recorded runs, played again: whole and without a trace, or up to a step and then on in a thread of their own.
//!
//! Invariant: the run that is played, its thread and its files stay as they are.

use std::sync::Arc;

use hart_client::{Ask, RunStream};
use hart_kernel::{
    Agent, ChatModel, ChatRequest, ChatStream, Checkpointer, Deck, ModelError, ModelErrorKind, ModelProfile,
    SystemClock, async_trait,
};
use hart_runtime::port::{Created, Store, StoreError};
use hart_runtime::recording::{Difference, Place, Played, PlayingDeck, Recordable, Reel, ReelError};
use hart_runtime::{
    Adopt, AgentFactory, AgentInfo, AgentRequest, FactoryError, Run, Runtime, StartError, StartRun, Thread,
    Workspace, Workspaces as _,
};
use hart_sandbox::{SandboxProvider as _, Snapshots};
use hart_types::{Durability, MultitaskStrategy, RunId, RunStatus, ThreadId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agents::ConfiguredAgents;
use crate::app::{OpenError, StorageError};
use crate::choice::ModelChoice;
use crate::client::follow::EmbeddedFollowing;
use crate::scratch::Scratch;
use crate::workshop::Workshop;
use crate::workspaces::ThreadFiles;
use crate::{App, ChooseError, choice, recording, wire};

/// Why a run is not played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    #[error(transparent)]
    Recording(#[from] ReelError),
    #[error("step {asked} is not one of the run's: it has {steps}")]
    NoStep { asked: u32, steps: u32 },
    #[error(transparent)]
    Model(#[from] ChooseError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the files of the thread cannot be copied: {0}")]
    Files(String),
    #[error("no temporary directory can be made")]
    Scratch(#[from] std::io::Error),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run that is being played.
#[must_use = "a run that is dropped is stopped"]
#[derive(Debug)]
pub struct Replaying {
    /// The thread it is on, as its user calls it.
    pub thread: ThreadId,
    pub run: RunId,
    /// How the recorded run ended.
    status: RunStatus,
    stream: Option<RunStream>,
    deck: Arc<PlayingDeck>,
    runtime: Runtime,
    workshop: Arc<Workshop>,
    _scratch: Option<Scratch>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    pub played: Played,
    /// Where it parted from the recording first.
    pub difference: Option<Difference>,
    /// The recorded run was stopped here, or failed: there is nothing more to play.
    pub stopped: bool,
}

impl Replaying {
    /// What it tells, as a run does that is not played; to be taken once.
    pub fn frames(&mut self) -> Option<RunStream> {
        self.stream.take()
    }

    /// Ends what still runs.
    pub async fn finish(self) -> Replayed {
        self.runtime.close(std::time::Duration::ZERO).await;
        self.workshop.sandboxes.shutdown().await;
        let (played, difference) = self.deck.played();
        let ends_here = |difference: &Difference| {
            matches!(difference.place, Place::NotRecorded | Place::ToolResult { .. })
                && self.status != RunStatus::Success
        };
        let stopped = match &difference {
            Some(difference) => ends_here(difference),
            None => self.status == RunStatus::Interrupted,
        };
        Replayed { played, difference: difference.filter(|_| !stopped), stopped }
    }
}

impl App {
    /// What was recorded of a run that has ended.
    pub async fn reel(&self, run: &RunId) -> Result<Reel, ReplayError> {
        Ok(Reel::load(self.runtime().await?.store().as_ref(), run).await?)
    }

    /// Plays a run from its recording: no model is asked, no tool is called, nothing is remembered.
    pub async fn replay(&self, run: &RunId, cancel: CancellationToken) -> Result<Replaying, ReplayError> {
        let reel = self.reel(run).await?;
        let original = reel.run.clone();
        let scratch = Scratch::new("replay")?;
        let workshop = Arc::new(self.workshop.elsewhere(scratch.path())?);
        self.copy_files(&original, &workshop).await?;
        let stand_in = reel.model().map(|model| ModelProfile::from(model.clone()));
        let start = StartRun {
            thread: Some(original.thread.clone()),
            durability: Durability::Exit,
            ..started_again(&reel)
        };
        let deck = PlayingDeck::new(reel, None, SystemClock, Arc::clone(&self.workshop.mask));
        let deck = Arc::new(deck);
        let agents = PlayedAgents::new(&workshop, Arc::clone(&deck), stand_in);
        let store = wire::passing_store()?;
        self.copy_thread(&original, original.thread.clone(), store.as_ref()).await?;
        let runtime = wire::passing_runtime(Arc::new(agents), store).await?;
        let mut replaying = begin(runtime, start, deck, workshop, cancel, original.status).await?;
        replaying._scratch = Some(scratch);
        Ok(replaying)
    }

    /// Plays a run up to step `from` (from 1) and goes on from there with `model`, or the one it had, in a new thread.
    pub async fn replay_from(
        &self,
        run: &RunId,
        from: u32,
        model: Option<&str>,
        cancel: CancellationToken,
    ) -> Result<Replaying, ReplayError> {
        let reel = self.reel(run).await?;
        let steps = reel.steps();
        if from == 0 || from > steps {
            return Err(ReplayError::NoStep { asked: from, steps });
        }
        let original = reel.run.clone();
        let thread = ThreadId::generate();
        let mut start = StartRun { thread: Some(thread.clone()), ..started_again(&reel) };
        let wanted =
            model.map(str::to_owned).or_else(|| text(&start, "model_name").or(text(&start, "model")));
        let chosen = choice::choose(&self.workshop, wanted.as_deref()).await?;
        start.options.shift_remove("model");
        start.options.insert("model_name".to_owned(), chosen.name.into());
        let deck = Arc::new(PlayingDeck::new(reel, Some(from), SystemClock, Arc::clone(&self.workshop.mask)));
        let agents =
            PlayedAgents { records: true, ..PlayedAgents::new(&self.workshop, Arc::clone(&deck), None) };
        let store = Arc::clone(self.runtime().await?.store());
        self.copy_thread(&original, thread.clone(), store.as_ref()).await?;
        let (from, to) = (workspace(&original, &original.thread), workspace(&original, &thread));
        let files = ThreadFiles::new(Arc::clone(&self.workshop.sandboxes));
        files.copy(&from, &to).await.map_err(|error| ReplayError::Files(error.to_string()))?;
        let runtime = wire::runtime_of(&self.workshop, Arc::new(agents), store, Adopt::InTheWay).await?;
        begin(runtime, start, deck, Arc::clone(&self.workshop), cancel, original.status).await
    }

    /// The thread as the run found it, under another name or in another place.
    async fn copy_thread(&self, run: &Run, name: ThreadId, to: &dyn Store) -> Result<(), ReplayError> {
        let runtime = self.runtime().await?;
        let from = runtime.store();
        let mut thread = Thread::new(name.clone(), run.user.clone(), runtime.now());
        if let Some(original) = from.thread(&run.thread).await? {
            thread.metadata = original.metadata;
            thread.metadata.shift_remove("name");
        }
        thread.metadata.insert("replay_of".to_owned(), run.id.as_str().into());
        match to.create_thread(thread).await? {
            Created::New(_) | Created::Existing(_) => {}
        }
        // A run that began its thread found nothing.
        if let Some(base) = &run.base {
            let steps = from.steps(&run.thread, Some(base)).await?;
            to.append_steps(&name, steps).await?;
        }
        Ok(())
    }

    /// What hooks may look at.
    async fn copy_files(&self, run: &Run, to: &Workshop) -> Result<(), ReplayError> {
        let dirs = |workshop: &Workshop| workshop.sandboxes.thread_dirs(&run.thread, &run.user);
        let copied = Snapshots::new(dirs(&self.workshop)).copy_to(dirs(to)).await;
        copied.map(drop).map_err(|error| ReplayError::Files(error.to_string()))
    }
}

async fn begin(
    runtime: Runtime,
    start: StartRun,
    deck: Arc<PlayingDeck>,
    workshop: Arc<Workshop>,
    cancel: CancellationToken,
    status: RunStatus,
) -> Result<Replaying, ReplayError> {
    let run = runtime.start(start).await?;
    let (thread, id) = (run.thread.clone(), run.id.clone());
    let modes = Ask::new("").without_states().modes();
    let following = EmbeddedFollowing::new(runtime.clone(), run, thread.clone(), modes);
    let stream = Some(RunStream::begun(thread.clone(), id.clone(), Box::new(following), Some(cancel)));
    Ok(Replaying { thread, run: id, status, stream, deck, runtime, workshop, _scratch: None })
}

/// What the run was asked, to be asked anew.
fn started_again(reel: &Reel) -> StartRun {
    let Run { kwargs, metadata, .. } = &reel.run;
    StartRun {
        kwargs: kwargs.clone(),
        metadata: metadata.clone(),
        multitask: MultitaskStrategy::Reject,
        create_thread: false,
        after_seconds: 0.0,
        checkpoint: None,
        idempotency_key: None,
        fingerprint: None,
        ..reel.start.clone()
    }
}

fn text(start: &StartRun, key: &str) -> Option<String> {
    start.options.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn workspace(run: &Run, thread: &ThreadId) -> Workspace {
    Workspace { thread: thread.clone(), user: run.user.clone() }
}

/// The configured agents, with a recording in the place of the world.
struct PlayedAgents {
    configured: ConfiguredAgents,
    workshop: Arc<Workshop>,
    deck: Arc<PlayingDeck>,
    /// The model that was asked, for whoever no longer has it.
    stand_in: Option<ModelProfile>,
    records: bool,
}

impl PlayedAgents {
    fn new(workshop: &Arc<Workshop>, deck: Arc<PlayingDeck>, stand_in: Option<ModelProfile>) -> Self {
        let configured = ConfiguredAgents::new(Arc::clone(workshop));
        Self { configured, workshop: Arc::clone(workshop), deck, stand_in, records: false }
    }
}

#[async_trait]
impl AgentFactory for PlayedAgents {
    fn agents(&self) -> Vec<AgentInfo> {
        self.configured.agents()
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        let stand_in = self.stand_in.clone().map(|profile| ModelChoice::given(Arc::new(StandIn { profile })));
        self.configured.build_or(request, stand_in).await
    }

    fn deck(&self, run: &Recordable<'_>) -> Option<Arc<dyn Deck>> {
        let played = Arc::clone(&self.deck) as Arc<dyn Deck>;
        let recorded = if self.records { recording::deck(&self.workshop, run) } else { None };
        Some(match recorded {
            Some(recorder) => Arc::new(recorder.over(played)),
            None => played,
        })
    }

    fn reader(&self, agent: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        self.configured.reader(agent, checkpointer)
    }
}

/// A model of which only its description is left.
struct StandIn {
    profile: ModelProfile,
}

#[async_trait]
impl ChatModel for StandIn {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(&self, _: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        let message = "it was asked when the run was recorded, and is not there now";
        Err(ModelError::new(ModelErrorKind::NotRecorded, &self.profile.name, message))
    }
}
