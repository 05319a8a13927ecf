//! What a model is called, where it answers and what it can do.
//!
//! Invariant: an API key is a `SecretString` from the moment an entry is resolved; `Debug` never shows one.

mod declared;
mod entry;
mod keys;
mod place;
mod presets;
mod switch;

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use declared::Declared;
pub use entry::{MaxTokensKey, ModelEntry, Pricing};
pub use keys::{ENTRY_KEYS, KeyDoc};
pub use presets::{Dialect, PRESETS, Preset};
pub use switch::Switch;

use crate::address::Address;
use crate::catalogue::Capabilities;
use crate::http::Proxy;
use crate::probe::Profile;
pub use crate::structured::StructuredOutput;

/// Providers pause while they think; four minutes without a byte is a hang.
pub const DEFAULT_STREAM_CHUNK_TIMEOUT: Duration = Duration::from_secs(240);
pub const DEFAULT_MAX_RETRIES: u32 = 2;
/// Longer than any answer that somebody waits for.
pub const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);

/// Where the API key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In the entry.
    Entry,
    /// In that environment variable.
    Env(&'static str),
    None,
}

/// A model, ready to be built.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    pub name: String,
    /// The preset's name, such as `openai`.
    pub provider: &'static str,
    pub dialect: Dialect,
    /// What the provider calls it.
    pub model: String,
    pub display_name: Option<String>,
    pub description: Option<String>,
    pub base_url: Address,
    pub api_key: Option<SecretString>,
    /// They may carry credentials.
    pub headers: Vec<(String, SecretString)>,
    pub max_tokens: Option<u32>,
    pub max_tokens_key: MaxTokensKey,
    pub temperature: Option<f64>,
    /// How long to wait for the response headers; `stream_chunk_timeout` when not given.
    pub timeout: Option<Duration>,
    pub stream_chunk_timeout: Duration,
    /// How long a connection may take; the client's default when not given.
    pub connect_timeout: Option<Duration>,
    /// A call with all its repetitions and pauses.
    pub total_timeout: Duration,
    /// How often [`Resilient`](crate::Resilient) repeats a failed call.
    pub max_retries: u32,
    /// Names of the models that are asked when this one fails.
    pub fallbacks: Vec<String>,
    /// Calls at once at this address.
    pub max_concurrent_calls: Option<u32>,
    pub requests_per_minute: Option<u32>,
    pub tokens_per_minute: Option<u32>,
    /// Instead of the network's proxy.
    pub proxy: Option<Proxy>,
    /// Certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    pub supports_thinking: bool,
    pub supports_reasoning_effort: bool,
    pub supports_vision: bool,
    pub when_thinking_enabled: Map<String, Value>,
    pub when_thinking_disabled: Map<String, Value>,
    /// Whether the provider wants to see its `reasoning_content` again.
    pub send_reasoning: bool,
    /// Whether the parts of a request that stay the same are marked for the provider's cache.
    pub prompt_caching: bool,
    /// How JSON is asked for; by provider and model when not given.
    pub structured_output: Option<StructuredOutput>,
    pub context_window: Option<u32>,
    /// Merged into every request body.
    pub extra_body: Map<String, Value>,
    pub pricing: Option<Pricing>,
    /// What of the model's text is read as tool calls and as reasoning.
    pub text: crate::TextOptions,
    /// Keys of the entry that have no meaning here.
    pub ignored: Vec<String>,
    pub key_source: KeySource,
    /// Keys of the entry that became parameters of every request; what `extra_body` says is not among them.
    pub parameters: Vec<String>,
    /// What the model can do, and who says so. The fields above that say the same are taken from here.
    pub capabilities: Capabilities,
    declared: Declared,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelConfigError {
    #[error("a model entry needs `{key}`{}", of(.name))]
    Missing { name: String, key: &'static str },
    #[error("model `{name}`: `use: {given}` is not known; use one of: {}", presets::all_names())]
    UnknownProvider { name: String, given: String },
    #[error("model `{name}` needs an API key: set `api_key`, or {env} in the environment")]
    MissingKey { name: String, env: &'static str },
    #[error("model `{name}`: {message}")]
    Invalid { name: String, message: String },
}

fn of(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" (model `{name}`)") }
}

