//! Conversations that become too long: a thread that is kept in memory, a model with a small window, and a server that
//! answers by what it is asked.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hart_agent::compaction::SummarizationConfig;
use hart_agent::middleware::Summarization;
use hart_agent::{Features, SuperAgent};
use hart_kernel::{
    Agent, AgentEvent, ChatModel, ChatRequest, ChatStream, Checkpointer, EventSink, ModelError, ModelProfile,
    RunContext, RunInput, RunReport, Update, async_trait,
};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::{Message, ThreadId};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{self, MemoryLog};

pub(crate) struct LongWorld {
    pub(crate) server: ModelServer,
    pub(crate) agent: Agent,
    pub(crate) events: Arc<Events>,
    pub(crate) home: Arc<TempDir>,
    log: Arc<MemoryLog>,
    dialect: Dialect,
}

/// What differs from test to test.
pub(crate) struct Setting {
    pub(crate) dialect: Dialect,
    pub(crate) window: Option<u32>,
    pub(crate) summarization: Value,
    pub(crate) features: Features,
    pub(crate) summariser: Option<Arc<dyn ChatModel>>,
    pub(crate) recursion_limit: u32,
    /// Counts the bytes that the model was asked to count.
    pub(crate) counted: Option<Arc<AtomicUsize>>,
}

/// What is about length, and what the tools need; the rest would only add to what is counted here.
pub(crate) fn about_length() -> Features {
    Features {
        tool_output: true.into(),
        sandbox_audit: true.into(),
        read_before_write: true.into(),
        summarization: true.into(),
        ..Features::none()
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            dialect: Dialect::OpenAi,
            window: Some(12_000),
            summarization: json!({}),
            features: about_length(),
            summariser: None,
            recursion_limit: 1000,
            counted: None,
        }
    }
}

impl LongWorld {
    pub(crate) async fn new(
        setting: Setting,
        respond: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static,
    ) -> Self {
        let server = ModelServer::with(respond).await;
        let home = Arc::new(tempfile::tempdir().unwrap());
        let log = Arc::new(MemoryLog::default());
        Self::around(setting, server, home, log)
    }

    fn around(setting: Setting, server: ModelServer, home: Arc<TempDir>, log: Arc<MemoryLog>) -> Self {
        let dialect = setting.dialect;
        let mut model = model(&server, dialect, setting.window);
        if let Some(bytes) = setting.counted {
            model = Arc::new(Counting { inner: model, bytes });
        }
        let sandbox = support::sandbox(home.path());
        let config: SummarizationConfig = serde_json::from_value(setting.summarization).unwrap();
        let mut summarization =
            Summarization::new(config).agent_model(Arc::clone(&model)).sandboxes(Some(sandbox.provider()));
        if let Some(summariser) = setting.summariser {
            summarization = summarization.model(summariser);
        }
        let features = Features { summarization: summarization.into(), ..setting.features };
        let agent = SuperAgent::builder(model)
            .features(features)
            .sandbox(sandbox)
            .checkpointer(Arc::clone(&log) as Arc<dyn Checkpointer>)
            .recursion_limit(setting.recursion_limit)
            .build()
            .unwrap();
        Self { server, agent, events: Arc::default(), home, log, dialect }
    }

    /// The same thread and the same files, in a process that knows nothing of before.
    pub(crate) fn restarted(self, setting: Setting) -> Self {
        assert_eq!(setting.dialect, self.dialect);
        Self::around(setting, self.server, self.home, self.log)
    }

    pub(crate) async fn ask(&self, text: &str) -> RunReport {
        self.run(Update::none().messages(Message::human(text))).await
    }

    pub(crate) async fn run(&self, input: impl Into<RunInput>) -> RunReport {
        let events = Arc::clone(&self.events) as Arc<dyn EventSink>;
        let cx = RunContext::new(ThreadId::from("t1")).with_events(events);
        self.agent.run(input, &cx).await
    }

    /// Where the thread's files are.
    pub(crate) fn thread(&self) -> PathBuf {
        self.home.path().join("users/default/threads/t1")
    }

    /// The one history file's text.
    pub(crate) fn history(&self) -> String {
        let mut files: Vec<_> = std::fs::read_dir(self.thread().join("conversation_history"))
            .unwrap()
            .map(|f| f.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        std::fs::read_to_string(files.pop().unwrap()).unwrap()
    }

    /// The requests of the agent itself, without the summariser's.
    pub(crate) fn turns(&self) -> Vec<Arc<RecordedRequest>> {
        self.server.requests().into_iter().filter(|request| !is_summary(request)).collect()
    }

    pub(crate) fn summaries(&self) -> Vec<Arc<RecordedRequest>> {
        self.server.requests().into_iter().filter(|request| is_summary(request)).collect()
    }
}

/// Whether the summariser asks.
pub(crate) fn is_summary(request: &RecordedRequest) -> bool {
    request.system().starts_with("You take notes")
}

/// What the model is shown as the summary.
pub(crate) fn summary_of(request: &RecordedRequest) -> Option<String> {
    request.texts_of("user").into_iter().find(|text| text.contains("<summary>"))
}

/// A model with a window of that many tokens.
pub(crate) fn model(server: &ModelServer, dialect: Dialect, window: Option<u32>) -> Arc<dyn ChatModel> {
    support::model_with(server, dialect, |entry| {
        entry.context_window = window;
        entry.max_tokens = Some(500);
    })
}

/// About 250 tokens.
pub(crate) fn padding(n: usize) -> String {
    format!("{n} {}", "word after word ".repeat(60))
}

/// Answers at length; summaries forget everything but the number of the turn.
pub(crate) fn talkative(request: &RecordedRequest) -> Turn {
    if is_summary(request) {
        return Turn::new().text("## Task\nTalk about many things.");
    }
    let asked = request.texts_of("user").pop().unwrap();
    Turn::new().text(format!("Answer: {}", asked.chars().take(400).collect::<String>()))
}

/// The messages of a request, without the system prompt.
pub(crate) fn said(request: &RecordedRequest) -> Vec<Value> {
    request.messages().iter().filter(|message| message["role"] != "system").cloned().collect()
}

/// Each call is answered by what follows it, and nothing is answered that was not called.
pub(crate) fn assert_pairs_are_whole(request: &RecordedRequest) {
    let mut open: Vec<String> = Vec::new();
    for message in said(request) {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|open| open == id);
            open.remove(at.unwrap_or_else(|| panic!("{id} answers nothing")));
        } else {
            assert!(open.is_empty(), "{open:?} were not answered");
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            open.extend(calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()));
        }
    }
    assert!(open.is_empty(), "{open:?} were not answered");
}

/// A model that counts what counting costs.
struct Counting {
    inner: Arc<dyn ChatModel>,
    bytes: Arc<AtomicUsize>,
}

#[async_trait]
impl ChatModel for Counting {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    fn count_text(&self, text: &str) -> u64 {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        self.inner.count_text(text)
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        self.inner.stream(request, cancel).await
    }
}

/// The custom events of all runs.
#[derive(Default)]
pub(crate) struct Events(Mutex<Vec<Value>>);

impl Events {
    pub(crate) fn of(&self, kind: &str) -> Vec<Value> {
        self.0.lock().unwrap().iter().filter(|event| event["type"] == kind).cloned().collect()
    }
}

#[async_trait]
impl EventSink for Events {
    async fn emit(&self, event: AgentEvent) {
        if let AgentEvent::Custom(event) = event {
            self.0.lock().unwrap().push(event);
        }
    }
}
