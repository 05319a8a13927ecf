//! Reads the stream of a message.
//!
//! Invariant: a block that is not understood is kept; a block that is understood keeps what else it carries.

use std::collections::VecDeque;

use hart_kernel::ChatChunk;
use hart_types::{
    Ai, Block, Body, Content, InputTokenDetails, InvalidToolCall, Message, ToolCall, ToolCallChunk,
};
use hart_types::{ToolCallId, UsageMetadata};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::http::{Decoder, Failure, Fault, Progress};
use crate::sse::SseEvent;
use crate::tool_args::{is_cut, read_tool_arguments};
use crate::wire::Text;

/// Builds one answer.
#[derive(Debug, Default)]
pub(crate) struct MessagesDecoder {
    provider: &'static str,
    blocks: Vec<Open>,
    calls: usize,
    usage: Option<Usage>,
    id: String,
    model: String,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
}

/// A block that is being filled. Only the string that its deltas extend is held apart, so that it can grow in place.
#[derive(Debug)]
struct Open {
    index: u64,
    map: Map<String, Value>,
    text: String,
    thinking: String,
    signature: String,
    json: String,
    /// Its place among the tool calls.
    call: Option<usize>,
}

impl MessagesDecoder {
    fn start(&mut self, index: u64, block: &RawValue, out: &mut VecDeque<ChatChunk>) -> Result<(), Fault> {
        let mut map: Map<String, Value> =
            serde_json::from_str(block.get()).map_err(|error| Fault::Protocol(error.to_string()))?;
        let mut taken = |key: &str| match map.get_mut(key) {
            Some(Value::String(text)) => std::mem::take(text),
            _ => String::new(),
        };
        let (text, thinking, signature) = (taken("text"), taken("thinking"), taken("signature"));
        let mut call = None;
        if map.get("type").is_some_and(|kind| kind == "tool_use") {
            call = Some(self.calls);
            let id: ToolCallId = match map.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) {
                Some(id) => id.into(),
                None => format!("call_{}", ToolCallId::generate()).into(),
            };
            map.insert("id".to_owned(), id.as_str().into());
            let name = map.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let chunk = ToolCallChunk::new(self.calls, Some(id), Some(name), String::new());
            out.push_back(ChatChunk::ToolCall(chunk));
            self.calls += 1;
        }
        if !text.is_empty() {
            out.push_back(ChatChunk::Text(text.clone()));
        }
        if !thinking.is_empty() {
            out.push_back(ChatChunk::Reasoning(thinking.clone()));
        }
        self.blocks.push(Open { index, map, text, thinking, signature, json: String::new(), call });
        Ok(())
    }

    /// Extends a block; false when the delta's kind is unknown.
    fn delta(&mut self, index: u64, delta: &Delta<'_>, out: &mut VecDeque<ChatChunk>) -> bool {
        let Some(open) = self.blocks.iter_mut().rev().find(|open| open.index == index) else { return true };
        match delta.kind.as_deref().unwrap_or_default() {
            "text_delta" => {
                let text = delta.text.as_deref().unwrap_or_default();
                open.text.push_str(text);
                if !text.is_empty() {
                    out.push_back(ChatChunk::Text(text.to_owned()));
                }
            }
            "thinking_delta" => {
                let text = delta.thinking.as_deref().unwrap_or_default();
                open.thinking.push_str(text);
                if !text.is_empty() {
                    out.push_back(ChatChunk::Reasoning(text.to_owned()));
                }
            }
            "signature_delta" => open.signature.push_str(delta.signature.as_deref().unwrap_or_default()),
            "input_json_delta" => {
                let piece = delta.partial_json.as_deref().unwrap_or_default();
                open.json.push_str(piece);
                if let (Some(call), false) = (open.call, piece.is_empty()) {
                    out.push_back(ChatChunk::ToolCall(ToolCallChunk::new(
                        call,
                        None,
                        None,
                        piece.to_owned(),
                    )));
                }
            }
            "citations_delta" => {
                let citation = delta.citation.and_then(|raw| serde_json::from_str(raw.get()).ok());
                match (open.map.get_mut("citations"), citation) {
                    (Some(Value::Array(all)), Some(citation)) => all.push(citation),
                    (_, Some(citation)) => {
                        open.map.insert("citations".to_owned(), Value::Array(vec![citation]));
                    }
                    (_, None) => {}
                }
            }
            _ => return false,
        }
        true
    }

    /// A kind of delta from the future: strings extend the block's field of that name, anything else replaces it.
    fn unknown_delta(&mut self, index: u64, data: &str) {
        let Some(open) = self.blocks.iter_mut().rev().find(|open| open.index == index) else { return };
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        let fields = event.get("delta").and_then(Value::as_object).into_iter().flatten();
        for (key, value) in fields.filter(|(key, _)| key.as_str() != "type") {
            match (open.map.get_mut(key), value) {
                (Some(Value::String(have)), Value::String(more)) => have.push_str(more),
                _ => {
                    open.map.insert(key.clone(), value.clone());
                }
            }
        }
    }

    fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        let fields = [
            ("stop_reason", self.stop_reason.take()),
            ("stop_sequence", self.stop_sequence.take()),
            ("model_name", Some(std::mem::take(&mut self.model))),
            ("model_provider", Some(self.provider.to_owned())),
            ("id", Some(std::mem::take(&mut self.id))),
        ];
        for (key, value) in fields {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                metadata.insert(key.to_owned(), value.into());
            }
        }
        metadata
    }
}

