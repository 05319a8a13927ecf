//! The chunks of a stream as the API sends them.
//!
//! Invariant: what is not read here is passed over; texts borrow from the event.

use hart_types::{InputTokenDetails, OutputTokenDetails, UsageMetadata};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::Text;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(rename = "promptFeedback")]
    pub(super) feedback: Option<Feedback<'a>>,
    #[serde(rename = "usageMetadata")]
    pub(super) usage: Option<Usage>,
    #[serde(rename = "modelVersion")]
    pub(super) model: Option<Text<'a>>,
    #[serde(rename = "responseId")]
    pub(super) id: Option<Text<'a>>,
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<WireContent<'a>>,
    #[serde(rename = "finishReason")]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(rename = "finishMessage")]
    pub(super) finish_message: Option<Text<'a>>,
    #[serde(rename = "groundingMetadata")]
    pub(super) grounding: Option<&'a RawValue>,
    #[serde(rename = "citationMetadata")]
    pub(super) citations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    pub(super) thought: Option<bool>,
    #[serde(rename = "thoughtSignature")]
    pub(super) signature: Option<Text<'a>>,
    #[serde(rename = "functionCall")]
    pub(super) function_call: Option<WireCall<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Feedback<'a> {
    #[serde(borrow, rename = "blockReason")]
    pub(super) reason: Option<Text<'a>>,
    #[serde(rename = "blockReasonMessage")]
    pub(super) message: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) prompt_token_count: Option<u64>,
    pub(super) candidates_token_count: Option<u64>,
    pub(super) thoughts_token_count: Option<u64>,
    pub(super) cached_content_token_count: Option<u64>,
    /// Results of tools that run at the provider.
    pub(super) tool_use_prompt_token_count: Option<u64>,
    pub(super) total_token_count: Option<u64>,
}

impl Usage {
    pub(super) fn says_something(&self) -> bool {
        self.prompt_token_count.is_some() || self.total_token_count.is_some()
    }

    /// Google counts thoughts apart from the answer, and the cached part of the prompt within it.
    pub(super) fn normalised(self) -> UsageMetadata {
        let input = self.prompt_token_count.unwrap_or(0) + self.tool_use_prompt_token_count.unwrap_or(0);
        let output = self.candidates_token_count.unwrap_or(0) + self.thoughts_token_count.unwrap_or(0);
        let mut usage = UsageMetadata::new(input, output);
        usage.total_tokens = self.total_token_count.unwrap_or(usage.total_tokens);
        if let Some(cached) = self.cached_content_token_count {
            usage.input_token_details =
                Some(InputTokenDetails { cache_read: Some(cached), ..InputTokenDetails::default() });
        }
        if let Some(thoughts) = self.thoughts_token_count {
            usage.output_token_details =
                Some(OutputTokenDetails { reasoning: Some(thoughts), ..OutputTokenDetails::default() });
        }
        usage
    }
}
