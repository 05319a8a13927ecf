//! An agent at the model's HTTP boundary that remembers its thread, for what goes over several runs.

use std::sync::{Arc, Mutex};

use hart_agent::{Features, SuperAgent, SuperAgentBuilder};
use hart_kernel::{
    Agent, AgentEvent, EventSink, Limits, Resume, RunContext, RunReport, ToolContext, ToolError, ToolOutput,
    Typed, TypedTool, Update, async_trait,
};
use hart_testkit::{Dialect, ModelServer, Turn};
use hart_types::{Message, ThreadId};
use serde_json::Value;

use crate::support::{MemoryLog, model};

pub(crate) struct Thread {
    pub(crate) server: ModelServer,
    pub(crate) agent: Agent,
    pub(crate) ears: Arc<Ears>,
}

impl Thread {
    /// A small agent: a short prompt, no sandbox, a checkpointer, and the tool `look`.
    pub(crate) async fn new(dialect: Dialect, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(dialect, turns, Features::default(), |builder| builder).await
    }

    pub(crate) async fn with(
        dialect: Dialect,
        turns: impl IntoIterator<Item = Turn>,
        features: Features,
        more: impl FnOnce(SuperAgentBuilder) -> SuperAgentBuilder,
    ) -> Self {
        let server = ModelServer::start().await;
        server.push_all(turns);
        let builder = SuperAgent::builder(model(&server, dialect))
            .system_prompt("You are a test.")
            .features(features)
            .tool(Typed::shared(Look::default()))
            .checkpointer(Arc::new(MemoryLog::default()));
        Self { agent: more(builder).build().unwrap(), server, ears: Arc::default() }
    }

    pub(crate) fn cx(&self) -> RunContext {
        RunContext::new(ThreadId::from("t1")).with_events(self.ears.clone())
    }

    pub(crate) async fn ask(&self, text: &str) -> RunReport {
        self.agent.run(Update::none().messages(Message::human(text)), &self.cx()).await
    }

    pub(crate) async fn ask_within(&self, text: &str, limits: &Limits) -> RunReport {
        let cx = self.cx().with_budget(hart_kernel::Budget::new(limits));
        self.agent.run(Update::none().messages(Message::human(text)), &cx).await
    }

    pub(crate) async fn answer_within(&self, answer: Value, limits: &Limits) -> RunReport {
        let cx = self.cx().with_budget(hart_kernel::Budget::new(limits));
        self.agent.run(Resume::from_json(answer), &cx).await
    }

    /// What the model was told in that request, as the user.
    pub(crate) fn notes(&self, request: usize) -> Vec<String> {
        self.server.requests()[request].texts_of("user")
    }
}

/// Says what it was told to: the same every time, or something else every time.
#[derive(Default)]
pub(crate) struct Look {
    times: Mutex<u32>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct LookArgs {
    #[serde(default)]
    how: String,
}

#[async_trait]
impl TypedTool for Look {
    const NAME: &'static str = "look";
    const DESCRIPTION: &'static str = "Looks.";
    type Args = LookArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: LookArgs) -> Result<ToolOutput, ToolError> {
        let times = {
            let mut times = self.times.lock().unwrap();
            *times += 1;
            *times
        };
        match args.how.as_str() {
            "changing" => Ok(format!("it is {times} now").into()),
            "long" => Ok("x".repeat(20_000).into()),
            "fatal" => Err(ToolError::Fatal("disk on fire".into())),
            "panic" => panic!("as asked"),
            "flaky" if times < 3 => Err(ToolError::Transient("the line is busy".into())),
            "wrong" => Err(ToolError::Failed("no such file: /a".into())),
            "hang" => std::future::pending().await,
            "ask" => Ok(cx.interrupt(hart_kernel::Interrupt::new("q", "?"))?.to_string().into()),
            _ => Ok("nothing new".into()),
        }
    }
}

#[derive(Default)]
pub(crate) struct Ears(pub(crate) Mutex<Vec<Value>>);

#[async_trait]
impl EventSink for Ears {
    async fn emit(&self, event: AgentEvent) {
        if let AgentEvent::Custom(value) = event {
            self.0.lock().unwrap().push(value);
        }
    }
}
