//! What all of these tests are made of: a model of any dialect, a sandbox, a log, and an agent with the first two.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hart_agent::middleware::Sandbox;
use hart_agent::{Features, SuperAgent};
use hart_kernel::{
    Agent, ChatModel, CheckpointError, Checkpointer, RunContext, RunReport, Step, Update, async_trait,
};
use hart_models::{ModelConfig, ModelEntry};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_testkit::{Dialect, ModelServer, Turn};
use hart_types::{CheckpointId, Message, ThreadId};
use tempfile::TempDir;

pub(crate) const DIALECTS: [Dialect; 5] =
    [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses, Dialect::Gemini, Dialect::Ollama];

/// A model that is `server`, spoken to in `dialect`.
pub(crate) fn model(server: &ModelServer, dialect: Dialect) -> Arc<dyn ChatModel> {
    model_with(server, dialect, |_| {})
}

pub(crate) fn model_with(
    server: &ModelServer,
    dialect: Dialect,
    change: impl FnOnce(&mut ModelEntry),
) -> Arc<dyn ChatModel> {
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

/// Files and commands below `home`.
pub(crate) fn sandbox(home: &Path) -> Sandbox {
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.into(), None).unwrap();
    Sandbox::new(Arc::new(provider), SandboxConfig::default())
}

/// Where the files of the thread `t1` are, which all of these tests talk in.
pub(crate) fn files(home: &Path) -> PathBuf {
    home.join("users/default/threads/t1/user-data")
}

pub(crate) struct World {
    pub(crate) server: ModelServer,
    pub(crate) agent: Agent,
    /// Where the thread's files are.
    pub(crate) files: PathBuf,
    _home: TempDir,
}

impl World {
    pub(crate) async fn new(dialect: Dialect, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(dialect, turns, Features::default()).await
    }

    pub(crate) async fn with(
        dialect: Dialect,
        turns: impl IntoIterator<Item = Turn>,
        features: Features,
    ) -> Self {
        let server = ModelServer::start().await;
        server.push_all(turns);
        let home = tempfile::tempdir().unwrap();
        let builder = SuperAgent::builder(model(&server, dialect)).features(features);
        let agent = builder.sandbox(sandbox(home.path())).build().unwrap();
        Self { server, agent, files: files(home.path()), _home: home }
    }

    pub(crate) async fn ask(&self, text: &str) -> RunReport {
        let cx = RunContext::new(ThreadId::from("t1"));
        self.agent.run(Update::none().messages(Message::human(text)), &cx).await
    }
}

/// Threads' logs as files would keep them: what cannot be written and read again is not there.
#[derive(Clone, Default)]
pub(crate) struct MemoryLog(Arc<Mutex<HashMap<ThreadId, Vec<Step>>>>);

/// The steps inside a call of a thread, beside those of the thread.
struct InsideLog(MemoryLog, String);

#[async_trait]
impl Checkpointer for InsideLog {
    async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError> {
        self.0.append(&format!("{thread}/{}", self.1).into(), steps).await
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        self.0.load(&format!("{thread}/{}", self.1).into(), at).await
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

#[async_trait]
impl Checkpointer for MemoryLog {
    async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError> {
        let json = serde_json::to_string(&steps).unwrap();
        let steps: Vec<Step> = serde_json::from_str(&json).unwrap();
        self.0.lock().unwrap().entry(thread.clone()).or_default().extend_from_slice(&steps);
        Ok(())
    }

    async fn load(&self, thread: &ThreadId, _: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        Ok(self.0.lock().unwrap().get(thread).cloned().unwrap_or_default())
    }

    fn inside(&self, call: &str) -> Option<Arc<dyn Checkpointer>> {
        Some(Arc::new(InsideLog(self.clone(), call.to_owned())))
    }
}
