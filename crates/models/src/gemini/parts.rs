//! Spells one message as the parts of a content.
//!
//! Invariant: a part that the model signed is sent as it came; what another provider signed is left out.

use bytes::Bytes;
use hart_types::{
    Ai, Block, BlockView, Body, Content, ImageSource, Message, ToolCallId, ToolResult, ToolStatus,
};
use serde_json::{Map, Value, json};

use super::{MADE_UP_ID, PART, SIGNATURE};
use crate::encoded::{Size, write_joined};

/// The API's word for a call that it did not sign itself: another model's, or one that was written by hand.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// What shapes every message alike.
#[derive(Debug)]
pub(super) struct Dress {
    /// Whose signatures may go back.
    pub(super) provider: &'static str,
    /// The model refuses a step whose first call has no signature, and takes images inside a response.
    pub(super) signs_calls: bool,
}

/// The parts of one message, between commas; empty when there is nothing to send.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    pub(super) role: Role,
    pub(super) parts: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Results,
    Model,
}

impl Size for Encoded {
    fn size(&self) -> usize {
        self.parts.len()
    }
}

/// `called` finds the name of the tool that a call meant.
pub(super) fn encode(
    dress: &Dress,
    message: &Message,
    called: impl FnOnce(&ToolCallId) -> Option<String>,
) -> Encoded {
    let (role, parts) = match &message.body {
        // Only the start of a conversation has a place for instructions; later ones are spoken by the user.
        Body::Human | Body::System => (Role::User, user_parts(&message.content)),
        Body::Ai(ai) => (Role::Model, model_parts(dress, message, ai)),
        Body::AiChunk(chunk) => (Role::Model, model_parts(dress, message, &chunk.ai)),
        Body::Tool(result) => {
            let name = called(&result.tool_call_id).or_else(|| message.name.clone());
            (Role::Results, response_parts(dress, &message.content, result, name))
        }
        Body::Remove | Body::Other(_) => (Role::User, Vec::new()),
    };
    let mut out = Vec::new();
    write_joined(&mut out, parts.iter().map(ToString::to_string));
    Encoded { role, parts: out.into() }
}

fn user_parts(content: &Content) -> Vec<Value> {
    let part = |block: &Block| match block.view() {
        BlockView::Text("") | BlockView::Reasoning { .. } => None,
        BlockView::Text(text) => Some(json!({"text": text})),
        BlockView::Image(source) => Some(image(source)),
        BlockView::File { .. } | BlockView::Other(_) => block
            .as_object()
            .map(|map| media(map).unwrap_or_else(|| json!({"text": Value::Object(map.clone()).to_string()}))),
    };
    content.to_blocks().iter().filter_map(part).collect()
}

fn image(source: ImageSource<'_>) -> Value {
    match source {
        ImageSource::Base64 { mime_type, data } => inline(mime_type, data),
        ImageSource::Url(url) => at(url, None),
    }
}

fn inline(mime_type: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": mime_type, "data": data}})
}

/// What is at an address: its bytes, if the address holds them, or where the provider is to fetch it.
fn at(url: &str, mime_type: Option<&str>) -> Value {
    if let Some((kind, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        return inline(kind, data);
    }
    let mut file = json!({"fileUri": url});
    if let (Some(map), Some(kind)) = (file.as_object_mut(), mime_type.or_else(|| mime_type_of(url))) {
        map.insert("mimeType".to_owned(), kind.into());
    }
    json!({"fileData": file})
}

fn mime_type_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, ending) = path.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "pdf" => "application/pdf",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => return None,
    })
}

/// A file, a recording or a film, in any of the shapes that LangChain, OpenAI and Anthropic gave them.
fn media(map: &Map<String, Value>) -> Option<Value> {
    let kind = map.get("type").and_then(Value::as_str)?;
    if kind == PART {
        return map.get("part").cloned();
    }
    let inner = ["source", "file", "input_audio"].iter().find_map(|key| map.get(*key)?.as_object());
    let places = [Some(map), inner];
    let field = |names: &[&str]| {
        let found = names.iter().find_map(|name| places.iter().flatten().find_map(|map| map.get(*name)));
        found.and_then(Value::as_str)
    };
    let mime_type = field(&["mime_type", "media_type", "mimeType"]);
    if let Some(uri) = field(&["file_uri", "fileUri", "url", "file_data"]) {
        return Some(at(uri, mime_type));
    }
    let data = field(&["base64", "data"])?;
    let spoken = field(&["format"]).map(|format| format!("audio/{format}"));
    Some(inline(mime_type.or(spoken.as_deref())?, data))
}

