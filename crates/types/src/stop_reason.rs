//! Why a model stopped, whatever its provider calls it.
//!
//! Invariant: the message keeps the provider's own words; this only reads them.

use serde_json::{Map, Value};

use crate::Message;

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It was finished, or came to a stop sequence.
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The limit of the answer, or of the whole conversation, was reached: what is there is cut off.
    Length,
    /// The model declined, or a filter of the provider stepped in.
    Refused,
    /// It wants to go on: tools of the provider's own are at work.
    Unfinished,
    /// The provider gave a reason that fits none of these.
    Other,
}

/// Where providers say it, in LangChain's spelling.
const KEYS: [&str; 3] = ["finish_reason", "stop_reason", "done_reason"];

impl StopReason {
    /// The reason that a provider's word stands for.
    pub fn of_word(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete" | "completed" => {
                Self::Stop
            }
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => Self::ToolCalls,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "model_length"
            | "model_context_window_exceeded" => Self::Length,
            "content_filter"
            | "content_filtered"
            | "refusal"
            | "safety"
            | "recitation"
            | "language"
            | "blocklist"
            | "prohibited_content"
            | "spii"
            | "image_safety"
            | "image_prohibited_content"
            | "image_recitation"
            | "guardrail_intervened"
            | "sensitive" => Self::Refused,
            "pause_turn" => Self::Unfinished,
            _ => Self::Other,
        }
    }

    /// What a message's `response_metadata` says; `None` when it says nothing.
    pub fn of_metadata(metadata: &Map<String, Value>) -> Option<Self> {
        word(metadata).map(Self::of_word)
    }
}

fn word(metadata: &Map<String, Value>) -> Option<&str> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).filter(|word| !word.is_empty());
    // The Responses API gives the reason only for an answer that is not whole.
    let why = metadata.get("incomplete_details").and_then(|why| why.get("reason")).and_then(Value::as_str);
    let word = why.or_else(|| KEYS.iter().find_map(|key| text(key)));
    word.or_else(|| text("status").filter(|status| *status == "completed"))
}

impl Message {
    /// Why the model stopped; `None` for what no model said, and where it was not told.
    pub fn stop_reason(&self) -> Option<StopReason> {
        let ai = self.as_ai()?;
        let told = StopReason::of_metadata(&self.response_metadata);
        let declined = self.additional_kwargs.get("refusal").and_then(Value::as_str);
        match told {
            // Some call an answer finished that declines, or that waits for its tools.
            Some(StopReason::Stop | StopReason::ToolCalls | StopReason::Other) | None
                if declined.is_some_and(|words| !words.is_empty()) =>
            {
                Some(StopReason::Refused)
            }
            Some(StopReason::Stop) if !ai.tool_calls.is_empty() => Some(StopReason::ToolCalls),
            told => told,
        }
    }