impl Decoder for MessagesDecoder {
    fn new(provider: &'static str) -> Self {
        Self { provider, ..Self::default() }
    }

    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ChatChunk>) -> Result<Progress, Fault> {
        let parsed: Event<'_> = match serde_json::from_str(event.data) {
            Ok(parsed) => parsed,
            Err(_) if event.event == "ping" => return Ok(Progress::More),
            Err(error) => return Err(Fault::Protocol(error.to_string())),
        };
        let index = parsed.index.unwrap_or_default();
        match parsed.kind.as_deref().unwrap_or(event.event) {
            "content_block_delta" => {
                if let Some(delta) = &parsed.delta
                    && !self.delta(index, delta, out)
                {
                    self.unknown_delta(index, event.data);
                }
            }
            "content_block_start" => {
                if let Some(block) = parsed.content_block {
                    self.start(index, block, out)?;
                }
            }
            "message_start" => {
                if let Some(message) = parsed.message {
                    self.id = message.id.unwrap_or_default().0.into_owned();
                    self.model = message.model.unwrap_or_default().0.into_owned();
                    self.usage = message.usage;
                }
            }
            "message_delta" => {
                if let Some(usage) = parsed.usage {
                    self.usage = Some(match self.usage.take() {
                        Some(first) => first.updated(usage),
                        None => usage,
                    });
                }
                if let Some(delta) = parsed.delta {
                    self.stop_reason =
                        delta.stop_reason.map(|reason| reason.0.into_owned()).or(self.stop_reason.take());
                    self.stop_sequence = delta.stop_sequence.map(|text| text.0.into_owned());
                }
            }
            "message_stop" => {
                self.stop_reason.get_or_insert_default();
                return Ok(Progress::Complete);
            }
            "error" => {
                let error = parsed.error.and_then(|raw| serde_json::from_str(raw.get()).ok());
                return Err(Fault::Provider(Failure::of_error(
                    &error.unwrap_or_else(|| Value::from(event.data)),
                )));
            }
            _ => {} // `content_block_stop`, `ping`, and kinds yet to be invented
        }
        Ok(Progress::More)
    }

    fn is_complete(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn take(&mut self) -> Message {
        let mut ai = Ai { usage: self.usage.take().map(Usage::normalised), ..Ai::default() };
        let open = std::mem::take(&mut self.blocks);
        let cut = self.stop_reason.as_deref().is_none_or(is_cut);
        // Calls live in `tool_calls`. Only where something follows a call does the content have to mark its place.
        let last_said = open.iter().rposition(|block| block.call.is_none()).unwrap_or_default();
        let mut blocks = Vec::new();
        for (position, block) in open.into_iter().enumerate() {
            if block.call.is_none() {
                blocks.extend(block.closed());
            } else {
                let marker = block.called(&mut ai, cut);
                if position < last_said {
                    blocks.push(marker);
                }
            }
        }
        let content = match blocks.as_slice() {
            [] => Content::default(),
            [Block::Object(only)] if is_plain_text(only) => {
                Content::Text(only.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            _ => Content::Blocks(blocks),
        };
        let mut message = Message::new(Body::Ai(ai), content);
        message.response_metadata = self.metadata();
        message
    }
}

impl Open {
    /// The finished block, with its streamed strings where they began.
    fn closed(mut self) -> Option<Block> {
        let is_text = self.map.get("type").is_some_and(|kind| kind == "text");
        if is_text && self.text.is_empty() && !self.map.contains_key("citations") {
            return None;
        }
        let parts = [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)];
        for (key, value) in parts {
            if !value.is_empty() || self.map.get(key).is_some_and(Value::is_string) {
                self.map.insert(key.to_owned(), value.into());
            }
        }
        if !self.json.is_empty() {
            // A tool that runs at the provider: its input must go back as it came.
            let input = serde_json::from_str(&self.json).unwrap_or(Value::String(self.json));
            self.map.insert("input".to_owned(), input);
        }
        Some(Block::Object(self.map))
    }

    /// Files the call, and gives back the block that marks its place.
    fn called(self, ai: &mut Ai, cut: bool) -> Block {
        let field = |key: &str| self.map.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (field("id"), field("name"));
        let args = match self.map.get("input") {
            // Some servers send the whole input at once.
            Some(Value::Object(input)) if self.json.trim().is_empty() => Ok((input.clone(), false)),
            _ => read_tool_arguments(&self.json, cut),
        };
        match args {
            Ok((args, repaired)) if !name.is_empty() => {
                let mut call = ToolCall::new(id, name, args);
                if repaired {
                    call.extra.insert("repaired".to_owned(), true.into());
                }
                ai.tool_calls.push(call);
            }
            Ok(_) => {
                let error = "the call names no tool".to_owned();
                ai.invalid_tool_calls.push(InvalidToolCall::new(id, name, &self.json, error));
            }
            Err(error) => ai.invalid_tool_calls.push(InvalidToolCall::new(id, name, &self.json, error)),
        }
        Block::Object(self.map)
    }
}

fn is_plain_text(block: &Map<String, Value>) -> bool {
    block.len() == 2 && block.get("type").is_some_and(|kind| kind == "text")
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    index: Option<u64>,
    delta: Option<Delta<'a>>,
    content_block: Option<&'a RawValue>,
    message: Option<Start<'a>>,
    usage: Option<Usage>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    text: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    signature: Option<Text<'a>>,
    partial_json: Option<Text<'a>>,
    citation: Option<&'a RawValue>,
    stop_reason: Option<Text<'a>>,
    stop_sequence: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    model: Option<Text<'a>>,
    usage: Option<Usage>,
}

#[derive(Debug, Default, Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    /// The part of `cache_creation_input_tokens` per lifetime.
    cache_creation: Option<Map<String, Value>>,
}

impl Usage {
    /// The counts at the end are totals; what they leave out stands as it was at the start.
    fn updated(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            cache_creation: later.cache_creation.or(self.cache_creation),
        }
    }

    /// Anthropic counts the cached parts of the prompt apart from the rest.
    fn normalised(self) -> UsageMetadata {
        let (read, created) = (self.cache_read_input_tokens, self.cache_creation_input_tokens);
        let input = self.input_tokens.unwrap_or(0) + read.unwrap_or(0) + created.unwrap_or(0);
        let mut usage = UsageMetadata::new(input, self.output_tokens.unwrap_or(0));
        if read.is_some() || created.is_some() {
            usage.input_token_details = Some(InputTokenDetails {
                cache_read: read,
                cache_creation: created,
                extra: self.cache_creation.unwrap_or_default(),
            });
        }
        usage
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
