//! Agents on other servers, asked in LangGraph's protocol.
//!
//! Invariant: what another server answers is read as far as it is needed and no further; what it does not answer is told
//! with its address.

use std::collections::BTreeMap;
use std::time::Duration;

use hart_agent::{RemoteAgents, RemoteError, RemoteStanding, RemoteStatus};
use hart_kernel::async_trait;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::config::RemoteEntry;

/// Nothing here takes long: tasks run by themselves.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct LangGraphServers {
    http: reqwest::Client,
    agents: BTreeMap<String, RemoteEntry>,
}

impl LangGraphServers {
    pub(crate) fn new(http: reqwest::Client, agents: BTreeMap<String, RemoteEntry>) -> Self {
        Self { http, agents }
    }

    fn entry(&self, agent: &str) -> Result<&RemoteEntry, RemoteError> {
        self.agents
            .get(agent)
            .ok_or_else(|| RemoteError(format!("there is no remote agent `{agent}` any more")))
    }

    fn request(&self, method: Method, entry: &RemoteEntry, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", entry.url.trim_end_matches('/'));
        let request = self.http.request(method, url).timeout(PATIENCE);
        entry.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    async fn ask(
        &self,
        method: Method,
        entry: &RemoteEntry,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, RemoteError> {
        let mut request = self.request(method, entry, path);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let gone = |what: &str| RemoteError(format!("the server at {} {what}", entry.url));
        let answer = request.send().await.map_err(|error| {
            tracing::warn!(url = %entry.url, error = %error.without_url(), "a remote agent cannot be reached");
            gone("does not answer")
        })?;
        let status = answer.status();
        let text = answer.text().await.map_err(|_| gone("broke off its answer"))?;
        if !status.is_success() {
            let detail: String = text.chars().take(200).collect();
            return Err(gone(&format!("answers {}: {detail}", status.as_u16())));
        }
        if status == StatusCode::NO_CONTENT || text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|_| gone("answers with something that is not JSON"))
    }

    async fn run(&self, entry: &RemoteEntry, thread: &str, words: &str) -> Result<String, RemoteError> {
        let body = json!({
            "assistant_id": entry.graph_id,
            "input": {"messages": [{"role": "user", "content": words}]},
            "multitask_strategy": "interrupt",
        });
        let run = self.ask(Method::POST, entry, &format!("/threads/{thread}/runs"), Some(body)).await?;
        let id = run.get("run_id").and_then(Value::as_str);
        id.map(str::to_owned)
            .ok_or_else(|| RemoteError(format!("the server at {} started no run", entry.url)))
    }
}

#[async_trait]
impl RemoteAgents for LangGraphServers {
    fn agents(&self) -> Vec<(String, String)> {
        self.agents.iter().map(|(name, entry)| (name.clone(), entry.description.clone())).collect()
    }

    async fn start(&self, agent: &str, thread: &str, task: &str) -> Result<String, RemoteError> {
        let entry = self.entry(agent)?;
        let body =
            json!({"thread_id": thread, "if_exists": "do_nothing", "metadata": {"graph_id": entry.graph_id}});
        self.ask(Method::POST, entry, "/threads", Some(body)).await?;
        self.run(entry, thread, task).await
    }

    async fn newest(&self, agent: &str, thread: &str) -> Result<Option<String>, RemoteError> {
        let entry = self.entry(agent)?;
        let path = format!("/threads/{thread}/runs?limit=1");
        let runs = match self.ask(Method::GET, entry, &path, None).await {
            Err(RemoteError(why)) if why.contains("answers 404") => return Ok(None),
            runs => runs?,
        };
        let newest = runs.get(0).and_then(|run| run.get("run_id")?.as_str());
        Ok(newest.map(str::to_owned))
    }

    async fn check(&self, agent: &str, thread: &str, run: &str) -> Result<RemoteStanding, RemoteError> {
        let entry = self.entry(agent)?;
        let told = self.ask(Method::GET, entry, &format!("/threads/{thread}/runs/{run}"), None).await?;
        let status = match told.get("status").and_then(Value::as_str) {
            Some("pending" | "running") => {
                return Ok(RemoteStanding { status: RemoteStatus::Running, said: None });
            }
            Some("success") => RemoteStatus::Success,
            Some("timeout") => RemoteStatus::Timeout,
            Some("interrupted") => RemoteStatus::Interrupted,
            _ => RemoteStatus::Error,
        };
        let state = self.ask(Method::GET, entry, &format!("/threads/{thread}/state"), None).await?;
        let waits = state.get("next").and_then(Value::as_array).is_some_and(|next| !next.is_empty());
        let status =
            if waits && status == RemoteStatus::Success { RemoteStatus::Interrupted } else { status };
        let failure = told.get("error").filter(|error| !error.is_null()).map(words);
        Ok(RemoteStanding { status, said: failure.or_else(|| last_words(&state)) })
    }

    async fn update(&self, agent: &str, thread: &str, message: &str) -> Result<String, RemoteError> {
        self.run(self.entry(agent)?, thread, message).await
    }

    async fn cancel(&self, agent: &str, thread: &str, run: &str) -> Result<(), RemoteError> {
        let path = format!("/threads/{thread}/runs/{run}/cancel");
        match self.ask(Method::POST, self.entry(agent)?, &path, None).await {
            // It has ended already.
            Err(RemoteError(why)) if why.contains("answers 409") => Ok(()),
            told => told.map(|_| ()),
        }
    }
}

/// The text of the last message in a state.
fn last_words(state: &Value) -> Option<String> {
    let messages = state.get("values")?.get("messages")?.as_array()?;
    messages.last()?.get("content").map(words)
}

/// Text, or the texts of blocks.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
