//! The embedded client: an agent in this process, asked by function call.
//!
//! Invariant: a client owns all it uses; two of them in one process do not see each other. It goes the way that a
//! server's clients go, through the runtime, and reads the frames they read.

mod builder;
mod error;
pub(crate) mod follow;
mod threads;

use std::fmt;
use std::sync::Arc;

use hart_client::{
    Answer, Artifact, Ask, Client as AskedClient, ClientError, EventStream, Location, ModelInfo, RunInfo,
    RunStream, ThreadState, ThreadSummary, Words, async_trait, id_of,
};
use hart_gateway::FileError;
use hart_runtime::port::{Created, RunQuery, Sign};
use hart_runtime::{Input, Run, Runtime, StartError, StartRun, Thread, Workspace};
use hart_sandbox::VPath;
use hart_types::{CancelAction, MultitaskStrategy, Resume, RunId, ThreadId, UserId};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub use builder::ClientBuilder;
pub use error::SetupError;

use crate::agents::{LEAD_AGENT, Order};
use crate::app::OWNER;
use crate::config::AppConfig;
use crate::{App, ChooseError, demo, house, wire};
use error::{of_assistant, of_cancel, of_choice, of_start, of_store};
use follow::EmbeddedFollowing;

#[doc = include_str!("client/usages.md")]
#[derive(Clone)]
pub struct Client {
    app: Arc<App>,
    user: UserId,
    /// Shared by all copies.
    closed: CancellationToken,
}

impl Client {
    /// As `hart` would be in this directory: `config.yaml` if there is one, the environment's keys, data in `.hart`.
    pub fn new() -> Result<Self, SetupError> {
        Self::builder().build()
    }

    /// As [`Client::new`], changed by whatever is called on it.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Asks what an app runs.
    pub fn of(app: Arc<App>) -> Self {
        Self { app, user: UserId::from(OWNER), closed: CancellationToken::new() }
    }

    fn open(app: App, user: UserId) -> Result<Self, SetupError> {
        // An agent that cannot be built is told of now, not at the first question.
        wire::agent(&app.workshop, &Order::reader(None))?;
        Ok(Self { user, ..Self::of(Arc::new(app)) })
    }

    /// The same client for somebody else, with threads of their own.
    #[must_use]
    pub fn for_user(&self, user: impl Into<UserId>) -> Self {
        Self { user: user.into(), ..self.clone() }
    }

    /// Asks, and waits for the answer's text. A run that pauses is [`ClientError::Paused`].
    pub async fn chat(&self, ask: impl Into<Ask>) -> Result<String, ClientError> {
        AskedClient::chat(self, ask.into()).await
    }

    /// Asks, and waits for all that comes of it. Dropping the future cancels the run.
    pub async fn ask(&self, ask: impl Into<Ask>) -> Result<Answer, ClientError> {
        AskedClient::ask(self, ask.into()).await
    }

    /// Answers what a paused thread asked, and waits for what comes of it.
    pub async fn resume(&self, thread: impl Into<ThreadId>, answer: Resume) -> Result<Answer, ClientError> {
        AskedClient::resume(self, &thread.into(), answer).await
    }

    /// Asks, and tells what happens as it happens. The run goes on whether or not it is read; dropping the stream
    /// cancels it.
    pub async fn stream(&self, ask: impl Into<Ask>) -> Result<EventStream, ClientError> {
        AskedClient::stream(self, ask.into()).await
    }

    /// The newest `limit` threads of this user, the one that was used last first.
    pub async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, ClientError> {
        AskedClient::threads(self, limit).await
    }

    /// What a thread has come to.
    pub async fn thread(&self, id: impl Into<ThreadId>) -> Result<ThreadState, ClientError> {
        AskedClient::thread(self, &id.into()).await
    }

    /// Stops what runs on a thread, and deletes it with its files.
    pub async fn delete_thread(&self, id: impl Into<ThreadId>) -> Result<(), ClientError> {
        AskedClient::delete_thread(self, &id.into()).await
    }

    /// The files a thread has handed over so far.
    pub async fn artifacts(&self, thread: impl Into<ThreadId>) -> Result<Vec<Artifact>, ClientError> {
        AskedClient::artifacts(self, &thread.into()).await
    }

