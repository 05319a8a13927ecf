//! A model that reads its answers from a list, a sink that keeps what it hears, a log in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::stream;
use hart_kernel::*;
use hart_types::{Ai, Body, CheckpointId, Message, ThreadId, ToolCall};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(crate) struct Script {
    answers: Mutex<Vec<Result<Message, ModelError>>>,
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
}

pub(crate) fn script(answers: impl IntoIterator<Item = Message>) -> Arc<Script> {
    Script::of(answers.into_iter().map(Ok))
}

impl Script {
    pub(crate) fn of(answers: impl IntoIterator<Item = Result<Message, ModelError>>) -> Arc<Self> {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), ..Self::default() })
    }

    pub(crate) fn calls(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

#[async_trait]
impl ChatModel for Script {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "script".into(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        self.requests.lock().unwrap().push(request);
        let message = self.answers.lock().unwrap().pop().expect("the script has no answer left")?;
        let text = ChatChunk::Text(message.text());
        Ok(Box::pin(stream::iter([Ok(text), Ok(ChatChunk::Done(Box::new(message)))])))
    }
}

/// An answer that calls tools: `(id, name, args)`.
pub(crate) fn calls(list: &[(&str, &str, Value)]) -> Message {
    let tool_calls = list
        .iter()
        .map(|(id, name, args)| ToolCall::new(*id, *name, args.as_object().unwrap().clone()))
        .collect();
    Message::new(Body::Ai(Ai { tool_calls, ..Ai::default() }), "")
}

pub(crate) fn say(text: &str) -> Message {
    Message::ai(text)
}

pub(crate) fn ask(text: &str) -> Update {
    Update::none().messages(Message::human(text))
}

pub(crate) fn cx() -> RunContext {
    RunContext::new(ThreadId::from("t1"))
}

/// `(kind, text)` of every message of the state.
pub(crate) fn transcript(report: &RunReport) -> Vec<(String, String)> {
    report.state().messages().iter().map(|m| (m.kind().to_owned(), m.text())).collect()
}

/// Returns its `say` argument after waiting for `turns` yields, so that later calls can finish first.
pub(crate) struct Echo;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct EchoArgs {
    /// What to say.
    pub(crate) say: String,
    #[serde(default)]
    turns: u32,
}

#[async_trait]
impl TypedTool for Echo {
    const NAME: &'static str = "echo";
    const DESCRIPTION: &'static str = "Says it back.";
    type Args = EchoArgs;

    async fn run(&self, _cx: &ToolContext<'_>, args: EchoArgs) -> Result<ToolOutput, ToolError> {
        for _ in 0..args.turns {
            tokio::task::yield_now().await;
        }
        match args.say.as_str() {
            "fail" => Err(ToolError::Failed("as asked".into())),
            "fatal" => Err(ToolError::Fatal("disk on fire".into())),
            "panic" => panic!("as asked"),
            "end" => Ok(ToolOutput { command: Command::none().goto(Goto::End), .."bye".into() }),
            said => Ok(said.into()),
        }
    }
}

#[derive(Default)]
pub(crate) struct Ears(pub(crate) Mutex<Vec<AgentEvent>>);

#[async_trait]
impl EventSink for Ears {
    async fn emit(&self, event: AgentEvent) {
        self.0.lock().unwrap().push(event);
    }
}

#[derive(Clone, Default)]
pub(crate) struct MemoryLog(pub(crate) Arc<Mutex<HashMap<ThreadId, Vec<Step>>>>);

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

#[async_trait]
impl Checkpointer for MemoryLog {
    async fn append(&self, thread: &ThreadId, steps: Arc<[Step]>) -> Result<(), CheckpointError> {
        self.0.lock().unwrap().entry(thread.clone()).or_default().extend_from_slice(&steps);
        Ok(())
    }

    async fn load(&self, thread: &ThreadId, at: Option<&CheckpointId>) -> Result<Vec<Step>, CheckpointError> {
        let all = self.0.lock().unwrap().get(thread).cloned().unwrap_or_default();
        let mut chain = Vec::new();
        let mut wanted = at.cloned().or_else(|| all.last().map(|step| step.id.clone()));
        while let Some(step) = all.iter().find(|step| Some(&step.id) == wanted.as_ref()) {
            wanted.clone_from(&step.parent);
            chain.push(step.clone());
        }
        chain.reverse();
        Ok(chain)
    }

    fn inside(&self, call: &str) -> Option<Arc<dyn Checkpointer>> {
        Some(Arc::new(InsideLog(self.clone(), call.to_owned())))
    }
}

/// Of the one thread that tests run on.
pub(crate) fn steps(log: &MemoryLog) -> Vec<Step> {
    log.0.lock().unwrap()["t1"].clone()
}
