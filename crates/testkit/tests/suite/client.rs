//! The plainest client that can read either dialect.
//!
//! Invariant: it repairs nothing; what it returns is what came over the wire.

use hart_testkit::{ModelServer, Turn};
use serde_json::{Value, json};

/// One server-sent event.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    /// A string when the data is not JSON.
    pub(crate) data: Value,
}

pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub(crate) async fn post(url: String, body: &Value) -> reqwest::Result<reqwest::Response> {
    http().post(url).header("content-type", "application/json").body(body.to_string()).send().await
}

pub(crate) async fn openai(server: &ModelServer, body: &Value) -> reqwest::Response {
    post(format!("{}/chat/completions", server.openai_base()), body).await.unwrap()
}

pub(crate) async fn anthropic(server: &ModelServer, body: &Value) -> reqwest::Response {
    post(format!("{}/v1/messages", server.anthropic_base()), body).await.unwrap()
}

pub(crate) fn asking(stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": "hi"}]);
    json!({"model": "m", "max_tokens": 64, "stream": stream, "messages": messages})
}

pub(crate) async fn json_of(response: reqwest::Response) -> Value {
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

pub(crate) fn parse(text: &str) -> Vec<Event> {
    let blocks = text.strip_suffix("\n\n").expect("a stream ends with a blank line").split("\n\n");
    blocks
        .map(|block| {
            let (name, data) = match block.split_once('\n') {
                Some((name, data)) => (Some(name.strip_prefix("event: ").unwrap().to_owned()), data),
                None => (None, block),
            };
            let data = data.strip_prefix("data: ").unwrap();
            Event { name, data: serde_json::from_str(data).unwrap_or_else(|_| json!(data)) }
        })
        .collect()
}

/// The events of one turn in the OpenAI dialect.
pub(crate) async fn openai_events(turn: Turn, body: &Value) -> Vec<Event> {
    let server = ModelServer::start().await;
    server.push(turn);
    parse(&openai(&server, body).await.text().await.unwrap())
}

/// The events of one turn in the Anthropic dialect.
pub(crate) async fn anthropic_events(turn: Turn, body: &Value) -> Vec<Event> {
    let server = ModelServer::start().await;
    server.push(turn);
    parse(&anthropic(&server, body).await.text().await.unwrap())
}
