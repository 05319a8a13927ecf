//! Makes a model from its configuration.
//!
//! Invariant: this is the only place that chooses between dialects.

use std::sync::Arc;

use hart_kernel::ChatModel;

use crate::anthropic::Anthropic;
use crate::config::{Dialect, ModelConfig};
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::responses::Responses;

/// The model of `config`, talking over `http`.
pub fn build(config: &ModelConfig, http: &reqwest::Client) -> Arc<dyn ChatModel> {
    match config.dialect {
        Dialect::OpenAi => Arc::new(OpenAi::new(config, http)),
        Dialect::Anthropic => Arc::new(Anthropic::new(config, http)),
        Dialect::Responses => Arc::new(Responses::new(config, http)),
        Dialect::Gemini => Arc::new(Gemini::new(config, http)),
        Dialect::Ollama => Arc::new(Ollama::new(config, http)),
    }
}
