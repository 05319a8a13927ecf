//! Items of an answer as content blocks, and content blocks as items again.
//!
//! Invariant: an item that is not a message or a call is its own block, unchanged; it goes back only to the provider it
//! came from.

use std::borrow::Cow;

use bytes::Bytes;
use hart_types::{Ai, Block, Content, InvalidToolCall, Message, ToolCall};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::files::Input;
use crate::calls::{self, ArgumentsText, Call, Spelling};
use crate::encoded::{write_joined, write_json};
use crate::tool_args::{parse_tool_arguments, read_tool_arguments};

const SPELLING: Spelling = Spelling::RESPONSES;

/// What a message of this API says of itself, as LangChain has it.
pub(super) const OBJECT: &str = "response";

/// Whether the blocks of a message are items: only this API understands those.
pub(crate) fn is_answer(message: &Message) -> bool {
    message.response_metadata.get("object").is_some_and(|object| object == OBJECT)
}

/// An answer that is being put together.
#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: Vec<Block>,
    pub(super) ai: Ai,
    pub(super) refusal: String,
    /// It stopped for want of tokens: what is missing from a call must not be made up.
    cut: bool,
}

impl Answer {
    pub(super) fn new(cut: bool) -> Self {
        Self { cut, ..Self::default() }
    }

    /// Adds a finished item.
    pub(super) fn add(&mut self, item: Map<String, Value>) {
        match item.get("type").and_then(Value::as_str) {
            Some("message") => self.message(&item),
            Some("function_call") => self.call(item),
            _ => self.blocks.push(Block::Object(item)),
        }
    }

    fn message(&mut self, item: &Map<String, Value>) {
        for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
            let mut block = match text("type") {
                "output_text" | "text" => {
                    let mut block = json!({"type": "text", "text": text("text")});
                    if let Some(Value::Array(notes)) = part.get("annotations")
                        && !notes.is_empty()
                    {
                        set(&mut block, "annotations", Value::Array(notes.clone()));
                    }
                    block
                }
                "refusal" => {
                    self.refusal.push_str(text("refusal"));
                    json!({"type": "refusal", "refusal": text("refusal")})
                }
                _ => json!({"type": "non_standard", "value": part}),
            };
            // The id binds a message to the reasoning before it; the phase tells talk from the answer.
            for key in ["id", "phase"] {
                if let Some(value) = item.get(key).filter(|value| !value.is_null()) {
                    set(&mut block, key, value.clone());
                }
            }
            self.blocks.push(Block::object(block));
        }
    }

    /// Files the call, and marks its place. The arguments stay there only where writing them anew would change them.
    fn call(&mut self, mut item: Map<String, Value>) {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name, written) = (text("call_id"), text("name"), text("arguments"));
        match read_tool_arguments(&written, self.cut) {
            Ok((args, repaired)) if !name.is_empty() => {
                let again = Value::Object(args.clone()).to_string();
                if again == written || repaired {
                    item.shift_remove("arguments");
                }
                let mut call = ToolCall::new(id, name, args);
                if repaired {
                    call.extra.insert("repaired".to_owned(), true.into());
                }
                self.ai.tool_calls.push(call);
            }
            Ok(_) => {
                let error = "the call names no tool".to_owned();
                self.ai.invalid_tool_calls.push(InvalidToolCall::new(id, &name, &written, error));
                item.shift_remove("arguments");
            }
            Err(error) => {
                self.ai.invalid_tool_calls.push(InvalidToolCall::new(id, &name, &written, error));
                item.shift_remove("arguments");
            }
        }
        self.blocks.push(Block::Object(item));
    }

    /// The content, in the plainest form that loses nothing.
    pub(super) fn content(&mut self) -> Content {
        let mut blocks = std::mem::take(&mut self.blocks);
        // Without reasoning before it, a call needs nothing that `tool_calls` does not hold.
        if !blocks.iter().any(|block| kind(block) == Some("reasoning")) {
            while blocks.last().is_some_and(is_plain_call) {
                blocks.pop();
            }
        }
        match blocks.as_slice() {
            [] => Content::default(),
            [only] if is_plain_text(only) => Content::Text(only.as_text().unwrap_or_default().to_owned()),
            _ => Content::Blocks(blocks),
        }
    }
}

fn kind(block: &Block) -> Option<&str> {
    match block {
        Block::Object(map) => map.get("type").and_then(Value::as_str),
        Block::Bare(_) => Some("text"),
    }
}

fn is_plain_call(block: &Block) -> bool {
    kind(block) == Some("function_call")
        && matches!(block, Block::Object(map) if !map.contains_key("arguments"))
}

