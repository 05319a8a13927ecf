//! Makes a model from its configuration.
//!
//! Invariant: this is the only place that chooses between dialects.

use std::sync::Arc;

use hart_kernel::ChatModel;

use crate::anthropic::Anthropic;
use crate::config::{Dialect, ModelConfig};
use crate::fitted::{self, Fitted};
use crate::openai::OpenAi;
use crate::responses::Responses;

/// The model of `config`, talking over `http`. It is never asked for what it is known not to take.
pub fn build(config: &ModelConfig, http: &reqwest::Client) -> Arc<dyn ChatModel> {
    let (taken, left_out) = fitted::without_refused(config);
    Arc::new(Fitted::new(dialect(&taken, http), config, left_out))
}

/// The same model, asked for whatever it is asked for: how a probe finds out what it takes.
pub(crate) fn dialect(config: &ModelConfig, http: &reqwest::Client) -> Arc<dyn ChatModel> {
    match config.dialect {
        Dialect::OpenAi => Arc::new(OpenAi::new(config, http)),
        Dialect::Anthropic => Arc::new(Anthropic::new(config, http)),
        Dialect::Responses => Arc::new(Responses::new(config, http)),
    }
}
