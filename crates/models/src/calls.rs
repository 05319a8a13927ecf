//! The tool calls of an answer as they go back to a model.
//!
//! Invariant: every call that has a result in the conversation is sent, and neither its name nor its id is empty.

use std::borrow::Cow;

use bytes::Bytes;
use hart_kernel::ToolSpec;
use hart_types::{Ai, ToolCallId};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::encoded::write_json;

/// A call, valid or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    id: Option<&'a str>,
    name: &'a str,
    /// `None`: the model wrote something else. What was wrong stands in the result that answers it.
    pub(crate) args: Option<&'a Map<String, Value>>,
    /// What the provider said beside it.
    pub(crate) extra: Option<&'a Map<String, Value>>,
    position: usize,
}

/// All calls of an answer, in their order.
pub(crate) fn of(ai: &Ai) -> impl Iterator<Item = Call<'_>> {
    let valid = ai.tool_calls.iter().map(|call| Call {
        id: call.id.as_ref().map(ToolCallId::as_str),
        name: &call.name,
        args: Some(&call.args),
        extra: Some(&call.extra),
        position: 0,
    });
    let invalid = ai.invalid_tool_calls.iter().map(|call| Call {
        id: call.id.as_ref().map(ToolCallId::as_str),
        name: call.name.as_deref().unwrap_or_default(),
        args: None,
        extra: None,
        position: 0,
    });
    valid.chain(invalid).enumerate().map(|(position, call)| Call { position, ..call })
}

impl<'a> Call<'a> {
    /// The id as the model gave it.
    pub(crate) fn given_id(&self) -> Option<&'a str> {
        self.id
    }

    pub(crate) fn id(&self) -> Cow<'a, str> {
        self.id.map_or_else(|| format!("call_{}", self.position).into(), Cow::Borrowed)
    }

    /// A nameless call would be refused each time the conversation is sent.
    pub(crate) fn name(&self) -> Cow<'a, str> {
        if self.name.is_empty() { "unknown".into() } else { self.name.into() }
    }

    /// The arguments as an object.
    pub(crate) fn object(&self) -> Arguments<'a> {
        Arguments(self.args)
    }

    /// The arguments as the text of an object.
    pub(crate) fn text(&self) -> ArgumentsText<'a> {
        ArgumentsText(self.args)
    }
}

/// Arguments, `{}` for those of an invalid call: servers parse them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(Option<&'a Map<String, Value>>);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(map) => map.serialize(serializer),
            None => Map::new().serialize(serializer),
        }
    }
}

/// [`Arguments`] in a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgumentsText<'a>(Option<&'a Map<String, Value>>);

impl Serialize for ArgumentsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.map(serde_json::to_string) {
            Some(Ok(text)) => serializer.serialize_str(&text),
            Some(Err(_)) | None => serializer.serialize_str("{}"),
        }
    }
}

/// A tool as chat completions have it, and Ollama after them.
pub(crate) fn encode_function(tool: &ToolSpec) -> Bytes {
    #[derive(Serialize)]
    struct Tool<'a> {
        r#type: &'static str,
        function: Function<'a>,
    }
    #[derive(Serialize)]
    struct Function<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
    }
    let ToolSpec { name, description, input_schema: parameters } = tool;
    let mut out = Vec::new();
    write_json(&mut out, &Tool { r#type: "function", function: Function { name, description, parameters } });
    out.into()
}