fn is_plain_text(block: &Block) -> bool {
    kind(block) == Some("text")
        && matches!(block, Block::Object(map) if !map.contains_key("annotations") && !map.contains_key("phase"))
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// An item that is not kept as it came.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: Input<'a> },
    FunctionCall { call_id: Cow<'a, str>, name: Cow<'a, str>, arguments: ArgumentsText<'a> },
    FunctionCallOutput { call_id: Cow<'a, str>, output: Input<'a> },
}

impl<'a> Item<'a> {
    fn of(call: &Call<'a>) -> Self {
        Self::FunctionCall { call_id: call.id(SPELLING), name: call.name(SPELLING), arguments: call.text() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if !out.is_empty() {
            out.push(b',');
        }
        write_json(out, self);
    }

    fn bytes(&self, text: usize) -> Bytes {
        let mut out = Vec::with_capacity(text + text / 16 + 128);
        self.write(&mut out);
        out.into()
    }
}

/// What somebody other than the model said.
pub(super) fn spoken(role: &'static str, content: Input<'_>) -> Bytes {
    let size = content.text_len();
    Item::Message { role, content }.bytes(size)
}

/// What a tool gave back.
pub(super) fn output(id: &str, output: Input<'_>) -> Bytes {
    let size = output.text_len();
    Item::FunctionCallOutput { call_id: SPELLING.id(id), output }.bytes(size)
}

/// The items of an answer, between commas. `own`: it came from where it goes; `stored`: that provider keeps copies.
pub(super) fn encode(content: &Content, ai: &Ai, own: bool, stored: bool) -> Bytes {
    let mut calls: Vec<Call<'_>> = calls::of(ai).collect();
    let mut out = Vec::new();
    if own {
        let mut items = Vec::new();
        for block in content.to_blocks() {
            own_item(block, &mut calls, &mut items, stored);
        }
        // Reasoning that led to nothing is refused.
        while calls.is_empty() && items.last().is_some_and(|item| is(item, "reasoning")) {
            items.pop();
        }
        write_joined(&mut out, items.iter().map(ToString::to_string));
    } else {
        let text = match content {
            Content::Text(text) => Cow::Borrowed(text.as_str()),
            Content::Blocks(_) => content.text().into(),
        };
        if !text.is_empty() {
            out.reserve(text.len() + text.len() / 16 + 128);
            Item::Message { role: "assistant", content: Input::Text(text) }.write(&mut out);
        }
    }
    calls.iter().for_each(|call| Item::of(call).write(&mut out));
    out.into()
}

fn own_item(block: Block, calls: &mut Vec<Call<'_>>, items: &mut Vec<Value>, stored: bool) {
    let mut map = match block {
        Block::Object(map) => map,
        Block::Bare(text) => {
            Map::from_iter([("type".to_owned(), "text".into()), ("text".to_owned(), text.into())])
        }
    };
    match map.get("type").and_then(Value::as_str) {
        Some("text" | "refusal") => said(map, items),
        // The call itself may have been repaired since; the block says where it stood, and how it was written.
        Some("function_call") => {
            let id = map.get("call_id").and_then(Value::as_str);
            let Some(at) = calls.iter().position(|call| id.is_some() && call.given_id() == id) else {
                return;
            };
            let call = calls.remove(at);
            let unchanged = map.get("arguments").and_then(Value::as_str).is_some_and(|written| {
                call.args.is_some_and(|args| parse_tool_arguments(written).is_ok_and(|read| read == *args))
            });
            if !unchanged {
                let written = call.args.map(serde_json::to_string).and_then(Result::ok);
                map.insert("arguments".to_owned(), written.unwrap_or_else(|| "{}".to_owned()).into());
            }
            // A server may give ids that OpenAI would not take; the result has it spelled the same way.
            map.insert("call_id".to_owned(), call.id(SPELLING).into());
            map.insert("name".to_owned(), call.name(SPELLING).into());
            items.push(Value::Object(map));
        }
        Some("reasoning") => {
            let filled =
                |key: &str| map.get(key).is_some_and(|value| !value.is_null() && value != &json!([]));
            // Without a copy of its own, the provider can make nothing of a summary alone.
            if stored || filled("encrypted_content") || filled("content") {
                items.push(Value::Object(map));
            }
        }
        Some("non_standard" | "image" | "image_url" | "tool_use") | None => {}
        Some(_) => items.push(Value::Object(map)),
    }
}

/// Adds a text to its message: neighbours with one id were one.
fn said(mut map: Map<String, Value>, items: &mut Vec<Value>) {
    let (id, phase) = (map.shift_remove("id"), map.shift_remove("phase"));
    let part = match map.shift_remove("text") {
        Some(text) => {
            let notes = map.shift_remove("annotations").unwrap_or_else(|| json!([]));
            json!({"type": "output_text", "text": text, "annotations": notes})
        }
        None => json!({"type": "refusal", "refusal": map.get("refusal")}),
    };
    if let Some(last) = items.last_mut()
        && id.is_some()
        && is(last, "message")
        && last.get("id") == id.as_ref()
        && let Some(content) = last.get_mut("content").and_then(Value::as_array_mut)
    {
        content.push(part);
        return;
    }
    let mut message = json!({"type": "message", "role": "assistant", "content": [part]});
    if let Some(id) = id {
        set(&mut message, "id", id);
        set(&mut message, "status", "completed".into());
    }
    if let Some(phase) = phase {
        set(&mut message, "phase", phase);
    }
    items.push(message);
}

fn is(item: &Value, kind: &str) -> bool {
    item.get("type").is_some_and(|have| have == kind)
}
