//! Reads the stream of generated content.
//!
//! Invariant: a part that is signed, or not understood, is kept as it came.

use std::collections::VecDeque;

use hart_kernel::ChatChunk;
use hart_types::{Ai, Block, Body, Content, InvalidToolCall, Message, ToolCall, ToolCallChunk, ToolCallId};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::wire::{Chunk, Feedback, Usage, WireCall, WirePart};
use super::{MADE_UP_ID, PART, SIGNATURE};
use crate::http::{Decoder, Failure, Fault, Progress};
use crate::sse::SseEvent;
use crate::tool_args::parse_tool_arguments;

/// Why the model was stopped from saying more, where that is not its own doing.
const FILTERED: [&str; 9] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];
/// The model tried to call a tool and failed at the spelling.
const MALFORMED_CALL: &str = "MALFORMED_FUNCTION_CALL";
/// Ends without an answer for which asking again is the remedy.
const BROKEN: [&str; 4] = ["OTHER", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"];

/// Builds one answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiDecoder {
    provider: &'static str,
    parts: Vec<Part>,
    calls: usize,
    usage: Option<Usage>,
    id: String,
    model: String,
    finish_reason: Option<String>,
    finish_message: String,
    /// Sources and quotations, as the API describes them.
    grounding: Map<String, Value>,
}

#[derive(Debug)]
enum Part {
    Said { text: String, thought: bool, signature: Option<String> },
    Called(Call),
    Other(Map<String, Value>),
}

#[derive(Debug)]
enum Call {
    Valid(ToolCall),
    Invalid(InvalidToolCall),
}

impl GeminiDecoder {
    fn part(&mut self, raw: &RawValue, out: &mut VecDeque<ChatChunk>) -> Result<(), Fault> {
        let protocol = |error: serde_json::Error| Fault::Protocol(error.to_string());
        let part: WirePart<'_> = serde_json::from_str(raw.get()).map_err(protocol)?;
        if let Some(call) = part.function_call {
            self.called(&call, part.signature.as_deref(), out);
        } else if let Some(text) = part.text {
            let signature = part.signature.map(|signature| signature.0.into_owned());
            self.said(&text, part.thought.unwrap_or(false), signature, out);
        } else {
            self.parts.push(Part::Other(serde_json::from_str(raw.get()).map_err(protocol)?));
        }
        Ok(())
    }

