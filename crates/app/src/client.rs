//! The embedded client: an agent in this process, asked by function call.
//!
//! Invariant: a client owns all it uses; two of them in one process do not see each other. It goes the way that the
//! command line goes, through [`App`].

mod ask;
mod builder;
mod error;
mod event;
mod stream;
mod threads;

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use hart_kernel::{EventSink, Interrupt, Resume, RunInput, Snapshot};
use hart_types::{Body, RunId, ThreadId, UsageMetadata, UserId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use ask::Ask;
pub use builder::ClientBuilder;
pub use error::ClientError;
pub use event::{End, Event};
pub use stream::EventStream;
pub use threads::{ThreadState, ThreadSummary};

use crate::agents::Order;
use crate::app::{Started, Task};
use crate::config::AppConfig;
use crate::thread_log::{ThreadLog, blocking};
use crate::{App, Artifact, ChooseError, ModelChoice, ModelListing, demo};
use event::Teller;

/// So many events wait for a slow reader before the run waits too.
const BUFFER: usize = 256;

#[doc = include_str!("client/usages.md")]
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    user: UserId,
}

/// What copies of a client have in common.
struct Shared {
    app: App,
    runs: TaskTracker,
    /// Cancels every run.
    closing: CancellationToken,
}

/// What came of a question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The agent's last words, or its question where it asked one.
    pub text: String,
    pub thread: ThreadId,
    pub run: RunId,
    /// The name of the model that worked.
    pub model: String,
    /// Of all model calls of the run.
    pub usage: UsageMetadata,
    /// All files the thread has handed over so far.
    pub artifacts: Vec<Artifact>,
    /// The state that was reached.
    pub values: Snapshot,
}

impl Answer {
    /// What the thread waits to be told before it goes on; empty unless the run paused.
    pub fn interrupts(&self) -> &[Interrupt] {
        self.values.interrupts()
    }
}

impl Client {
    /// As `hart` would be in this directory: `config.yaml` if there is one, the environment's keys, data in `.hart`.
    pub fn new() -> Result<Self, ClientError> {
        Self::builder().build()
    }

