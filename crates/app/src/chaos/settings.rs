//! The configuration of the agent under test: the user's own, with every model behind the proxy.
//!
//! Invariant: keys stay where they were: what was a variable in the user's file is one in the copy.

use serde_json::{Map, Value, json};

use super::script;
use crate::ChooseError;
use crate::choice::{self, ModelChoice};
use crate::workshop::Workshop;

/// Whom a model's calls go to.
#[derive(Clone, Debug)]
pub(super) enum Upstream {
    /// The provider, at the origin of its address.
    Provider { origin: String, http: reqwest::Client },
    /// Nobody: the answers are fixed.
    Script,
}

/// The agent under test.
#[derive(Debug)]
pub(super) struct Subject {
    /// No model is connected.
    pub(super) scripted: bool,
    /// By the number that the proxied addresses carry.
    pub(super) upstreams: Vec<Upstream>,
    /// The name of the model that works.
    model: String,
    raw: Map<String, Value>,
    /// The models' addresses behind their origins, each with its number.
    paths: Vec<String>,
}

impl Subject {
    pub(super) async fn new(
        workshop: &Workshop,
        chosen: &ModelChoice,
        raw: Option<Value>,
    ) -> Result<Self, ChooseError> {
        let mut raw = match raw {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        if chosen.is_demo() {
            let entry = json!({"name": script::NAME, "use": "openai-compatible", "model": script::NAME,
                               "api_key": "none"});
            raw.insert("models".to_owned(), json!([entry]));
            let (upstreams, paths) = (vec![Upstream::Script], vec!["/v1".to_owned()]);
            return Ok(Self { scripted: true, upstreams, model: script::NAME.to_owned(), raw, paths });
        }
        let mut models = workshop.config.models.clone();
        if workshop.config.model(&chosen.name).is_none() {
            let (found, _) = choice::connected(workshop, Some(&chosen.name)).await?;
            let entry = json!({"name": found.name, "use": found.provider, "model": found.model});
            match raw.entry("models").or_insert_with(|| json!([])) {
                Value::Array(entries) => entries.push(entry),
                other => *other = json!([entry]),
            }
            models.push(found);
        }
        let mut subject = Self {
            scripted: false,
            upstreams: Vec::new(),
            model: chosen.name.clone(),
            raw,
            paths: Vec::new(),
        };
        for model in &models {
            let (origin, path) = split(model.base_url.as_str());
            let http = workshop.calls.client(model)?;
            subject.upstreams.push(Upstream::Provider { origin, http });
            subject.paths.push(path);
        }
        Ok(subject)
    }

    /// The file for a process whose models are behind the proxy at `proxy`. `silence` is how long a provider may say
    /// nothing, where that is what is tried.
    pub(super) fn file(&self, proxy: &str, silence: Option<u64>) -> String {
        let mut raw = self.raw.clone();
        if let Some(Value::Array(models)) = raw.get_mut("models") {
            for (nth, (entry, path)) in models.iter_mut().zip(&self.paths).enumerate() {
                let Value::Object(entry) = entry else { continue };
                entry.insert("base_url".to_owned(), format!("{proxy}/{nth}{path}").into());
                entry.shift_remove("proxy");
                if let Some(silence) = silence {
                    entry.insert("timeout".to_owned(), silence.into());
                    entry.insert("stream_chunk_timeout".to_owned(), silence.into());
                }
            }
        }
        let server = raw.entry("server").or_insert_with(|| json!({}));
        if let Value::Object(server) = server {
            server.insert("host".to_owned(), "127.0.0.1".into());
            // Nobody else asks it, and what it tells is nobody else's business.
            for foreign in ["token", "otlp_endpoint"] {
                server.shift_remove(foreign);
            }
        }
        if self.scripted {
            // Nobody is spared by asking slowly.
            raw.insert("llm_call".to_owned(), json!({"retry_base_delay_ms": 50, "retry_cap_delay_ms": 500}));
        }
        Value::Object(raw).to_string()
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }
}

/// `https://host:1` and `/v1` of `https://host:1/v1`.
fn split(address: &str) -> (String, String) {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    (format!("{scheme}://{authority}"), path.trim_end_matches('/').to_owned())
}