    fn said(&mut self, text: &str, thought: bool, signature: Option<String>, out: &mut VecDeque<ChatChunk>) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        if !text.is_empty() {
            let text = text.to_owned();
            out.push_back(if thought { ChatChunk::Reasoning(text) } else { ChatChunk::Text(text) });
        }
        match self.parts.last_mut() {
            // A fragment without a signature continues what stands unsigned before it.
            Some(Part::Said { text: said, thought: same, signature: None })
                if *same == thought && signature.is_none() =>
            {
                said.push_str(text);
            }
            _ => self.parts.push(Part::Said { text: text.to_owned(), thought, signature }),
        }
    }

    fn called(&mut self, call: &WireCall<'_>, signature: Option<&str>, out: &mut VecDeque<ChatChunk>) {
        let id: ToolCallId = match call.id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => id.into(),
            None => made_up_id(),
        };
        let name = call.name.as_deref().unwrap_or_default();
        let args = call.args.map(RawValue::get).filter(|args| *args != "null").unwrap_or_default();
        // The API sends an object; servers that imitate it may send the text of one.
        let text: String = serde_json::from_str(args).unwrap_or_else(|_| args.to_owned());
        self.tell(&id, name, &text, out);
        let parsed = match parse_tool_arguments(&text) {
            Ok(_) if name.is_empty() => Err("the call names no tool".to_owned()),
            parsed => parsed,
        };
        self.parts.push(Part::Called(match parsed {
            Ok(args) => {
                let mut call = ToolCall::new(id, name, args);
                if let Some(signature) = signature {
                    call.extra.insert(SIGNATURE.to_owned(), signature.into());
                }
                Call::Valid(call)
            }
            Err(error) => Call::Invalid(InvalidToolCall::new(id, name, &text, error)),
        }));
    }

    /// The model is shown what it wrote, so that it can write it better.
    fn malformed_call(&mut self, out: &mut VecDeque<ChatChunk>) {
        let id = made_up_id();
        // The API quotes Python: `print(default_api.name(…))`.
        let name = self.finish_message.split_once("default_api.").map_or("", |(_, rest)| rest);
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        self.tell(&id, &name, &self.finish_message.clone(), out);
        let error = "the call was not valid JSON; write it again as a function call".to_owned();
        let invalid = InvalidToolCall::new(id, &name, &self.finish_message, error);
        self.parts.push(Part::Called(Call::Invalid(invalid)));
    }

    fn tell(&mut self, id: &ToolCallId, name: &str, args: &str, out: &mut VecDeque<ChatChunk>) {
        let chunk = ToolCallChunk::new(self.calls, Some(id.clone()), Some(name.to_owned()), args.to_owned());
        out.push_back(ChatChunk::ToolCall(chunk));
        self.calls += 1;
    }

    fn finished(&mut self, reason: &str, out: &mut VecDeque<ChatChunk>) -> Result<(), Fault> {
        let answered = self.parts.iter().any(|part| !matches!(part, Part::Said { thought: true, .. }));
        let why = if self.finish_message.is_empty() { reason } else { &self.finish_message };
        if !answered && FILTERED.contains(&reason) {
            return Err(filtered(&format!("it stopped for {reason}{}", explained(reason, why))));
        }
        if !answered && BROKEN.contains(&reason) {
            return Err(Fault::Protocol(format!("it stopped for {reason}{}", explained(reason, why))));
        }
        if !answered && reason == MALFORMED_CALL {
            self.malformed_call(out);
        }
        self.finish_reason = Some(reason.to_owned());
        Ok(())
    }

    fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        let fields = [
            ("finish_reason", self.finish_reason.clone().unwrap_or_default()),
            ("model_name", std::mem::take(&mut self.model)),
            ("model_provider", self.provider.to_owned()),
            ("id", std::mem::take(&mut self.id)),
        ];
        for (key, value) in fields {
            if !value.is_empty() {
                metadata.insert(key.to_owned(), value.into());
            }
        }
        metadata.append(&mut self.grounding);
        metadata
    }
}

fn made_up_id() -> ToolCallId {
    format!("{MADE_UP_ID}{}", ToolCallId::generate()).into()
}

fn explained(reason: &str, why: &str) -> String {
    if reason == why { String::new() } else { format!(": {why}") }
}

fn filtered(message: &str) -> Fault {
    Fault::Provider(Failure::of_error(&json!({"type": "content_filter", "code": 400, "message": message})))
}

