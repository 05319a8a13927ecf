//! An agent with a scripted model over HTTP and a sandbox in a temporary folder.

use std::path::PathBuf;
use std::sync::Arc;

use hart_agent::middleware::Sandbox;
use hart_agent::{Features, SuperAgent};
use hart_kernel::{Agent, RunContext, RunReport, Update};
use hart_models::{ModelConfig, ModelEntry};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_testkit::{Dialect, ModelServer, Turn};
use hart_types::{Message, ThreadId};
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) server: ModelServer,
    pub(crate) agent: Agent,
    /// Where the thread's files are.
    pub(crate) files: PathBuf,
    _home: TempDir,
}

pub(crate) const DIALECTS: [Dialect; 5] =
    [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses, Dialect::Gemini, Dialect::Ollama];

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
        let (provider, base_url) = match dialect {
            Dialect::OpenAi | Dialect::Responses => ("openai-compatible", server.openai_base()),
            Dialect::Anthropic => ("anthropic", server.anthropic_base()),
            Dialect::Gemini => ("gemini", server.gemini_base()),
            Dialect::Ollama => ("ollama", server.ollama_base()),
        };
        let entry = ModelEntry {
            name: "test".into(),
            provider: provider.into(),
            model: "m".into(),
            base_url: Some(base_url),
            api_key: Some("k".into()),
            use_responses_api: Some(dialect == Dialect::Responses).filter(|yes| *yes),
            ..ModelEntry::default()
        };
        let config = ModelConfig::resolve(entry, &|_| None).unwrap();
        let model = hart_models::build(&config, &hart_models::http::client().unwrap());
        let home = tempfile::tempdir().unwrap();
        let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None).unwrap();
        let sandbox = Sandbox::new(Arc::new(provider), SandboxConfig::default());
        let agent = SuperAgent::builder(model).features(features).sandbox(sandbox).build().unwrap();
        let files = home.path().join("users/default/threads/t1/user-data");
        Self { server, agent, files, _home: home }
    }

    pub(crate) async fn ask(&self, text: &str) -> RunReport {
        let cx = RunContext::new(ThreadId::from("t1"));
        self.agent.run(Update::none().messages(Message::human(text)), &cx).await
    }
}
