//! Token counts in LangChain's normalised form.
//!
//! Invariant: `input_tokens` includes cached tokens, whatever the provider's own convention is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageMetadata {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub total_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_token_details: Option<InputTokenDetails>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_token_details: Option<OutputTokenDetails>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputTokenDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation: Option<u64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputTokenDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl UsageMetadata {
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, ..Self::default() }
    }

    /// Adds another call's counts, as a run's total does.
    pub fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.total_tokens += other.total_tokens;
        if let Some(theirs) = &other.input_token_details {
            let ours = self.input_token_details.get_or_insert_default();
            add_option(&mut ours.cache_read, theirs.cache_read);
            add_option(&mut ours.cache_creation, theirs.cache_creation);
        }
        if let Some(theirs) = &other.output_token_details {
            let ours = self.output_token_details.get_or_insert_default();
            add_option(&mut ours.reasoning, theirs.reasoning);
        }
    }
}

fn add_option(ours: &mut Option<u64>, theirs: Option<u64>) {
    if let Some(theirs) = theirs {
        *ours = Some(ours.unwrap_or(0) + theirs);
    }
}