impl Decoder for GeminiDecoder {
    fn new(provider: &'static str) -> Self {
        Self { provider, ..Self::default() }
    }

    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ChatChunk>) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|error| Fault::Protocol(error.to_string()))?;
        if let Some(error) = chunk.error {
            let error = serde_json::from_str(error.get()).unwrap_or_else(|_| Value::from(error.get()));
            return Err(Fault::Provider(Failure::of_error(&error)));
        }
        if let Some(id) = chunk.id {
            self.id = id.0.into_owned();
        }
        if let Some(model) = chunk.model {
            self.model = model.0.into_owned();
        }
        self.usage = chunk.usage.filter(Usage::says_something).or(self.usage.take());
        if let Some(Feedback { reason: Some(reason), message }) = chunk.feedback {
            let why = message.as_deref().unwrap_or(&reason);
            return Err(filtered(&format!(
                "it blocked the prompt for {}{}",
                &*reason,
                explained(&reason, why)
            )));
        }
        // Only one candidate is ever asked for.
        for candidate in chunk.candidates.into_iter().flatten().take(1) {
            for part in candidate.content.into_iter().flat_map(|content| content.parts).flatten() {
                self.part(part, out)?;
            }
            for (key, raw) in
                [("grounding_metadata", candidate.grounding), ("citation_metadata", candidate.citations)]
            {
                if let Some(value) = raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()) {
                    self.grounding.insert(key.to_owned(), value);
                }
            }
            if let Some(message) = candidate.finish_message {
                self.finish_message = message.0.into_owned();
            }
            if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finished(&reason, out)?;
            }
        }
        // Counts may come after the reason, and nothing but the end of the stream marks the end.
        Ok(Progress::More)
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn take(&mut self) -> Message {
        let mut ai = Ai { usage: self.usage.take().map(Usage::normalised), ..Ai::default() };
        let parts = std::mem::take(&mut self.parts);
        // Calls live in `tool_calls`. Only where something follows a call does the content have to mark its place.
        let last_said = parts.iter().rposition(|part| !matches!(part, Part::Called(_))).unwrap_or_default();
        let mut blocks = Vec::new();
        for (position, part) in parts.into_iter().enumerate() {
            match part {
                Part::Said { text, thought, signature } => blocks.push(said_block(text, thought, signature)),
                Part::Other(part) => blocks.push(other_block(part)),
                Part::Called(call) => {
                    let marker = filed(call, &mut ai);
                    if position < last_said {
                        blocks.push(marker);
                    }
                }
            }
        }
        let content = match blocks.as_mut_slice() {
            [] => Content::default(),
            [Block::Object(only)] if is_plain_text(only) => match only.get_mut("text").map(Value::take) {
                Some(Value::String(text)) => Content::Text(text),
                _ => Content::default(),
            },
            _ => Content::Blocks(blocks),
        };
        let mut message = Message::new(Body::Ai(ai), content);
        if self.finish_reason.as_deref().is_some_and(|reason| FILTERED.contains(&reason)) {
            let why = if self.finish_message.is_empty() {
                self.finish_reason.clone().unwrap_or_default()
            } else {
                std::mem::take(&mut self.finish_message)
            };
            message.additional_kwargs.insert("refusal".to_owned(), why.into());
        }
        message.response_metadata = self.metadata();
        message
    }
}

fn said_block(text: String, thought: bool, signature: Option<String>) -> Block {
    let (kind, key) = if thought { ("reasoning", "reasoning") } else { ("text", "text") };
    let mut map = Map::from_iter([("type".to_owned(), kind.into()), (key.to_owned(), Value::String(text))]);
    if let Some(signature) = signature {
        map.insert(SIGNATURE.to_owned(), signature.into());
    }
    Block::Object(map)
}

/// An image becomes one that every client can show; anything else stays a part.
fn other_block(mut part: Map<String, Value>) -> Block {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let image = part.get("inlineData").and_then(|inline| {
        let mime_type = text(inline, "mimeType").filter(|kind| kind.starts_with("image/"))?;
        Some((mime_type, text(inline, "data")?))
    });
    let plain = part.keys().all(|key| key == "inlineData" || key == SIGNATURE);
    match image {
        Some((mime_type, data)) if plain => {
            let mut block = Block::image_base64(&mime_type, &data);
            if let (Block::Object(map), Some(signature)) = (&mut block, part.shift_remove(SIGNATURE)) {
                map.insert(SIGNATURE.to_owned(), signature);
            }
            block
        }
        _ => Block::object(json!({"type": PART, "part": part})),
    }
}

/// Files the call, and gives back the block that marks its place.
fn filed(call: Call, ai: &mut Ai) -> Block {
    let (id, name) = match &call {
        Call::Valid(call) => (call.id.clone(), Some(call.name.clone())),
        Call::Invalid(call) => (call.id.clone(), call.name.clone()),
    };
    match call {
        Call::Valid(call) => ai.tool_calls.push(call),
        Call::Invalid(call) => ai.invalid_tool_calls.push(call),
    }
    Block::object(json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
}

fn is_plain_text(block: &Map<String, Value>) -> bool {
    block.len() == 2 && block.get("type").is_some_and(|kind| kind == "text")
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