fn response_parts(dress: &Dress, content: &Content, result: &ToolResult, name: Option<String>) -> Vec<Value> {
    let key = if result.status == ToolStatus::Error { "error" } else { "output" };
    let blocks = content.to_blocks();
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    let mut images: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block.view() {
            BlockView::Image(source) => Some(image(source)),
            BlockView::File { .. } | BlockView::Other(_) => block.as_object().and_then(media),
            BlockView::Text(_) | BlockView::Reasoning { .. } => None,
        })
        .collect();
    let name = name.unwrap_or_else(|| "unknown".to_owned());
    let mut response = json!({"name": name, "response": {key: texts.join("\n")}});
    if let Some(map) = response.as_object_mut() {
        if let Some(id) = shown_id(Some(&result.tool_call_id)) {
            map.insert("id".to_owned(), id.into());
        }
        if dress.signs_calls && !images.is_empty() {
            map.insert("parts".to_owned(), std::mem::take(&mut images).into());
        }
    }
    std::iter::once(json!({"functionResponse": response})).chain(images).collect()
}

/// An id, unless it was made up here.
fn shown_id(id: Option<&ToolCallId>) -> Option<&str> {
    id.map(ToolCallId::as_str).filter(|id| !id.is_empty() && !id.starts_with(MADE_UP_ID))
}

fn model_parts(dress: &Dress, message: &Message, ai: &Ai) -> Vec<Value> {
    let own = message.response_metadata.get("model_provider").is_some_and(|name| name == dress.provider);
    let mut calls = calls(dress, ai, own);
    let mut out = Vec::new();
    for block in message.content.to_blocks() {
        let signature = match &block {
            Block::Object(map) if own => map.get(SIGNATURE).cloned(),
            _ => None,
        };
        let part = match block.view() {
            BlockView::Text("") if signature.is_none() => continue,
            BlockView::Text(text) => json!({"text": text}),
            // A summary of thoughts that nobody signed says nothing to the model.
            BlockView::Reasoning { .. } if signature.is_none() => continue,
            BlockView::Reasoning { text, .. } => json!({"text": text, "thought": true}),
            BlockView::Image(source) if own => image(source),
            BlockView::Image(_) | BlockView::File { .. } => continue,
            BlockView::Other(map) => match map.get("type").and_then(Value::as_str) {
                Some(PART) if own => map.get("part").cloned().unwrap_or_default(),
                // The call itself may have been repaired since; the block only says where it stood.
                Some("tool_use") => {
                    let id = map.get("id").and_then(Value::as_str);
                    match calls.iter().position(|(call, _)| call.as_deref() == id) {
                        Some(position) => calls.remove(position).1,
                        None => continue,
                    }
                }
                _ => continue,
            },
        };
        out.push(signed(part, signature));
    }
    out.extend(calls.into_iter().map(|(_, part)| part));
    out
}

fn signed(mut part: Value, signature: Option<Value>) -> Value {
    if let (Some(map), Some(signature)) = (part.as_object_mut(), signature) {
        map.insert(SIGNATURE.to_owned(), signature);
    }
    part
}

fn calls(dress: &Dress, ai: &Ai, own: bool) -> Vec<(Option<String>, Value)> {
    let valid = ai.tool_calls.iter();
    let valid = valid.map(|c| (c.id.as_ref(), c.name.as_str(), Some(&c.args), c.extra.get(SIGNATURE)));
    // What was wrong with these stands in the response that answers them.
    let invalid = ai.invalid_tool_calls.iter();
    let invalid = invalid.map(|c| (c.id.as_ref(), c.name.as_deref().unwrap_or_default(), None, None));
    type Said<'a> = (Option<&'a ToolCallId>, &'a str, Option<&'a Map<String, Value>>, Option<&'a Value>);
    let call = |(position, (id, name, args, signature)): (usize, Said<'_>)| {
        let args = args.cloned().unwrap_or_default();
        // A nameless call would be refused each time the conversation is sent.
        let name = if name.is_empty() { "unknown" } else { name };
        let mut call = json!({"name": name, "args": args});
        if let (Some(map), Some(id)) = (call.as_object_mut(), shown_id(id)) {
            map.insert("id".to_owned(), id.into());
        }
        let signature = signature.filter(|_| own).cloned();
        // Of a step's calls only the first has to prove where it comes from.
        let signature = signature.or_else(|| (dress.signs_calls && position == 0).then(|| UNSIGNED.into()));
        (id.map(ToString::to_string), signed(json!({"functionCall": call}), signature))
    };
    valid.chain(invalid).enumerate().map(call).collect()
}
