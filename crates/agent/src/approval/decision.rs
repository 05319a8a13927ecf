//! The four things a person can say about a call.
//!
//! Invariant: a decision is read strictly; what is missing or unknown is an error, never a default.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionKind {
    /// It runs as it is.
    Approve,
    /// Something else runs in its place.
    Edit,
    /// It does not run, and the model hears why.
    Reject,
    /// It does not run; what the person says is its result.
    Respond,
}

impl DecisionKind {
    pub const ALL: [Self; 4] = [Self::Approve, Self::Edit, Self::Reject, Self::Respond];

    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Edit => "edit",
            Self::Reject => "reject",
            Self::Respond => "respond",
        }
    }

    pub(super) fn schema(self) -> Value {
        let (properties, required) = match self {
            Self::Approve => (json!({}), vec!["type"]),
            Self::Edit => {
                let action = json!({
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
                    "required": ["name", "args"],
                });
                (json!({"edited_action": action}), vec!["type", "edited_action"])
            }
            Self::Reject => (json!({"message": {"type": "string"}}), vec!["type"]),
            Self::Respond => (json!({"message": {"type": "string"}}), vec!["type", "message"]),
        };
        let mut all = Map::from_iter([("type".to_owned(), json!({"const": self.name()}))]);
        if let Value::Object(properties) = properties {
            all.extend(properties);
        }
        json!({"type": "object", "properties": all, "required": required})
    }
}

impl fmt::Display for DecisionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Decision {
    Approve,
    Edit { edited_action: EditedAction },
    Reject { message: Option<String> },
    Respond { message: String },
}

/// What runs instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditedAction {
    pub name: String,
    pub args: Map<String, Value>,
}

impl Decision {
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Self::deserialize(value).map_err(|error| error.to_string())
    }

    pub fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve => DecisionKind::Approve,
            Self::Edit { .. } => DecisionKind::Edit,
            Self::Reject { .. } => DecisionKind::Reject,
            Self::Respond { .. } => DecisionKind::Respond,
        }
    }
}

/// Why an answer cannot be used. The question stays open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    #[error(
        "the answer is not of the form {{\"decisions\": [{{\"type\": \"approve\"}}, …]}}; the question is still open"
    )]
    Shape,
    #[error(
        "{given} decisions were given, but {} are needed, one for each of {} in this order; the question is still open",
        asked.len(), asked.join(", ")
    )]
    Count { given: usize, asked: Vec<String> },
    #[error("the decision about `{tool}` cannot be read: {why}; the question is still open")]
    Malformed { tool: String, why: String },
    #[error(
        "`{decision}` is not allowed for `{tool}`; allowed are: {}; the question is still open",
        names(allowed)
    )]
    NotAllowed { tool: String, decision: DecisionKind, allowed: Vec<DecisionKind> },
}

fn names(kinds: &[DecisionKind]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}