    /// The provider's own word for it, in lower case; `refusal` for an answer that declines in a field of its own.
    pub fn stop_word(&self) -> Option<String> {
        let told = StopReason::of_metadata(&self.response_metadata);
        match self.stop_reason()? {
            StopReason::Refused if told != Some(StopReason::Refused) => Some("refusal".to_owned()),
            _ => word(&self.response_metadata).map(str::to_ascii_lowercase),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Body, ToolCall};

    fn said(metadata: Value) -> Message {
        let mut message = Message::ai("hm");
        message.response_metadata = metadata.as_object().unwrap().clone();
        message
    }

    #[test]
    fn every_provider_s_words() {
        use StopReason::{Length, Other, Refused, Stop, ToolCalls, Unfinished};
        for (metadata, reason) in [
            (json!({"finish_reason": "stop"}), Some(Stop)),
            (json!({"finish_reason": "tool_calls"}), Some(ToolCalls)),
            (json!({"finish_reason": "length"}), Some(Length)),
            (json!({"finish_reason": "content_filter"}), Some(Refused)),
            (json!({"stop_reason": "end_turn", "stop_sequence": null}), Some(Stop)),
            (json!({"stop_reason": "stop_sequence"}), Some(Stop)),
            (json!({"stop_reason": "tool_use"}), Some(ToolCalls)),
            (json!({"stop_reason": "max_tokens"}), Some(Length)),
            (json!({"stop_reason": "model_context_window_exceeded"}), Some(Length)),
            (json!({"stop_reason": "refusal"}), Some(Refused)),
            (json!({"stop_reason": "pause_turn"}), Some(Unfinished)),
            (json!({"finish_reason": "STOP"}), Some(Stop)),
            (json!({"finish_reason": "MAX_TOKENS"}), Some(Length)),
            (json!({"finish_reason": "SAFETY"}), Some(Refused)),
            (json!({"finish_reason": "RECITATION"}), Some(Refused)),
            (json!({"finish_reason": "BLOCKLIST"}), Some(Refused)),
            (json!({"finish_reason": "PROHIBITED_CONTENT"}), Some(Refused)),
            (json!({"finish_reason": "SPII"}), Some(Refused)),
            (json!({"finish_reason": "IMAGE_SAFETY"}), Some(Refused)),
            (json!({"stop_reason": "max_output_tokens"}), Some(Length)),
            (json!({"finish_reason": "weird"}), Some(Other)),
            (json!({"finish_reason": "MALFORMED_FUNCTION_CALL"}), Some(Other)),
            (json!({"done_reason": "stop"}), Some(Stop)),
            (json!({"done_reason": "load"}), Some(Other)),
            (
                json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
                Some(Length),
            ),
            (
                json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
                Some(Refused),
            ),
            (json!({"status": "completed", "incomplete_details": null}), Some(Stop)),
            (json!({"finish_reason": "", "model_name": "m"}), None),
            (json!({}), None),
        ] {
            assert_eq!(said(metadata.clone()).stop_reason(), reason, "{metadata}");
        }
    }

    #[test]
    fn a_stop_with_calls_waits_for_them_and_one_with_a_refusal_is_one() {
        let mut message = said(json!({"finish_reason": "STOP"}));
        let Body::Ai(ai) = &mut message.body else { panic!("an answer") };
        ai.tool_calls.push(ToolCall::new("1", "ls", Map::new()));
        assert_eq!(message.stop_reason(), Some(StopReason::ToolCalls));
        message.additional_kwargs.insert("refusal".into(), "I will not.".into());
        assert_eq!(message.stop_reason(), Some(StopReason::Refused));
        let mut human = Message::human("hi");
        human.response_metadata.insert("finish_reason".into(), "stop".into());
        assert_eq!(human.stop_reason(), None);
    }
    #[test]
    fn the_provider_s_word_is_kept_and_a_refusal_has_one() {
        for (metadata, refusal, reason, word) in [
            (json!({"finish_reason": "SAFETY"}), "", Some(StopReason::Refused), Some("safety")),
            (json!({"finish_reason": "stop"}), "no", Some(StopReason::Refused), Some("refusal")),
            (json!({"finish_reason": "tool_calls"}), "no", Some(StopReason::Refused), Some("refusal")),
            (json!({"finish_reason": "weird"}), "no", Some(StopReason::Refused), Some("refusal")),
            (json!({}), "no", Some(StopReason::Refused), Some("refusal")),
            (json!({}), "", None, None),
            (json!({"finish_reason": "length"}), "no", Some(StopReason::Length), Some("length")),
            (json!({"stop_reason": "pause_turn"}), "no", Some(StopReason::Unfinished), Some("pause_turn")),
            (json!({"finish_reason": "weird"}), "", Some(StopReason::Other), Some("weird")),
            (
                json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
                "",
                Some(StopReason::Refused),
                Some("content_filter"),
            ),
        ] {
            let mut message = said(metadata.clone());
            message.additional_kwargs.insert("refusal".into(), refusal.into());
            assert_eq!(message.stop_reason(), reason, "{metadata}");
            assert_eq!(message.stop_word().as_deref(), word, "{metadata}");
        }
    }
}