impl ModelConfig {
    /// Completes an entry from its preset. `lookup` reads the environment: the preset's key variable, if need be.
    pub fn resolve(
        entry: ModelEntry,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelConfigError> {
        let missing = |key| Err(ModelConfigError::Missing { name: entry.name.clone(), key });
        if entry.name.is_empty() && entry.model.is_empty() {
            return missing("name");
        }
        if entry.provider.is_empty() {
            return missing("use");
        }
        if entry.model.is_empty() {
            return missing("model");
        }
        let name = if entry.name.is_empty() { entry.model.clone() } else { entry.name.clone() };
        let Some(preset) = Preset::find(&entry.provider) else {
            return Err(ModelConfigError::UnknownProvider { name, given: entry.provider });
        };
        let (base_url, spoken) = place::base_url(entry.base_url.as_deref(), preset, &name)?;
        let dialect = place::dialect(entry.use_responses_api, preset, spoken, &base_url, &name)?;
        let (api_key, key_source) = api_key(&entry, preset, &name, lookup)?;
        let declared = Declared::of(&entry);
        let seconds = |key: &'static str, value: Option<f64>| duration(&name, key, value);
        let timeout = seconds("timeout", entry.timeout)?;
        let stream_chunk_timeout = seconds("stream_chunk_timeout", entry.stream_chunk_timeout)?;
        let connect_timeout = seconds("connect_timeout", entry.connect_timeout)?;
        let total_timeout = seconds("total_timeout", entry.total_timeout)?;
        let proxy = entry.proxy.as_deref().map(Proxy::parse).transpose();
        let proxy = proxy.map_err(|message| ModelConfigError::Invalid { name: name.clone(), message })?;
        let headers = headers(&name, entry.default_headers.unwrap_or_default())?;

        let mut extra_body = entry.model_kwargs.unwrap_or_default();
        let (mut ignored, mut parameters) = (Vec::new(), Vec::new());
        for (key, value) in entry.other {
            match key.as_str() {
                _ if value.is_null() => {}
                _ if keys::REQUEST_KEYS.contains(&key.as_str()) => {
                    parameters.push(key.clone());
                    extra_body.insert(key, value);
                }
                _ => ignored.push(key),
            }
        }
        if entry.prompt_caching == Some(true) && preset.dialect != Dialect::Anthropic {
            // The others cache by themselves.
            ignored.push("prompt_caching".to_owned());
        }
        let insisted = entry.extra_body.unwrap_or_default();
        parameters.retain(|key| !insisted.contains_key(key));
        crate::merge::deep(&mut extra_body, insisted);
        let max_tokens_key = match (entry.max_tokens_key, entry.max_completion_tokens) {
            (Some(key), _) => key,
            (None, Some(_)) => MaxTokensKey::MaxCompletionTokens,
            (None, None) => preset.max_tokens_key(&entry.model),
        };
        let capabilities = declared.capabilities(preset, dialect, &base_url, &entry.model, None);
        let config = Self {
            text: declared.text(preset, &base_url, &capabilities),
            capabilities,
            declared,
            key_source,
            parameters,
            provider: preset.name,
            dialect,
            max_tokens_key,
            send_reasoning: false,
            prompt_caching: entry.prompt_caching.unwrap_or(preset.dialect == Dialect::Anthropic),
            structured_output: entry.structured_output,
            model: entry.model,
            display_name: entry.display_name,
            description: entry.description,
            base_url,
            api_key,
            headers,
            max_tokens: entry.max_completion_tokens.or(entry.max_tokens),
            temperature: entry.temperature,
            timeout,
            stream_chunk_timeout: stream_chunk_timeout.unwrap_or(DEFAULT_STREAM_CHUNK_TIMEOUT),
            connect_timeout,
            total_timeout: total_timeout.unwrap_or(DEFAULT_TOTAL_TIMEOUT),
            max_retries: entry.max_retries.unwrap_or(DEFAULT_MAX_RETRIES),
            fallbacks: entry.fallbacks.unwrap_or_default(),
            max_concurrent_calls: entry.max_concurrent_calls,
            requests_per_minute: entry.requests_per_minute,
            tokens_per_minute: entry.tokens_per_minute,
            proxy,
            ca_file: entry.ca_file,
            supports_thinking: false,
            supports_reasoning_effort: false,
            supports_vision: false,
            when_thinking_enabled: Map::new(),
            when_thinking_disabled: Map::new(),
            context_window: None,
            extra_body,
            pricing: None,
            ignored,
            name,
        };
        Ok(config.settled())
    }

    /// The same model, with what a probe of it found. A profile of another endpoint or model changes nothing.
    #[must_use]
    pub fn with_profile(mut self, profile: &Profile) -> Self {
        if let (true, Some(preset)) = (profile.is_of(&self), Preset::find(self.provider)) {
            self.capabilities =
                self.declared.capabilities(preset, self.dialect, &self.base_url, &self.model, Some(profile));
            self.text = self.declared.text(preset, &self.base_url, &self.capabilities);
        }
        self.settled()
    }

    /// Spells the capabilities in the fields that say the same.
    fn settled(mut self) -> Self {
        let known = &self.capabilities;
        self.context_window = known.context_window.value;
        self.supports_vision = known.vision.yes();
        self.supports_thinking = known.thinks();
        self.supports_reasoning_effort = known.effort.value.as_ref().is_some_and(|words| !words.is_empty());
        self.send_reasoning = known.send_reasoning.yes();
        let switch = known.thinking_switch.value.clone().unwrap_or_default();
        self.when_thinking_enabled = switch.on;
        self.when_thinking_disabled = switch.off;
        self.pricing = known.price.value.clone();
        self
    }

    pub fn profile(&self) -> hart_kernel::ModelProfile {
        hart_kernel::ModelProfile {
            name: self.name.clone(),
            provider: self.provider.to_owned(),
            served_as: self.model.clone(),
            context_window: self.context_window,
            max_output_tokens: self.max_tokens,
            vision: self.supports_vision,
            thinking: self.supports_thinking,
            price: self.pricing.as_ref().and_then(Pricing::price),
        }
    }
}

fn api_key(
    entry: &ModelEntry,
    preset: &Preset,
    name: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<SecretString>, KeySource), ModelConfigError> {
    let filled = |key: String| Some(key.trim().to_owned()).filter(|key| !key.is_empty());
    let given = entry.api_key.clone().and_then(filled).map(|key| (key, KeySource::Entry));
    let from_env = |env: &&'static str| Some((lookup(env).and_then(filled)?, KeySource::Env(env)));
    let found = given.or_else(|| preset.key_env.iter().find_map(from_env));
    match (found, preset.key_env.first()) {
        (Some((key, _)), _) if reqwest::header::HeaderValue::try_from(&key).is_err() => {
            let message = "`api_key` holds a character that no key has; was it copied whole?".to_owned();
            Err(ModelConfigError::Invalid { name: name.to_owned(), message })
        }
        (Some((key, source)), _) => Ok((Some(key.into()), source)),
        // At an address of the user's own, whether a key is needed is for that server to say.
        (None, Some(env)) if entry.base_url.is_none() => {
            Err(ModelConfigError::MissingKey { name: name.to_owned(), env })
        }
        (None, _) => Ok((None, KeySource::None)),
    }
}

fn duration(name: &str, key: &str, seconds: Option<f64>) -> Result<Option<Duration>, ModelConfigError> {
    let Some(seconds) = seconds else { return Ok(None) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
        _ => Err(ModelConfigError::Invalid {
            name: name.to_owned(),
            message: format!("`{key}: {seconds}` must be a positive number of seconds"),
        }),
    }
}

fn headers(name: &str, given: Map<String, Value>) -> Result<Vec<(String, SecretString)>, ModelConfigError> {
    let invalid = |key: &str, why: &str| ModelConfigError::Invalid {
        name: name.to_owned(),
        message: format!("`default_headers`: `{key}` {why}"),
    };
    let mut headers = Vec::new();
    for (key, value) in given {
        let text = match value {
            Value::String(text) => text,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err(invalid(&key, "must be text")),
        };
        if reqwest::header::HeaderName::try_from(&key).is_err()
            || reqwest::header::HeaderValue::try_from(&text).is_err()
        {
            return Err(invalid(&key, "is not a valid HTTP header"));
        }
        headers.push((key, text.into()));
    }
    Ok(headers)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
