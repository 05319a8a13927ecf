//! One element of `models:` as the user wrote it.
//!
//! Invariant: nothing is judged here; `Debug` shows neither a key nor a password.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{StructuredOutput, Switch};
use crate::address;
use crate::catalogue::Facts;

/// [`ENTRY_KEYS`](super::ENTRY_KEYS) documents every key.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct ModelEntry {
    pub name: String,
    #[serde(rename = "use")]
    pub provider: String,
    pub model: String,
    pub display_name: Option<String>,
    pub description: Option<String>,
    #[serde(alias = "openai_api_key", alias = "anthropic_api_key", alias = "google_api_key")]
    pub api_key: Option<String>,
    #[serde(alias = "api_base", alias = "openai_api_base", alias = "anthropic_api_url")]
    pub base_url: Option<String>,
    #[serde(alias = "max_output_tokens", alias = "num_predict")]
    pub max_tokens: Option<u32>,
    pub max_completion_tokens: Option<u32>,
    pub temperature: Option<f64>,
    #[serde(alias = "request_timeout", alias = "default_request_timeout")]
    pub timeout: Option<f64>,
    pub max_retries: Option<u32>,
    pub stream_chunk_timeout: Option<f64>,
    pub supports_thinking: Option<bool>,
    pub supports_reasoning_effort: Option<bool>,
    pub supports_vision: Option<bool>,
    pub when_thinking_enabled: Option<Map<String, Value>>,
    pub when_thinking_disabled: Option<Map<String, Value>>,
    pub thinking: Option<Map<String, Value>>,
    #[serde(alias = "num_ctx")]
    pub context_window: Option<u32>,
    pub extra_body: Option<Map<String, Value>>,
    pub model_kwargs: Option<Map<String, Value>>,
    pub default_headers: Option<Map<String, Value>>,
    pub pricing: Option<Pricing>,
    pub send_reasoning: Option<bool>,
    pub max_tokens_key: Option<MaxTokensKey>,
    pub capabilities: Option<Facts>,
    pub use_responses_api: Option<bool>,
    pub connect_timeout: Option<f64>,
    pub total_timeout: Option<f64>,
    pub proxy: Option<String>,
    pub ca_file: Option<PathBuf>,
    pub fallbacks: Option<Vec<String>>,
    pub max_concurrent_calls: Option<u32>,
    pub requests_per_minute: Option<u32>,
    pub tokens_per_minute: Option<u32>,
    pub text_tool_calls: Option<Switch>,
    pub think_tags: Option<Switch>,
    #[serde(alias = "enable_prompt_caching")]
    pub prompt_caching: Option<bool>,
    pub structured_output: Option<StructuredOutput>,
    /// Everything else: sampling parameters go into the request, the rest is reported as ignored.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Money per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pricing {
    pub currency: Option<String>,
    pub input_per_million: Option<f64>,
    pub output_per_million: Option<f64>,
    pub input_cache_hit_per_million: Option<f64>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Pricing {
    /// Nothing can be reckoned from half a price.
    pub(super) fn price(&self) -> Option<hart_kernel::Price> {
        Some(hart_kernel::Price {
            input: self.input_per_million?,
            output: self.output_per_million?,
            cached_input: self.input_cache_hit_per_million,
        })
    }
}

/// How the OpenAI dialect spells the limit of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensKey {
    MaxTokens,
    MaxCompletionTokens,
}

impl fmt::Debug for ModelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEntry")
            .field("name", &self.name)
            .field("use", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .field("base_url", &self.base_url.as_deref().map(address::shown))
            .finish_non_exhaustive()
    }
}
