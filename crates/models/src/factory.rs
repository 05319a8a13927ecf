//! Makes a model from its configuration.
//!
//! Invariant: this is the only place that chooses between dialects.

use std::sync::Arc;

use hart_kernel::ChatModel;

use crate::anthropic::Anthropic;
use crate::config::{Dialect, ModelConfig};
use crate::openai::OpenAi;
use crate::text_calls::{CallsInText, TextCalls, TextOptions};

/// The model of `config`, talking over `http`.
pub fn build(config: &ModelConfig, http: &reqwest::Client) -> Arc<dyn ChatModel> {
    let model: Arc<dyn ChatModel> = match config.dialect {
        Dialect::OpenAi => Arc::new(OpenAi::new(config, http)),
        Dialect::Anthropic => Arc::new(Anthropic::new(config, http)),
    };
    let off = TextOptions { calls: CallsInText::Off, think: false, opened: false };
    if config.text == off { model } else { Arc::new(TextCalls::new(model, config.text)) }
}
