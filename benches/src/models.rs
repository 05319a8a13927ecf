//! What the model clients cost by themselves: streams, parsing, counting, and writing requests.
//!
//! Invariant: every dialect is measured by the same code; adding one is a row in [`SPOKEN`].

mod count;
mod request;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{ChatModel, ChatRequest, ModelSettings};
use hart_models::{ModelConfig, ModelEntry};
use hart_types::Message;
use rustix::time::{ClockId, clock_gettime};

use crate::Row;

/// A dialect, as far as a benchmark must know it.
pub struct Spoken {
    pub name: &'static str,
    /// The preset that speaks it.
    provider: &'static str,
    /// What follows the server's root in `base_url`.
    base: &'static str,
    /// Where the floor posts, behind the root.
    pub path: &'static str,
    /// A request that the bench server answers, for the floor.
    pub body: &'static str,
    /// What stands before a token in its event.
    pub before_token: &'static str,
}

pub const SPOKEN: &[Spoken] = &[
    Spoken {
        name: "OpenAI chat",
        provider: "openai-compatible",
        base: "/v1",
        path: "/v1/chat/completions",
        body: r#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}"#,
        before_token: "\"content\":\"",
    },
    Spoken {
        name: "Anthropic",
        provider: "anthropic",
        base: "",
        path: "/v1/messages",
        body: r#"{"model":"bench","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"go"}]}"#,
        before_token: "\"text\":\"",
    },
    Spoken {
        name: "Responses",
        provider: "openai-compatible",
        base: "/v1",
        path: "/v1/responses",
        body: r#"{"model":"bench","stream":true,"input":[{"type":"message","role":"user","content":"go"}]}"#,
        before_token: "\"delta\":\"",
    },
    Spoken {
        name: "Gemini",
        provider: "gemini",
        base: "",
        path: "/v1beta/models/bench:streamGenerateContent?alt=sse",
        body: r#"{"contents":[{"role":"user","parts":[{"text":"go"}]}]}"#,
        before_token: "\"text\":\"",
    },
    Spoken {
        name: "Ollama",
        provider: "ollama",
        base: "",
        path: "/api/chat",
        body: r#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}"#,
        before_token: "\"content\":\"",
    },
];

impl Spoken {
    fn config(&self, root: &str) -> anyhow::Result<ModelConfig> {
        let entry = ModelEntry {
            name: "bench".into(),
            provider: self.provider.into(),
            model: "bench".into(),
            base_url: Some(format!("{root}{}", self.base)),
            api_key: Some("none".into()),
            use_responses_api: self.path.ends_with("/responses").then_some(true),
            ..ModelEntry::default()
        };
        Ok(ModelConfig::resolve(entry, &|_| None)?)
    }

    pub fn client(&self, root: &str, http: &reqwest::Client) -> anyhow::Result<Arc<dyn ChatModel>> {
        Ok(hart_models::build(&self.config(root)?, http))
    }

    /// Writes the body of a request, with all that it keeps from one to the next.
    pub fn writer(&self, http: &reqwest::Client) -> anyhow::Result<impl Fn(&ChatRequest) -> Vec<u8> + use<>> {
        Ok(hart_models::request_writer(&self.config("http://127.0.0.1:9")?, http))
    }
}

pub async fn measure() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for spoken in SPOKEN {
        rows.extend(stream::throughput(spoken).await?);
        rows.extend(stream::first_token(spoken).await?);
        rows.extend(stream::added_delay(spoken).await?);
    }
    rows.push(stream::sse());
    rows.extend(count::measure()?);
    rows.extend(request::measure()?);
    Ok(rows)
}

pub fn chat(messages: impl IntoIterator<Item = Message>) -> ChatRequest {
    ChatRequest {
        caller: "bench".into(),
        system: Some("You are a benchmark.".into()),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::from([]),
        settings: ModelSettings::default(),
    }
}

/// How long `work` keeps this thread busy, in seconds: on an idle machine the same as how long it takes, and on a busy
/// one still the same.
pub fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    let done = work();
    ((now() - start).as_secs_f64(), done)
}
