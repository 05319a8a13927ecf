//! A question to a person and its answer, as they cross the wire.
//!
//! Invariant: the same question has the same id whenever it is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What is asked, as LangGraph's clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    pub value: Value,
    /// 32 hexadecimal digits, the same when the same question is asked again.
    pub id: String,
    /// A JSON schema of the answer, for clients that make a form of it.
    pub response_schema: Option<Value>,
}

impl Interrupt {
    /// `subject` is what the question is about, such as a call's id: unique in the thread, and the same next time.
    pub fn new(subject: &str, value: impl Into<Value>) -> Self {
        let digest = Sha256::digest(subject);
        let id = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { value: value.into(), id, response_schema: None }
    }
}

/// The answer to one question, or to several by their ids.
#[derive(Clone, Debug, PartialEq)]
pub enum Resume {
    One(Value),
    ById(BTreeMap<String, Value>),
}

impl Resume {
    /// LangGraph's `command.resume`: any value, or a map all of whose keys are ids.
    pub fn from_json(value: Value) -> Self {
        match value {
            // An empty one answers nothing.
            Value::Object(map) if map.keys().all(|key| is_id(key)) => Self::ById(map.into_iter().collect()),
            value => Self::One(value),
        }
    }

    /// As [`Resume::from_json`] reads it.
    pub fn into_json(self) -> Value {
        match self {
            Self::One(value) => value,
            Self::ById(answers) => answers.into_iter().collect(),
        }
    }
}

fn is_id(key: &str) -> bool {
    key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}
