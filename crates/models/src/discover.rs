//! Which models are there when nobody configured any: by keys in the environment, by servers on this machine.
//!
//! Invariant: looking costs no request over the network and, on this machine, no more than the time given.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use crate::config::{Dialect, ModelConfig, ModelConfigError, ModelEntry, Preset};
use crate::ollama::DEFAULT_CONTEXT;

/// How long [`probe_local`] looks, in all.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(150);

/// The ports of model servers that people run at home, and the preset of each.
pub const LOCAL_PORTS: &[(&str, u16)] =
    &[("ollama", 11434), ("lmstudio", 1234), ("llamacpp", 8080), ("vllm", 8000)];

/// One provider that a key in the environment stands for.
struct Known {
    provider: &'static str,
    key: &'static str,
    model: &'static str,
    /// Variables that change the address and the model, as the provider's own tools read them.
    base_env: Option<&'static str>,
    model_env: Option<&'static str>,
}

const KNOWN: &[Known] = &[
    Known {
        base_env: Some("ANTHROPIC_BASE_URL"),
        model_env: Some("ANTHROPIC_MODEL"),
        ..known("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-5-5")
    },
    Known {
        base_env: Some("OPENAI_BASE_URL"),
        model_env: Some("OPENAI_MODEL"),
        ..known("openai", "OPENAI_API_KEY", "gpt-5.6")
    },
    known("deepseek", "DEEPSEEK_API_KEY", "deepseek-v4-flash"),
    Known {
        base_env: Some("GOOGLE_GEMINI_BASE_URL"),
        model_env: Some("GEMINI_MODEL"),
        ..known("gemini", "GEMINI_API_KEY", "gemini-3.6-flash")
    },
    known("openrouter", "OPENROUTER_API_KEY", "openrouter/auto"),
    known("groq", "GROQ_API_KEY", "openai/gpt-oss-120b"),
    known("mistral", "MISTRAL_API_KEY", "mistral-large-latest"),
    known("xai", "XAI_API_KEY", "grok-4.3"),
    known("moonshot", "MOONSHOT_API_KEY", "kimi-k2.6"),
];

const fn known(provider: &'static str, key: &'static str, model: &'static str) -> Known {
    Known { provider, key, model, base_env: None, model_env: None }
}

/// A variable of the environment that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} is wrong: {}", told(.why))]
pub struct EnvError {
    pub variable: &'static str,
    pub why: ModelConfigError,
}

/// Without the name of a model that nobody wrote.
fn told(why: &ModelConfigError) -> String {
    match why {
        ModelConfigError::Invalid { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// The models that keys in the environment give, best first. `lookup` reads the environment.
pub fn from_env(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<Result<ModelConfig, EnvError>> {
    let set =
        |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let found = KNOWN.iter().filter_map(|known| {
        // The first of a provider's variables has the preference; Google's clients read two.
        let keys = Preset::find(known.provider).map_or(&[][..], |preset| preset.key_env);
        let key = std::iter::once(&known.key).chain(keys).find(|key| set(key).is_some())?;
        let model = known.model_env.and_then(set).unwrap_or_else(|| known.model.to_owned());
        let entry = |base_url: Option<String>| ModelEntry {
            name: model.clone(),
            provider: known.provider.to_owned(),
            model: model.clone(),
            base_url,
            ..ModelEntry::default()
        };
        let resolved = ModelConfig::resolve(entry(known.base_env.and_then(set)), lookup);
        Some(resolved.map_err(|why| {
            let without = ModelConfig::resolve(entry(None), lookup);
            EnvError { variable: known.base_env.filter(|_| without.is_ok()).unwrap_or(key), why }
        }))
    });
    found.collect()
}

/// The model that a provider's key gives where nobody names one.
pub fn usual_model(provider: &str) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.provider == provider).map(|known| known.model)
}

/// The models of servers on this machine, in the order of the ports. All are asked at once.
pub async fn probe_local(http: &reqwest::Client) -> Vec<ModelConfig> {
    probe_ports(http, LOCAL_PORTS, PROBE_TIMEOUT).await
}

/// [`probe_local`] with other ports and another limit.
pub async fn probe_ports(
    http: &reqwest::Client,
    ports: &[(&str, u16)],
    within: Duration,
) -> Vec<ModelConfig> {
    let probes = ports.iter().map(async |(provider, port)| {
        let deadline = Instant::now() + within;
        let native = Preset::find(provider).is_some_and(|preset| preset.dialect == Dialect::Ollama);
        let base_url = format!("http://127.0.0.1:{port}{}", if native { "" } else { "/v1" });
        let list = format!("{base_url}{}", if native { "/api/tags" } else { "/models" });
        let model = timeout_at(deadline, ask(http, &list)).await.ok()??;
        let mut entry = ModelEntry {
            name: model.clone(),
            provider: (*provider).to_owned(),
            model,
            base_url: Some(base_url.clone()),
            ..ModelEntry::default()
        };
        if native && let Ok(Some(shown)) = timeout_at(deadline, show(http, &base_url, &entry.model)).await {
            shown.complete(&mut entry);
        }
        ModelConfig::resolve(entry, &|_| None).ok()
    });
    join_all(probes).await.into_iter().flatten().collect()
}

/// The first model that can talk, if a model server answers there.
async fn ask(http: &reqwest::Client, url: &str) -> Option<String> {
    let response = http.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let list: Value = serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
    model_ids(&list)?.find(|id| !is_embedding(id)).map(str::to_owned)
}

/// What Ollama tells about one model.
#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    model_info: Map<String, Value>,
}

impl Shown {
    fn complete(&self, entry: &mut ModelEntry) {
        let can = |word: &str| Some(self.capabilities.iter().any(|capability| capability == word));
        if !self.capabilities.is_empty() {
            (entry.supports_vision, entry.supports_thinking) = (can("vision"), can("thinking"));
        }
        // The key begins with the model's architecture. A larger window than the default takes memory that only the
        // owner of the machine can grant.
        let trained = self.model_info.iter().find(|(key, _)| key.ends_with(".context_length"));
        let trained = trained.and_then(|(_, length)| u32::try_from(length.as_u64()?).ok());
        entry.context_window = trained.map(|trained| trained.min(DEFAULT_CONTEXT));
    }
}

async fn show(http: &reqwest::Client, base_url: &str, model: &str) -> Option<Shown> {
    let asked = http.post(format!("{base_url}/api/show")).body(json!({"model": model}).to_string());
    let response = asked.send().await.ok().filter(|response| response.status().is_success())?;
    serde_json::from_slice(&response.bytes().await.ok()?).ok()
}

/// The ids in a model list, in OpenAI's shape or in that of Google and Ollama; `None` when it is none.
pub(crate) fn model_ids(list: &Value) -> Option<impl Iterator<Item = &str>> {
    let models = list.get("data").or(list.get("models"))?.as_array()?;
    Some(models.iter().filter_map(|model| {
        let id = model.get("id").or(model.get("name"))?.as_str()?;
        Some(id.strip_prefix("models/").unwrap_or(id))
    }))
}

/// Whether a model of this name does not talk.
pub fn is_embedding(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    ["embed", "bge-", "gte-", "e5-", "minilm", "rerank", "whisper"].iter().any(|word| id.contains(word))
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
