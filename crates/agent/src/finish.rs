//! Why a model stopped, whatever its provider calls it.
//!
//! Invariant: a word nobody knows counts as a normal end; a run is never ended for a spelling.

use hart_types::Message;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It had said what it wanted to say.
    Normal,
    /// There was no room for more.
    Length,
    /// It wants to go on: a provider's own tools are at work.
    Unfinished,
    /// It, or its provider, declined; with the provider's word.
    Refused(String),
}

const LENGTH: [&str; 5] =
    ["length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"];

const REFUSED: [&str; 13] = [
    "content_filter",
    "content_filtered",
    "guardrail_intervened",
    "refusal",
    "sensitive",
    // Gemini's
    "safety",
    "recitation",
    "language",
    "blocklist",
    "prohibited_content",
    "spii",
    "image_safety",
    "image_prohibited_content",
];

impl Finish {
    pub(crate) fn of(message: &Message) -> Self {
        let told = |key: &str| message.response_metadata.get(key).and_then(Value::as_str);
        let incomplete =
            message.response_metadata.get("incomplete_details").and_then(|why| why["reason"].as_str());
        let words = [told("finish_reason"), told("stop_reason"), incomplete];
        let words = words.into_iter().flatten().map(str::to_ascii_lowercase);
        let refused = message.additional_kwargs.get("refusal").and_then(Value::as_str);
        let mut finish = match refused {
            Some(why) if !why.is_empty() => Self::Refused("refusal".to_owned()),
            _ => Self::Normal,
        };
        for word in words {
            if LENGTH.contains(&word.as_str()) {
                return Self::Length;
            }
            if word == "pause_turn" {
                finish = Self::Unfinished;
            }
            if REFUSED.contains(&word.as_str()) {
                finish = Self::Refused(word);
            }
        }
        finish
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finish(metadata: Value, kwargs: Value) -> Finish {
        let mut message = Message::ai("");
        message.response_metadata = metadata.as_object().unwrap().clone();
        message.additional_kwargs = kwargs.as_object().unwrap().clone();
        Finish::of(&message)
    }

    #[test]
    fn every_dialects_word_is_known() {
        let normal = ["stop", "tool_calls", "end_turn", "stop_sequence", "tool_use", "STOP", "", "weird"];
        for word in normal {
            assert_eq!(finish(json!({"finish_reason": word}), json!({})), Finish::Normal, "{word}");
        }
        for word in ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens"] {
            assert_eq!(finish(json!({"stop_reason": word}), json!({})), Finish::Length, "{word}");
        }
        for word in
            ["content_filter", "refusal", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"]
        {
            let refused = Finish::Refused(word.to_ascii_lowercase());
            assert_eq!(finish(json!({"finish_reason": word}), json!({})), refused, "{word}");
        }
        assert_eq!(finish(json!({"stop_reason": "pause_turn"}), json!({})), Finish::Unfinished);
        let incomplete = |why: &str| json!({"status": "incomplete", "incomplete_details": {"reason": why}});
        assert_eq!(finish(incomplete("max_output_tokens"), json!({})), Finish::Length);
        assert!(matches!(finish(incomplete("content_filter"), json!({})), Finish::Refused(_)));
        assert!(matches!(
            finish(json!({"finish_reason": "stop"}), json!({"refusal": "no"})),
            Finish::Refused(_)
        ));
        assert_eq!(finish(json!({}), json!({"refusal": ""})), Finish::Normal);
    }
}
