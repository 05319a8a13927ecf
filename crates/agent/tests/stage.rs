//! An agent with everything a test may want to set: the day, the model's eyes, the thread's memory.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hart_agent::middleware::Sandbox;
use hart_agent::{SuperAgent, SuperAgentBuilder};
use hart_kernel::{
    Agent, CheckpointError, Checkpointer, Clock, RunContext, RunInput, RunReport, Step, TimeZone, Timestamp,
    Update, async_trait,
};
use hart_models::{ModelConfig, ModelEntry};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::{CheckpointId, Message, ThreadId};
use tempfile::TempDir;

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
        let model = self::model(&server, dialect, model);
        let home = tempfile::tempdir().unwrap();
        let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None).unwrap();
        let sandbox = Sandbox::new(Arc::new(provider), SandboxConfig::default());
        let log = Arc::new(MemoryLog::default());
        let builder = SuperAgent::builder(model).checkpointer(log.clone());
        let agent = agent(builder).sandbox(sandbox).build().unwrap();
        let files = home.path().join("users/default/threads/t1/user-data");
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

pub(crate) fn model(
    server: &ModelServer,
    dialect: Dialect,
    change: impl FnOnce(&mut ModelEntry),
) -> Arc<dyn hart_kernel::ChatModel> {
    let (provider, base_url) = match dialect {
        Dialect::OpenAi | Dialect::Responses => ("openai-compatible", server.openai_base()),
        Dialect::Anthropic => ("anthropic", server.anthropic_base()),
        Dialect::Gemini => ("gemini", server.gemini_base()),
        Dialect::Ollama => ("ollama", server.ollama_base()),
    };
    let mut entry = ModelEntry {
        name: "test".into(),
        provider: provider.into(),
        model: "m".into(),
        base_url: Some(base_url),
        api_key: Some("k".into()),
        use_responses_api: Some(dialect == Dialect::Responses).filter(|yes| *yes),
        ..ModelEntry::default()
    };
    change(&mut entry);
    let config = ModelConfig::resolve(entry, &|_| None).unwrap();
    hart_models::build(&config, &hart_models::http::client().unwrap())
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

#[derive(Default)]
pub(crate) struct MemoryLog(pub(crate) Mutex<HashMap<ThreadId, Vec<Step>>>);

#[async_trait]
impl Checkpointer for MemoryLog {
    async fn append(&self, thread: &ThreadId, steps: Vec<Step>) -> Result<(), CheckpointError> {
        self.0.lock().unwrap().entry(thread.clone()).or_default().extend(steps);
        Ok(())
    }

    async fn load(&self, thread: &ThreadId, _: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        Ok(self.0.lock().unwrap().get(thread).cloned().unwrap_or_default())
    }
}

impl MemoryLog {
    /// All that is written down, as one text.
    pub(crate) fn text(&self) -> String {
        let steps = self.0.lock().unwrap();
        let writes = steps.values().flatten().flat_map(|step| &step.writes);
        writes.map(|write| serde_json::to_string(write).unwrap()).collect()
    }
}
