//! An agent with everything a test may want to set: the day, the model's eyes, the thread's memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hart_agent::{SuperAgent, SuperAgentBuilder};
use hart_kernel::{Agent, Clock, RunContext, RunInput, RunReport, TimeZone, Timestamp, Update};
use hart_models::ModelEntry;
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::{Message, ThreadId};
use tempfile::TempDir;

use crate::support::{MemoryLog, files, model_with, sandbox};

pub(crate) struct Stage {
    pub(crate) server: ModelServer,
    pub(crate) agent: Agent,
    pub(crate) log: Arc<MemoryLog>,
    /// Where the thread's files are.
    pub(crate) files: PathBuf,
    clock: Arc<Day>,
    _home: TempDir,
}

/// A Sunday, in Berlin.
pub(crate) const SUNDAY: &str = "2026-11-15T12:00:00Z";

impl Stage {
    pub(crate) async fn new(dialect: Dialect, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(dialect, turns, |_| {}, |builder| builder).await
    }

    /// With plan mode and a model that sees: everything on.
    pub(crate) async fn full(dialect: Dialect, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(dialect, turns, sees, |builder| builder.plan_mode(true)).await
    }

    pub(crate) async fn with(
        dialect: Dialect,
        turns: impl IntoIterator<Item = Turn>,
        model: impl FnOnce(&mut ModelEntry),
        agent: impl FnOnce(SuperAgentBuilder) -> SuperAgentBuilder,
    ) -> Self {
        let server = ModelServer::start().await;
        server.push_all(turns);
        let home = tempfile::tempdir().unwrap();
        let log = Arc::new(MemoryLog::default());
        let builder = SuperAgent::builder(model_with(&server, dialect, model)).checkpointer(log.clone());
        let agent = agent(builder).sandbox(sandbox(home.path())).build().unwrap();
        let files = files(home.path());
        let clock = Arc::new(Day(Mutex::new(SUNDAY.parse().unwrap())));
        Self { server, agent, log, files, clock, _home: home }
    }

    pub(crate) async fn ask(&self, text: &str) -> RunReport {
        self.run(Update::none().messages(Message::human(text))).await
    }

    pub(crate) async fn run(&self, input: impl Into<RunInput>) -> RunReport {
        let mut cx = RunContext::new(ThreadId::from("t1"));
        cx.clock = self.clock.clone();
        self.agent.run(input, &cx).await
    }

    pub(crate) fn set_time(&self, time: &str) {
        *self.clock.0.lock().unwrap() = time.parse().unwrap();
    }

    /// A clock that tests move while the agent runs.
    pub(crate) fn clock(&self) -> Arc<Day> {
        self.clock.clone()
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.files.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        self.server.requests()
    }
}

pub(crate) fn sees(entry: &mut ModelEntry) {
    entry.supports_vision = Some(true);
}

pub(crate) struct Day(pub(crate) Mutex<Timestamp>);

impl Clock for Day {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    fn time_zone(&self) -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }
}
