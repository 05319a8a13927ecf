//! Tool calls as they appear inside AI messages: whole, broken, and in pieces.
//!
//! Invariant: what a provider sent is kept, also when it is not a valid call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ToolCallId;

/// A well-formed call: a name and an object of arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub name: String,
    pub args: Map<String, Value>,
    pub id: Option<ToolCallId>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolCall {
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, args: Map<String, Value>) -> Self {
        let extra = Map::from_iter([("type".to_owned(), Value::from("tool_call"))]);
        Self { name: name.into(), args, id: Some(id.into()), extra }
    }
}

/// A call whose arguments did not parse; `error` says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvalidToolCall {
    pub name: Option<String>,
    pub args: Option<String>,
    pub id: Option<ToolCallId>,
    pub error: Option<String>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl InvalidToolCall {
    pub fn new(id: impl Into<ToolCallId>, name: &str, args: &str, error: String) -> Self {
        let extra = Map::from_iter([("type".to_owned(), Value::from("invalid_tool_call"))]);
        Self {
            name: Some(name.to_owned()),
            args: Some(args.to_owned()),
            id: Some(id.into()),
            error: Some(error),
            extra,
        }
    }
}

/// A fragment of a call while it streams; fragments with one `index` belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallChunk {
    pub name: Option<String>,
    pub args: Option<String>,
    pub id: Option<ToolCallId>,
    pub index: Option<Value>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolCallChunk {
    pub fn new(index: usize, id: Option<ToolCallId>, name: Option<String>, args: String) -> Self {
        let extra = Map::from_iter([("type".to_owned(), Value::from("tool_call_chunk"))]);
        Self { name, args: Some(args), id, index: Some(Value::from(index)), extra }
    }
}
