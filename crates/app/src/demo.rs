//! What hart does without a model: three recorded tasks over real tools, and advice for any other prompt.
//!
//! Invariant: only the model's words are recorded. If a tool answers differently from the recording, that is said
//! aloud; nothing is talked over.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hart_kernel::{
    ChatModel, ChatRequest, ChatStream, ModelError, ModelErrorKind, ModelProfile, async_trait,
};
use hart_models::{Cassette, Replay, ScriptedModel};
use hart_types::{Body, Message};
use tokio_util::sync::CancellationToken;

/// The name under which `--model` knows it.
pub const NAME: &str = "demo";

/// A task that can be watched without a model.
#[derive(Clone, Copy, Debug)]
pub struct DemoTask {
    pub title: &'static str,
    /// What to type to start it.
    pub prompt: &'static str,
    cassette: &'static str,
}

pub const TASKS: [DemoTask; 3] = [
    DemoTask {
        title: "Write a script, run it, hand over its result",
        prompt: "Find all prime numbers below 100 with a script and give me the list as a file.",
        cassette: include_str!("../assets/demo/primes.json"),
    },
    DemoTask {
        title: "Turn a table into a short report",
        prompt: "Which product earned the most? Write a short report from this table: \
                 product,units,price; apples,120,0.50; pears,90,0.75; plums,200,0.20; cherries,30,4.00",
        cassette: include_str!("../assets/demo/report.json"),
    },
    DemoTask {
        title: "Make a web page, find a mistake in it, mend it",
        prompt: "Make a web page with the multiplication table from 1 to 10.",
        cassette: include_str!("../assets/demo/page.json"),
    },
];

impl DemoTask {
    /// `None` only if the bundled file is damaged, which a test would notice.
    fn recording(&self) -> Option<Replay> {
        let cassette = Cassette::parse(self.cassette).ok()?;
        Some(Replay::new(cassette).with_pace(Some(PACE)))
    }
}

/// Slow enough to be watched, fast enough not to bore.
const PACE: Duration = Duration::from_millis(12);

pub(crate) struct DemoModel {
    profile: ModelProfile,
    /// Parsed when the first prompt comes: a start with a real model does not pay for it.
    recordings: LazyLock<Vec<Option<Replay>>>,
}

impl DemoModel {
    pub(crate) fn new() -> Self {
        let [name, provider, served_as] = [NAME; 3].map(str::to_owned);
        let profile = ModelProfile { name, provider, served_as, ..ModelProfile::default() };
        Self { profile, recordings: LazyLock::new(|| TASKS.iter().map(DemoTask::recording).collect()) }
    }
}

#[async_trait]
impl ChatModel for DemoModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, ModelError> {
        let Some((recording, request)) = self.find(&request) else {
            return say(ADVICE.to_owned(), request, cancel).await;
        };
        match recording.stream(request.clone(), cancel).await {
            Err(error) if error.kind == ModelErrorKind::NotRecorded => {
                say(parted(&error.message), request, cancel).await
            }
            answer => answer,
        }
    }
}

impl DemoModel {
    /// The recording of the task that was asked for last, and the conversation since then as it was recorded.
    fn find(&self, request: &ChatRequest) -> Option<(&Replay, ChatRequest)> {
        let behind = request.messages.iter().rev().position(|message| message.body == Body::Human)?;
        let start = request.messages.len() - 1 - behind;
        let asked = fold(&request.messages.get(start)?.original_text());
        let at = TASKS.iter().position(|task| fold(task.prompt) == asked)?;
        let prompt = Arc::new(Message::human(TASKS.get(at)?.prompt));
        let messages =
            std::iter::once(prompt).chain(request.messages.iter_from(start + 1).cloned()).collect();
        Some((self.recordings.get(at)?.as_ref()?, ChatRequest { messages, ..request.clone() }))
    }
}

/// Spaces, case and the closing dot do not make another task.
fn fold(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches('.').to_lowercase()
}

const ADVICE: &str = "\
No model is connected, so I cannot work on this. (This is a fixed text, not a model's answer.)

Connect one, then ask again:
- with a key: `export ANTHROPIC_API_KEY=…` (or OPENAI_API_KEY, DEEPSEEK_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …)
- on this machine: start Ollama, LM Studio, llama.cpp or vLLM; hart finds it by itself
- anything else: `hart config init` writes a config.yaml to fill in

`hart doctor` checks the connection. To see hart's tools at work without a model, try one of the recorded tasks: \
`hart chat` lists them.";

fn parted(difference: &str) -> String {
    format!(
        "The recording cannot go on here: a tool answered differently on this machine than when it was recorded. \
         `hart doctor` may say why.\n\n{difference}"
    )
}

async fn say(
    text: String,
    request: ChatRequest,
    cancel: &CancellationToken,
) -> Result<ChatStream, ModelError> {
    let mut message = Message::ai(text);
    // Whoever asked in a script must be able to tell this from an answer.
    message.response_metadata.insert("incomplete".to_owned(), true.into());
    ScriptedModel::new([message]).stream(request, cancel).await
}
