//! A runtime over SQLite whose model does what the last human message says: `SAY …`, `CALL tool json`, `SLOW n ms`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use hart_kernel::*;
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_testkit::in_time;
use hart_types::{Ai, Body, Message, RunId, StreamMode, ThreadId, ToolCall, UsageMetadata};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    _dir: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = open(&dir.path().join("hart.db"), Settings::default()).await;
        Self { runtime, _dir: Some(dir) }
    }

    /// Over a file that somebody else keeps.
    pub(crate) async fn over(path: &Path) -> Self {
        Self::with(path, Settings::default()).await
    }

    pub(crate) async fn with(path: &Path, settings: Settings) -> Self {
        Self { runtime: open(path, settings).await, _dir: None }
    }

    /// With files of this kind.
    pub(crate) async fn keeping(workspaces: impl Workspaces) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let parts = parts(&dir.path().join("hart.db"), Arc::new(SystemClock));
        let parts = Parts { workspaces: Arc::new(workspaces), ..parts };
        Self { runtime: Runtime::open(parts).await.unwrap(), _dir: Some(dir) }
    }

    pub(crate) fn of(runtime: Runtime) -> Self {
        Self { runtime, _dir: None }
    }

    /// Starts a run on a thread, which is made if need be.
    pub(crate) async fn start(&self, thread: &str, words: &str) -> Run {
        self.runtime.start(says(thread, words)).await.unwrap()
    }

    /// Starts one and waits for its end.
    pub(crate) async fn run(&self, request: StartRun) -> Run {
        let run = self.runtime.start(request).await.unwrap();
        self.ended(&run.id).await
    }

    pub(crate) async fn ended(&self, id: &RunId) -> Run {
        in_time("a run ends", self.runtime.wait(id)).await;
        self.runtime.store().run(id).await.unwrap().unwrap()
    }

    /// The texts of the thread's messages.
    pub(crate) async fn texts(&self, thread: &str) -> Vec<String> {
        let state = self.runtime.state(&thread.into(), None).await.unwrap();
        texts(&serde_json::from_slice(&state.values).unwrap())
    }

    /// All frames of a run in these modes, `(event, data)`.
    pub(crate) async fn frames(&self, run: &Run, modes: &[StreamMode], after: After) -> Vec<Frame> {
        let mut reader = self.runtime.frames(run.clone(), modes.to_vec(), false, after);
        let mut frames = Vec::new();
        while let Some(more) = in_time("a frame", reader.next()).await.unwrap() {
            frames.extend(more);
        }
        frames
    }
}

async fn open(path: &Path, settings: Settings) -> Runtime {
    open_at(path, Arc::new(SystemClock), settings).await
}

/// By another clock.
pub(crate) async fn open_at(path: &Path, clock: Arc<dyn Clock>, settings: Settings) -> Runtime {
    Runtime::open_with(parts(path, clock), settings).await.unwrap()
}

fn parts(path: &Path, clock: Arc<dyn Clock>) -> Parts {
    Parts {
        store: Arc::new(SqliteStore::open(path).unwrap()),
        agents: Arc::new(Agents),
        workspaces: Arc::new(NoWorkspaces),
        clock,
    }
}

pub(crate) fn says(thread: &str, words: &str) -> StartRun {
    let input = json!({"messages": [{"role": "user", "content": words}]});
    let mut request =
        StartRun::new("agent", "agent".into(), Input::Values(input.as_object().unwrap().clone()));
    request.thread = Some(ThreadId::from(thread));
    request.create_thread = true;
    request
}

pub(crate) fn texts(values: &Value) -> Vec<String> {
    let messages = values["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(crate) fn data(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.data).unwrap()
}

struct Agents;

#[async_trait]
impl AgentFactory for Agents {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, agent: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        if agent != "agent" && agent != "lead_agent" {
            let message = format!("there is no agent `{agent}`");
            return Err(FactoryError { error: "NotFound".into(), message });
        }
        let tools: [Arc<dyn Tool>; 1] = [Arc::new(Typed::new(AskHuman))];
        Ok(Agent::builder(Arc::new(Obedient)).tools(tools).checkpointer(checkpointer).build().unwrap())
    }
}

struct AskHuman;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    question: String,
}

#[async_trait]
impl TypedTool for AskHuman {
    const NAME: &'static str = "ask_human";
    const DESCRIPTION: &'static str = "Asks.";
    type Args = Question;

    async fn run(&self, cx: &ToolContext<'_>, args: Question) -> Result<ToolOutput, ToolError> {
        if args.question == "is anybody there?" {
            // Nobody is, and it does not listen to those who want it to stop.
            std::future::pending::<()>().await;
        }
        let answer = cx.interrupt(Interrupt::new(cx.call_id.as_str(), json!({"question": args.question})))?;
        Ok(format!("Human answered: {}", answer.as_str().unwrap_or_default()).into())
    }
}

struct Obedient;

#[async_trait]
impl ChatModel for Obedient {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "obedient".into(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        let last = request.messages.last().unwrap();
        if matches!(last.body, Body::Tool(_)) {
            return Ok(spoken(format!("Tool said: {}", last.text()), Duration::ZERO));
        }
        let words = last.text();
        let (verb, rest) = words.split_once(' ').unwrap_or((&words, ""));
        Ok(match verb {
            "SAY" => spoken(rest.to_owned(), Duration::ZERO),
            "SLOW" => {
                let (count, millis) = rest.split_once(' ').unwrap();
                let ticks: Vec<_> = (1..=count.parse().unwrap()).map(|n: u32| format!("tick{n}")).collect();
                spoken(ticks.join(" "), Duration::from_millis(millis.parse().unwrap()))
            }
            "CALL" => {
                let (tool, args) = rest.split_once(' ').unwrap();
                let args: Map<String, Value> = serde_json::from_str(args).unwrap();
                let call = ToolCall::new(format!("call-{}", request.messages.len()), tool, args);
                let ai = Ai { tool_calls: vec![call], ..Ai::default() };
                let done = ChatChunk::Done(Box::new(Message::new(Body::Ai(ai), "")));
                Box::pin(stream::iter([Ok(done)]))
            }
            "FAIL" => return Err(ModelError::new(ModelErrorKind::BadRequest, "obedient", rest)),
            _ => spoken(format!("echo: {words}"), Duration::ZERO),
        })
    }
}

/// Word by word, then whole.
fn spoken(text: String, pause: Duration) -> ChatStream {
    let mut chunks: Vec<_> = text.split_inclusive(' ').map(|word| ChatChunk::Text(word.to_owned())).collect();
    let ai = Ai { usage: Some(UsageMetadata::new(3, chunks.len() as u64)), ..Ai::default() };
    chunks.push(ChatChunk::Done(Box::new(Message::new(Body::Ai(ai), text))));
    Box::pin(stream::unfold(chunks.into_iter(), move |mut rest| async move {
        let chunk = rest.next()?;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Some((Ok(chunk), rest))
    }))
}