    /// The models there are to choose from, the default first.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, ClientError> {
        AskedClient::models(self).await
    }

    pub async fn model(&self, name: &str) -> Result<ModelInfo, ClientError> {
        let all = self.models().await?;
        let known = || all.iter().map(|model| model.name.clone()).collect();
        let found = all.iter().find(|model| model.name == name).cloned();
        found.ok_or_else(|| of_choice(ChooseError::Unknown { name: name.to_owned(), known: known() }))
    }

    /// What is in force: the parameters over the file over the defaults.
    pub fn config(&self) -> &AppConfig {
        self.app.config()
    }

    /// Cancels what runs, waits until it has unwound, and ends what it started. Copies of the client are closed too.
    pub async fn close(&self) {
        self.closed.cancel();
        self.app.close().await;
    }

    async fn runtime(&self) -> Result<&Runtime, ClientError> {
        if self.closed.is_cancelled() {
            return Err(ClientError::Closed);
        }
        Ok(self.app.runtime().await?)
    }

    /// A recording is never passed off as a model's answer: whoever wants it asks for it.
    async fn choose(&self, named: Option<&str>) -> Result<String, ClientError> {
        let model = self.app.choose_model(named).await.map_err(of_choice)?;
        if model.is_demo() && named != Some(demo::NAME) { Err(ClientError::NoModel) } else { Ok(model.name) }
    }

    /// The user's own thread; another's is none.
    async fn own(&self, runtime: &Runtime, name: &ThreadId) -> Result<Thread, ClientError> {
        let (id, _) = id_of(&self.user, name);
        let row = runtime.store().thread(&id).await.map_err(of_store)?;
        row.filter(|row| row.user == self.user).ok_or_else(|| ClientError::NoThread(name.clone()))
    }

    async fn own_run(&self, runtime: &Runtime, id: &RunId) -> Result<Run, ClientError> {
        let run = runtime.store().run(id).await.map_err(of_store)?;
        run.filter(|run| run.user == self.user).ok_or_else(|| ClientError::NoRun(id.clone()))
    }

    /// Notes the name that a thread goes by, before anything happens on it.
    async fn name(
        &self,
        runtime: &Runtime,
        id: &ThreadId,
        named: Map<String, Value>,
    ) -> Result<(), ClientError> {
        let mut row = Thread::new(id.clone(), self.user.clone(), runtime.now());
        row.metadata = named;
        match runtime.store().create_thread(row).await.map_err(of_store)? {
            Created::New(_) | Created::Existing(_) => Ok(()),
        }
    }
}

#[async_trait]
impl AskedClient for Client {
    async fn start(&self, ask: Ask) -> Result<RunStream, ClientError> {
        let runtime = self.runtime().await?;
        let name = ask.thread.clone().unwrap_or_else(ThreadId::generate);
        let (id, named) = id_of(&self.user, &name);
        if runtime.store().thread(&id).await.map_err(of_store)?.is_some_and(|row| row.user != self.user) {
            return Err(ClientError::NoThread(name));
        }
        if let Some(named) = named.filter(|_| ask.may_begin()) {
            self.name(runtime, &id, named).await?;
        }
        let agent = ask.agent.as_deref().unwrap_or(LEAD_AGENT);
        let assistant = runtime.assistant(agent).await.map_err(|error| of_assistant(error, agent))?;
        let input = match &ask.words {
            Words::Say(_) => Input::Values(ask.input().unwrap_or_default()),
            Words::Answer(answer) => Input::Resume { answer: answer.clone().into_json(), update: Map::new() },
        };
        let mut start = StartRun::of(&assistant, input);
        start.thread = Some(id);
        start.user = self.user.clone();
        start.options.extend(ask.options.clone());
        // Before the run begins: whoever asks is told at once what cannot be had.
        let named = ["model_name", "model"].iter().find_map(|key| start.options.get(*key)?.as_str());
        let own = self.app.model_of_agent(agent);
        self.choose(named.filter(|name| !name.is_empty()).or(own.as_deref())).await?;
        start.recursion_limit = ask.recursion_limit.or(start.recursion_limit);
        start.multitask = MultitaskStrategy::Reject;
        start.create_thread = ask.may_begin();
        start.late_answers = false;
        start.kwargs = kwargs(&ask);
        let run = begin(runtime, start).await.map_err(|error| of_start(error, &name))?;
        let (id, modes) = (run.id.clone(), ask.modes());
        let following = EmbeddedFollowing::new(runtime.clone(), run, name.clone(), modes);
        Ok(RunStream::begun(name, id, Box::new(following), ask.cancel))
    }

    async fn join(&self, run: &RunId) -> Result<RunStream, ClientError> {
        let runtime = self.runtime().await?;
        let found = self.own_run(runtime, run).await?;
        let (thread, modes) = (found.thread.clone(), Ask::new("").modes());
        let following = EmbeddedFollowing::new(runtime.clone(), found, thread.clone(), modes);
        Ok(RunStream::joined(thread, run.clone(), Box::new(following)))
    }

    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, ClientError> {
        threads::newest(self.runtime().await?, &self.user, limit).await
    }

