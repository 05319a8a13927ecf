//! Finds where in the script a request stands.
//!
//! Invariant: only the few fields that decide are decoded, so that a long conversation costs one scan.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Tool results since the last answer of the model.
    pub(super) results: u32,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
}

pub(super) fn of(body: &[u8]) -> serde_json::Result<Position> {
    let request: Request<'_> = serde_json::from_slice(body)?;
    if request.messages.is_empty() && request.contents.is_empty() {
        return Err(serde::de::Error::custom("a request without a conversation"));
    }
    let mut results = 0;
    for message in request.messages.iter().chain(&request.contents) {
        match message.kind.as_ref() {
            "function_call_output" => results += 1,
            // Items stand apart, so that a text does not tell whether calls come with it; a question begins a task.
            "message" if message.role == "user" => results = 0,
            _ => {}
        }
        let blocks = message.blocks();
        let count = |kind| u32::try_from(blocks.iter().filter(|b| b.is(kind)).count()).unwrap_or(u32::MAX);
        match message.role.as_ref() {
            "tool" => results += 1,
            "user" => results += count("tool_result"),
            "model" if count("tool_use") == 0 => results = 0,
            // An assistant message without calls is an answer: what follows is another task.
            "assistant"
                if message.kind.is_empty()
                    && message.tool_calls.as_ref().is_none_or(Vec::is_empty)
                    && count("tool_use") == 0 =>
            {
                results = 0
            }
            _ => {}
        }
    }
    let include_usage = request.stream_options.is_some_and(|options| options.include_usage);
    Ok(Position { results, stream: request.stream.unwrap_or(false), include_usage })
}

#[derive(Deserialize)]
struct Request<'a> {
    /// Responses calls them input.
    #[serde(borrow, default, alias = "input")]
    messages: Vec<Message<'a>>,
    /// Gemini's.
    #[serde(borrow, default)]
    contents: Vec<Message<'a>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(rename = "functionCall")]
    call: Option<IgnoredAny>,
    #[serde(rename = "functionResponse")]
    response: Option<IgnoredAny>,
}

impl Block<'_> {
    /// In Anthropic's words, whoever wrote it.
    fn is(&self, kind: &str) -> bool {
        let own = match (&self.call, &self.response) {
            (Some(_), _) => "tool_use",
            (_, Some(_)) => "tool_result",
            (None, None) => self.kind.as_ref(),
        };
        own == kind
    }
}

impl Message<'_> {
    fn blocks(&self) -> Vec<Block<'_>> {
        let content = self.content.or(self.parts).map_or("", RawValue::get);
        if content.starts_with('[') { serde_json::from_str(content).unwrap_or_default() } else { Vec::new() }
    }
}
