//! Reads the lines of a chat.
//!
//! Invariant: each line is parsed once, and fields nobody here knows cost nothing and break nothing.

use std::collections::VecDeque;

use hart_kernel::ChatChunk;
use hart_types::{
    Ai, Block, Body, Content, InvalidToolCall, Message, ToolCall, ToolCallChunk, ToolCallId, UsageMetadata,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::http::{Decoder, Failure, Fault, Framing, Progress};
use crate::sse::SseEvent;
use crate::tool_args::parse_tool_arguments;
use crate::wire::Text;

/// Builds one answer.
#[derive(Debug, Default)]
pub(crate) struct OllamaDecoder {
    provider: &'static str,
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    invalid: Vec<InvalidToolCall>,
    usage: Option<UsageMetadata>,
    model: String,
    created_at: String,
    done_reason: Option<String>,
    durations: Map<String, Value>,
}

impl OllamaDecoder {
    fn message(&mut self, message: WireMessage<'_>, out: &mut VecDeque<ChatChunk>) {
        if let Some(thinking) = message.thinking.filter(|text| !text.is_empty()) {
            self.reasoning.push_str(&thinking);
            out.push_back(ChatChunk::Reasoning(thinking.0.into_owned()));
        }
        if let Some(content) = message.content.filter(|text| !text.is_empty()) {
            self.text.push_str(&content);
            out.push_back(ChatChunk::Text(content.0.into_owned()));
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
    }

    /// Calls come whole, and from older servers without an id.
    fn call(&mut self, call: WireCall<'_>, out: &mut VecDeque<ChatChunk>) {
        let id: ToolCallId = match call.id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => id.into(),
            None => format!("call_{}", ToolCallId::generate()).into(),
        };
        let function = call.function.unwrap_or_default();
        let name = function.name.as_deref().unwrap_or_default();
        let args = function.arguments.map(RawValue::get).filter(|args| *args != "null").unwrap_or_default();
        // An object; some models' parsers leave its text.
        let args: String = serde_json::from_str(args).unwrap_or_else(|_| args.to_owned());
        let position = self.calls.len() + self.invalid.len();
        let chunk = ToolCallChunk::new(position, Some(id.clone()), Some(name.to_owned()), args.clone());
        out.push_back(ChatChunk::ToolCall(chunk));
        match parse_tool_arguments(&args) {
            Ok(_) if name.is_empty() => {
                let error = "the call names no tool".to_owned();
                self.invalid.push(InvalidToolCall::new(id, name, &args, error));
            }
            Ok(parsed) => self.calls.push(ToolCall::new(id, name, parsed)),
            Err(error) => self.invalid.push(InvalidToolCall::new(id, name, &args, error)),
        }
    }

    fn done(&mut self, line: &Line<'_>) {
        let reason = line.done_reason.as_deref().filter(|reason| !reason.is_empty());
        self.done_reason = Some(reason.unwrap_or("stop").to_owned());
        if line.prompt_eval_count.is_some() || line.eval_count.is_some() {
            // A prompt that the server still had in memory is not counted by older versions.
            let input = line.prompt_eval_count.unwrap_or(0);
            self.usage = Some(UsageMetadata::new(input, line.eval_count.unwrap_or(0)));
        }
        let durations = [
            ("total_duration", line.total_duration),
            ("load_duration", line.load_duration),
            ("prompt_eval_duration", line.prompt_eval_duration),
            ("eval_duration", line.eval_duration),
        ];
        for (key, nanos) in durations {
            if let Some(nanos) = nanos {
                self.durations.insert(key.to_owned(), nanos.into());
            }
        }
    }

    fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        let fields = [
            ("finish_reason", self.done_reason.clone().unwrap_or_default()),
            ("model_name", std::mem::take(&mut self.model)),
            ("model_provider", self.provider.to_owned()),
            ("created_at", std::mem::take(&mut self.created_at)),
        ];
        for (key, value) in fields {
            if !value.is_empty() {
                metadata.insert(key.to_owned(), value.into());
            }
        }
        metadata.append(&mut self.durations);
        metadata
    }
}

impl Decoder for OllamaDecoder {
    const FRAMING: Framing = Framing::Lines;

    fn new(provider: &'static str) -> Self {
        Self { provider, ..Self::default() }
    }

    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ChatChunk>) -> Result<Progress, Fault> {
        let mut line: Line<'_> =
            serde_json::from_str(event.data).map_err(|error| Fault::Protocol(error.to_string()))?;
        if let Some(error) = line.error {
            let error = serde_json::from_str(error.get()).unwrap_or_else(|_| Value::from(error.get()));
            return Err(Fault::Provider(Failure::of_error(&error)));
        }
        if let (true, Some(model)) = (self.model.is_empty(), &line.model) {
            self.model.push_str(model);
        }
        if let Some(created_at) = &line.created_at {
            self.created_at.clear();
            self.created_at.push_str(created_at);
        }
        if let Some(message) = line.message.take() {
            self.message(message, out);
        }
        if line.done == Some(true) {
            self.done(&line);
            return Ok(Progress::Complete);
        }
        Ok(Progress::More)
    }

    fn is_complete(&self) -> bool {
        self.done_reason.is_some()
    }

    fn take(&mut self) -> Message {
        let text = std::mem::take(&mut self.text);
        let content = if self.reasoning.is_empty() {
            Content::Text(text)
        } else {
            let mut blocks = vec![Block::reasoning(std::mem::take(&mut self.reasoning))];
            if !text.is_empty() {
                blocks.push(Block::text(text));
            }
            Content::Blocks(blocks)
        };
        let ai = Ai {
            tool_calls: std::mem::take(&mut self.calls),
            invalid_tool_calls: std::mem::take(&mut self.invalid),
            usage: self.usage.take(),
        };
        let mut message = Message::new(Body::Ai(ai), content);
        message.response_metadata = self.metadata();
        message
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    created_at: Option<Text<'a>>,
    message: Option<WireMessage<'a>>,
    done: Option<bool>,
    done_reason: Option<Text<'a>>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    total_duration: Option<u64>,
    load_duration: Option<u64>,
    prompt_eval_duration: Option<u64>,
    eval_duration: Option<u64>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    thinking: Option<Text<'a>>,
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    function: Option<WireFunction<'a>>,
}

#[derive(Default, Deserialize)]
struct WireFunction<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    arguments: Option<&'a RawValue>,
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