    /// As [`Client::new`], changed by whatever is called on it.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    fn open(app: App, user: UserId) -> Result<Self, ClientError> {
        // An agent that cannot be built is told of now, not at the first question.
        crate::wire::agent(&app.workshop, &Order::reader(app.checkpointer(&user)))?;
        let shared = Shared { app, runs: TaskTracker::new(), closing: CancellationToken::new() };
        Ok(Self { shared: Arc::new(shared), user })
    }

    /// The same client for somebody else, with threads of their own.
    #[must_use]
    pub fn for_user(&self, user: impl Into<UserId>) -> Self {
        Self { shared: Arc::clone(&self.shared), user: user.into() }
    }

    /// Asks, and waits for the answer's text. A run that pauses is [`ClientError::Paused`].
    pub async fn chat(&self, ask: impl Into<Ask>) -> Result<String, ClientError> {
        let answer = self.ask(ask).await?;
        match answer.interrupts() {
            [] => Ok(answer.text),
            _ => Err(ClientError::Paused { thread: answer.thread }),
        }
    }

    /// Asks, and waits for all that comes of it. Dropping the future cancels the run.
    pub async fn ask(&self, ask: impl Into<Ask>) -> Result<Answer, ClientError> {
        let mut events = self.stream(ask).await?;
        while let Some(event) = events.next().await {
            if let Event::End(End { usage, values, .. }) = event? {
                let EventStream { thread, run, model, .. } = &events;
                return Ok(Answer {
                    text: last_words(&values),
                    artifacts: self.shared.app.artifacts_of(&self.user, thread, values.state()),
                    thread: thread.clone(),
                    run: run.clone(),
                    model: model.clone(),
                    usage,
                    values,
                });
            }
        }
        Err(ClientError::Dropped)
    }

    /// Answers what a paused thread asked, and waits for what comes of it.
    pub async fn resume(&self, thread: impl Into<ThreadId>, answer: Resume) -> Result<Answer, ClientError> {
        self.ask(Ask::resume(thread, answer)).await
    }

    /// Asks, and tells what happens as it happens. The run goes on whether or not it is read; dropping the stream
    /// cancels it.
    pub async fn stream(&self, ask: impl Into<Ask>) -> Result<EventStream, ClientError> {
        if self.shared.closing.is_cancelled() {
            return Err(ClientError::Closed);
        }
        let ask: Ask = ask.into();
        let model = self.choose(ask.model.as_deref()).await?;
        let mut task = Task::new("", model);
        task.thread = ask.thread.unwrap_or(task.thread);
        task.user = self.user.clone();
        task.mode = ask.mode;
        task.plan_mode = ask.plan_mode;
        task.recursion_limit = ask.recursion_limit;
        let started = self.shared.app.begin(&task)?;

        let stop = self.shared.closing.child_token();
        let (channel, events) = mpsc::channel(BUFFER);
        // The end is told even to a reader that is far behind.
        let last = channel.clone().try_reserve_owned().map_err(|_| ClientError::Dropped)?;
        let teller = Arc::new(Teller::new(channel, stop.clone()));
        let stream = EventStream {
            thread: task.thread.clone(),
            run: task.run.clone(),
            model: task.model.name.clone(),
            events,
            over: false,
            _cancels: stop.clone().drop_guard(),
        };
        let (shared, input, outer) =
            (Arc::clone(&self.shared), ask.words.into(), ask.cancel.unwrap_or_default());
        self.shared.runs.spawn(async move {
            last.send(run(started, &task, input, &teller, stop, outer).await);
            // The sandboxes live as long as the run, whatever becomes of the client.
            drop(shared);
        });
        Ok(stream)
    }

    /// The newest `limit` threads of this user, the one that was used last first.
    pub async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, ClientError> {
        let log = self.own_log("list")?;
        let path = self.shared.app.home().to_owned();
        blocking(move || threads::newest(&log, limit))
            .await
            .map_err(|source| ClientError::Storage { path, source })
    }

    /// What a thread has come to.
    pub async fn thread(&self, id: impl Into<ThreadId>) -> Result<ThreadState, ClientError> {
        let id = id.into();
        let values = self.shared.app.values(&self.user, &id).await?;
        // One that was claimed, but in which nobody has said anything, is none.
        if values.state().messages().is_empty() {
            return Err(ClientError::NoThread(id));
        }
        Ok(ThreadState { id, values })
    }

    /// Deletes a thread with its files.
    pub async fn delete_thread(&self, id: impl Into<ThreadId>) -> Result<(), ClientError> {
        let id = id.into();
        let log = self.own_log("delete")?;
        if !log.exists(&id) {
            return Err(ClientError::NoThread(id));
        }
        let lock = log.lock(&id)?;
        let path = self.shared.app.home().to_owned();
        blocking(move || log.delete(&id, &lock)).await.map_err(|source| ClientError::Storage { path, source })
    }

    /// The files a thread has handed over so far.
    pub async fn artifacts(&self, thread: impl Into<ThreadId>) -> Result<Vec<Artifact>, ClientError> {
        let ThreadState { id, values } = self.thread(thread).await?;
        Ok(self.shared.app.artifacts_of(&self.user, &id, values.state()))
    }

    /// The models there are to choose from, the default first.
    pub async fn models(&self) -> Result<Vec<ModelListing>, ClientError> {
        Ok(self.shared.app.models().await?)
    }

    pub async fn model(&self, name: &str) -> Result<ModelListing, ClientError> {
        let all = self.models().await?;
        let known = || all.iter().map(|model| model.name.clone()).collect();
        let found = all.iter().find(|model| model.name == name).cloned();
        found.ok_or_else(|| ChooseError::Unknown { name: name.to_owned(), known: known() }.into())
    }

    /// What is in force: the parameters over the file over the defaults.
    pub fn config(&self) -> &AppConfig {
        self.shared.app.config()
    }

    /// Cancels what runs, waits until it has unwound, and ends what it started. Copies of the client are closed too.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        self.shared.runs.close();
        self.shared.runs.wait().await;
        self.shared.app.close().await;
    }

    /// A recording is never passed off as a model's answer: whoever wants it asks for it.
    async fn choose(&self, name: Option<&str>) -> Result<ModelChoice, ClientError> {
        let model = self.shared.app.choose_model(name).await?;
        if model.is_demo() && name != Some(demo::NAME) { Err(ClientError::NoModel) } else { Ok(model) }
    }

    fn own_log(&self, wanted: &'static str) -> Result<ThreadLog, ClientError> {
        match self.shared.app.workshop.extensions.checkpointer {
            Some(_) => Err(ClientError::ForeignThreads(wanted)),
            None => Ok(self.shared.app.log(&self.user)),
        }
    }
}

/// To the end, however it comes; `outer` is the caller's own token.
async fn run(
    started: Started,
    task: &Task,
    input: RunInput,
    teller: &Arc<Teller>,
    stop: CancellationToken,
    outer: CancellationToken,
) -> Result<Event, ClientError> {
    let cx = started.context(task, Arc::clone(teller) as Arc<dyn EventSink>, stop.clone());
    let mut running = std::pin::pin!(started.agent.run(input, &cx));
    let report = tokio::select! {
        biased;
        report = &mut running => report,
        () = outer.cancelled() => {
            stop.cancel();
            running.await
        }
    };
    Ok(Event::End(End { ended: report.outcome?, usage: teller.usage(), values: report.values }))
}

/// What the agent said last; a run that ends with a tool's result ends with a question.
fn last_words(values: &Snapshot) -> String {
    let last = values.state().messages().last();
    let spoken = last.filter(|message| matches!(message.body, Body::Ai(_) | Body::Tool(_)));
    spoken.map(|message| message.text()).unwrap_or_default()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("user", &self.user)
            .field("config", self.config())
            .finish_non_exhaustive()
    }
}
