//! An agent that is made anew for each run over one log, as after a restart, and answers a person's decisions.

use std::path::PathBuf;
use std::sync::Arc;

use hart_agent::approval::{InterruptOn, ToolReview};
use hart_agent::middleware::HumanInTheLoop;
use hart_agent::{Features, SuperAgent};
use hart_kernel::{Agent, Interrupt, Resume, RunContext, RunInput, RunReport, Update};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::{Message, ThreadId};
use serde_json::{Value, json};

use crate::stage::sees;
use crate::support::{MemoryLog, files, model_with, sandbox};

pub(crate) struct Scene {
    pub(crate) server: ModelServer,
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) home: tempfile::TempDir,
    features: Box<dyn Fn() -> Features>,
}

impl Scene {
    pub(crate) async fn new(
        turns: impl IntoIterator<Item = Turn>,
        features: impl Fn() -> Features + 'static,
    ) -> Self {
        let server = ModelServer::start().await;
        server.push_all(turns);
        let home = tempfile::tempdir().unwrap();
        Self { server, log: Arc::default(), home, features: Box::new(features) }
    }

    pub(crate) fn agent(&self) -> Agent {
        let model = model_with(&self.server, Dialect::OpenAi, sees);
        let sandbox = sandbox(self.home.path());
        let builder = SuperAgent::builder(model).features((self.features)()).sandbox(sandbox);
        builder.checkpointer(self.log.clone()).build().unwrap()
    }

    pub(crate) async fn run(&self, input: impl Into<RunInput>) -> RunReport {
        self.agent().run(input, &RunContext::new(ThreadId::from("t1"))).await
    }

    pub(crate) async fn ask(&self) -> Vec<Interrupt> {
        let report = self.run(Update::none().messages(Message::human("go"))).await;
        report.outcome.as_ref().unwrap();
        report.values.interrupts().to_vec()
    }

    pub(crate) async fn answer(&self, answer: Value) -> RunReport {
        self.run(Resume::from_json(answer)).await
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        files(self.home.path()).join("workspace").join(name)
    }

    pub(crate) fn last(&self) -> Arc<RecordedRequest> {
        self.server.last_request()
    }

    pub(crate) fn result(&self, id: &str) -> String {
        self.last().tool_result(id).unwrap().content
    }
}

pub(crate) fn reviewed(tools: &'static [&'static str]) -> impl Fn() -> Features {
    move || {
        let on = tools.iter().fold(InterruptOn::default(), |on, name| on.tool(*name, ToolReview::new()));
        Features { human_in_the_loop: Some(HumanInTheLoop::new(on)), ..Features::default() }
    }
}

pub(crate) fn write(path: &str, content: &str) -> Value {
    json!({"description": "", "path": path, "content": content})
}

pub(crate) fn done() -> Turn {
    Turn::new().text("done")
}
