//! The answer to a question of `ask_clarification`, as DeerFlow's clients send it.
//!
//! Invariant: the message's text is what the model reads; the form beside it says which question it answers.

use hart_types::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `additional_kwargs.human_input_response` of a user's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HumanInputResponse {
    pub version: u32,
    pub kind: String,
    pub source: String,
    /// `artifact.human_input.request_id` of the question.
    pub request_id: String,
    /// `text`, also for a submitted form, or `option`.
    pub response_kind: String,
    pub value: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
}

const KEY: &str = "human_input_response";

impl HumanInputResponse {
    /// An answer in words.
    pub fn text(request_id: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            version: 1,
            kind: KEY.to_owned(),
            source: "ask_clarification".to_owned(),
            request_id: request_id.into(),
            response_kind: "text".to_owned(),
            value: value.into(),
            option_id: None,
        }
    }

    /// One of the options that were offered.
    pub fn option(
        request_id: impl Into<String>,
        option_id: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let response_kind = "option".to_owned();
        Self { response_kind, option_id: Some(option_id.into()), ..Self::text(request_id, value) }
    }

    /// The message that answers. Clients show it as part of the question, not as a message of its own.
    pub fn into_message(self) -> Message {
        let mut message = Message::human(self.value.as_str());
        message.additional_kwargs.insert("hide_from_ui".to_owned(), Value::Bool(true));
        message.additional_kwargs.insert(KEY.to_owned(), serde_json::to_value(&self).unwrap_or_default());
        message
    }

    /// What a message answers, if it is such an answer.
    pub fn of(message: &Message) -> Option<Self> {
        let response = message.additional_kwargs.get(KEY)?;
        Self::deserialize(response).ok().filter(|response| response.kind == KEY)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_spelled_as_deerflow_spells_it() {
        let message = HumanInputResponse::option("clarification:c1", "option-2", "blue").into_message();
        assert_eq!(message.text(), "blue");
        let expected = json!({"hide_from_ui": true, "human_input_response": {
            "version": 1, "kind": "human_input_response", "source": "ask_clarification",
            "request_id": "clarification:c1", "response_kind": "option", "value": "blue", "option_id": "option-2"}});
        assert_eq!(Value::Object(message.additional_kwargs.clone()), expected);
        assert_eq!(HumanInputResponse::of(&message).unwrap().option_id.as_deref(), Some("option-2"));
        let text = HumanInputResponse::text("clarification:c1", "green").into_message();
        assert!(
            !text.additional_kwargs["human_input_response"].as_object().unwrap().contains_key("option_id")
        );
        assert_eq!(HumanInputResponse::of(&Message::human("green")), None);
    }
}
