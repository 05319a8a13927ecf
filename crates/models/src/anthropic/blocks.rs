//! Spells one message as content blocks.
//!
//! Invariant: a block of this provider goes back with all that it had, and in its place; one of another provider only
//! with what it said.

use std::borrow::Cow;

use bytes::Bytes;
use hart_types::{Ai, Block, BlockView, Body, Content, ImageSource, Message, ToolResult, ToolStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::caching;
use crate::calls::{self, Arguments, Call, Spelling};
use crate::encoded::{write_joined, write_json};
use crate::files;
use crate::grouped::{Part, Speaker};
use crate::responses::is_answer;

const SPELLING: Spelling = Spelling::ANTHROPIC;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// All results of a batch of tool calls must stand together, right after the calls, and so must what follows.
    User,
    Assistant,
}

impl Speaker for Role {
    fn gathers(self) -> bool {
        self == Self::User
    }

    fn opening(self) -> &'static [u8] {
        match self {
            Self::User => b"{\"role\":\"user\",\"content\":[",
            Self::Assistant => b"{\"role\":\"assistant\",\"content\":[",
        }
    }
}

/// A block of text; empty when there is nothing to say.
pub(super) fn text_block(text: &str) -> Bytes {
    let mut out = Vec::new();
    write_text(&mut out, text);
    out.into()
}

/// The blocks of one message.
pub(super) fn encode(caching: bool, message: &Message) -> Part<Role> {
    if let Content::Text(text) = &message.content
        && let Some(encoded) = encode_plain(message, text)
    {
        return encoded;
    }
    let (speaker, mut blocks) = match &message.body {
        Body::Human => (Role::User, user_blocks(&message.content)),
        // Only the start of a conversation has a place for instructions; later ones are spoken by the user.
        Body::System => (Role::User, user_blocks(&message.content)),
        // Items of the Responses API mean nothing here; what was said in them does.
        Body::Ai(ai) if is_answer(message) => {
            (Role::Assistant, assistant_blocks(&message.content.text().into(), ai))
        }
        Body::Ai(ai) => (Role::Assistant, assistant_blocks(&message.content, ai)),
        Body::AiChunk(chunk) => (Role::Assistant, assistant_blocks(&message.content, &chunk.ai)),
        Body::Tool(result) => (Role::User, vec![tool_result(&message.content, result)]),
        Body::Remove | Body::Other(_) => (Role::User, Vec::new()),
    };
    if caching {
        blocks.iter_mut().for_each(caching::unmarked);
    }
    let mut out = Vec::new();
    write_joined(&mut out, blocks.iter().map(ToString::to_string));
    Part { speaker, bytes: out.into() }
}

/// Most messages are one text: written without a detour through a tree of JSON.
fn encode_plain(message: &Message, text: &str) -> Option<Part<Role>> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 16 + 128);
    let speaker = match &message.body {
        Body::Human | Body::System => {
            write_text(&mut out, text);
            Role::User
        }
        Body::Ai(ai) => {
            write_text(&mut out, text);
            for call in calls::of(ai) {
                if !out.is_empty() {
                    out.push(b',');
                }
                write_json(&mut out, &ToolUse::of(&call));
            }
            Role::Assistant
        }
        Body::Tool(result) => {
            out.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
            write_json(&mut out, &SPELLING.id(result.tool_call_id.as_str()));
            if !text.is_empty() {
                out.extend_from_slice(b",\"content\":");
                write_json(&mut out, text);
            }
            if result.status == ToolStatus::Error {
                out.extend_from_slice(b",\"is_error\":true");
            }
            out.push(b'}');
            Role::User
        }
        Body::AiChunk(_) | Body::Remove | Body::Other(_) => return None,
    };
    Some(Part { speaker, bytes: out.into() })
}

/// The API refuses text that is only white space, so that becomes nothing.
fn write_text(out: &mut Vec<u8>, text: &str) {
    if !text.trim().is_empty() {
        out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        write_json(out, text);
        out.push(b'}');
    }
}

fn user_blocks(content: &Content) -> Vec<Value> {
    let block = |block: &Block| match block.view() {
        BlockView::Text(text) if text.trim().is_empty() => None,
        BlockView::Text(text) => Some(json!({"type": "text", "text": text})),
        BlockView::Image(source) => Some(image(source)),
        BlockView::File { .. } => files::document(block),
        BlockView::Reasoning { .. } => None,
        BlockView::Other(map) => match map.get("type").and_then(Value::as_str) {
            Some("document" | "search_result" | "container_upload") => Some(Value::Object(map.clone())),
            _ => Some(json!({"type": "text", "text": Value::Object(map.clone()).to_string()})),
        },
    };
    content.to_blocks().iter().filter_map(block).collect()
}

fn image(source: ImageSource<'_>) -> Value {
    let base64 =
        |mime_type: &str, data: &str| json!({"type": "base64", "media_type": mime_type, "data": data});
    let source = match source {
        ImageSource::Base64 { mime_type, data } => base64(mime_type, data),
        ImageSource::Url(url) => match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
        {
            Some((mime_type, data)) => base64(mime_type, data),
            None => json!({"type": "url", "url": url}),
        },
    };
    json!({"type": "image", "source": source})
}

fn tool_result(content: &Content, result: &ToolResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": SPELLING.id(result.tool_call_id.as_str())});
    if let Some(map) = block.as_object_mut() {
        map.insert("content".to_owned(), user_blocks(content).into());
        if result.status == ToolStatus::Error {
            map.insert("is_error".to_owned(), true.into());
        }
    }
    block
}

fn assistant_blocks(content: &Content, ai: &Ai) -> Vec<Value> {
    let mut calls: Vec<Call<'_>> = calls::of(ai).collect();
    let mut out = Vec::new();
    for block in content.to_blocks() {
        let map = match block {
            Block::Object(map) => map,
            Block::Bare(text) => {
                Map::from_iter([("type".to_owned(), "text".into()), ("text".to_owned(), text.into())])
            }
        };
        match map.get("type").and_then(Value::as_str) {
            Some("text") => out.extend(own_text(map)),
            // The call itself may have been repaired since; the block only says where it stood.
            Some("tool_use") => {
                let id = map.get("id").and_then(Value::as_str);
                if let Some(position) = calls.iter().position(|call| id.is_some() && call.given_id() == id) {
                    out.extend(ToolUse::block(&calls.remove(position)));
                }
            }
            // Another provider's reasoning carries no signature of this one, and an image is nothing it could say.
            Some("reasoning" | "image" | "image_url" | "gemini_part") | None => {}
            Some(_) => out.push(Value::Object(map)),
        }
    }
    out.extend(calls.iter().filter_map(ToolUse::block));
    out
}

/// The fields the API takes, in the order they came in; other providers and clients add theirs.
fn own_text(mut map: Map<String, Value>) -> Option<Value> {
    map.get("text").and_then(Value::as_str).filter(|text| !text.trim().is_empty())?;
    map.retain(|key, value| {
        matches!(key.as_str(), "type" | "text" | "cache_control" | "citations") && !value.is_null()
    });
    Some(Value::Object(map))
}

/// A call as a block.
#[derive(Serialize)]
struct ToolUse<'a> {
    r#type: &'static str,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    input: Arguments<'a>,
}

impl<'a> ToolUse<'a> {
    fn of(call: &Call<'a>) -> Self {
        Self { r#type: "tool_use", id: call.id(SPELLING), name: call.name(SPELLING), input: call.object() }
    }

    fn block(call: &Call<'a>) -> Option<Value> {
        serde_json::to_value(Self::of(call)).ok()
    }
}