    async fn thread(&self, id: &ThreadId) -> Result<ThreadState, ClientError> {
        let runtime = self.runtime().await?;
        let row = self.own(runtime, id).await?;
        threads::state(runtime, &row.id, id).await
    }

    async fn delete_thread(&self, id: &ThreadId) -> Result<(), ClientError> {
        let runtime = self.runtime().await?;
        let row = self.own(runtime, id).await?;
        runtime.delete_thread(&row.id).await.map(drop).map_err(of_store)
    }

    async fn runs(&self, thread: Option<&ThreadId>, limit: usize) -> Result<Vec<RunInfo>, ClientError> {
        let runtime = self.runtime().await?;
        let thread = match thread {
            Some(thread) => Some(self.own(runtime, thread).await?.id),
            None => None,
        };
        let mut found: Vec<Run> = Vec::new();
        let mut query = RunQuery { thread, limit: PAGE, ..RunQuery::default() };
        while found.len() < limit {
            let page = runtime.store().runs(&query).await.map_err(of_store)?;
            let last = (page.len() as u64) < PAGE;
            found.extend(page.into_iter().filter(|run| run.user == self.user));
            query.offset += PAGE;
            if last {
                break;
            }
        }
        found.truncate(limit);
        threads::run_infos(runtime, &self.user, &found).await
    }

    async fn run(&self, id: &RunId) -> Result<RunInfo, ClientError> {
        let runtime = self.runtime().await?;
        let mut told = threads::run_infos(runtime, &self.user, &[self.own_run(runtime, id).await?]).await?;
        told.pop().ok_or_else(|| ClientError::NoRun(id.clone()))
    }

    async fn cancel(&self, run: &RunId) -> Result<(), ClientError> {
        let runtime = self.runtime().await?;
        self.own_run(runtime, run).await?;
        if let Err(error) = runtime.cancel(run, CancelAction::Interrupt).await
            && let Some(error) = of_cancel(error)
        {
            return Err(error);
        }
        runtime.wait(run).await;
        Ok(())
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ClientError> {
        house::models(&self.app.workshop).await.map_err(of_choice)
    }

    async fn artifacts(&self, thread: &ThreadId) -> Result<Vec<Artifact>, ClientError> {
        let paths = AskedClient::thread(self, thread).await?.values.artifacts();
        Ok(paths.iter().filter_map(|path| self.locate(thread, path)).collect())
    }

    async fn artifact(&self, thread: &ThreadId, path: &str) -> Result<Vec<u8>, ClientError> {
        let row = self.own(self.runtime().await?, thread).await?;
        let of = Workspace { thread: row.id, user: row.user };
        house::file(&self.app.workshop, &of, path).await.map_err(|error| match error {
            FileError::NotFound => ClientError::NoFile(path.to_owned()),
            error => ClientError::Other(Box::new(error)),
        })
    }

    fn locate(&self, thread: &ThreadId, path: &str) -> Option<Artifact> {
        let (id, _) = id_of(&self.user, thread);
        let host = self.app.workshop.sandboxes.host_path(&id, &self.user, &VPath::parse(path).ok()?)?;
        Some(Artifact::new(path, Location::File(host.as_path().to_owned())))
    }
}

/// A thread is not busy with a run whose process was killed: that one is stopped, and what it did stays.
async fn begin(runtime: &Runtime, mut start: StartRun) -> Result<Run, StartError> {
    let thread = start.thread.clone();
    match runtime.start(start.clone()).await {
        Err(StartError::Busy) => {
            let holdings = runtime.store().holdings(thread.as_ref()).await?;
            if !holdings.iter().all(|holding| holding.sign == Sign::Gone) {
                return Err(StartError::Busy);
            }
            start.multitask = MultitaskStrategy::Interrupt;
            runtime.start(start).await
        }
        started => started,
    }
}

/// How many runs are read at once.
const PAGE: u64 = 200;

/// What others are told that the run was asked with.
fn kwargs(ask: &Ask) -> Map<String, Value> {
    let resume = match &ask.words {
        Words::Say(_) => Value::Null,
        Words::Answer(answer) => json!({"resume": answer.clone().into_json()}),
    };
    let pairs = [
        ("input", json!(ask.input())),
        ("command", resume),
        ("context", Value::Object(ask.options.clone())),
        ("stream_mode", json!(ask.modes())),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("user", &self.user)
            .field("config", self.config())
            .finish_non_exhaustive()
    }
}
