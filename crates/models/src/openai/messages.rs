//! Spells one message as an element of `messages`.
//!
//! Invariant: text is a plain string wherever that is all there is: not every server takes a list of parts.

use std::borrow::Cow;

use bytes::Bytes;
use hart_types::{Ai, Block, BlockView, Body, Content, ImageSource, Message};
use serde::Serialize;
use serde_json::{Value, json};

use crate::calls::{self, ArgumentsText, Call, Spelling};
use crate::encoded::{Size, write_json};
use crate::files;

/// What shapes every message alike.
#[derive(Debug)]
pub(super) struct Dress {
    /// Whose signatures may go back.
    pub(super) provider: &'static str,
    pub(super) send_reasoning: bool,
    pub(super) spelling: Spelling,
}

/// One message of ours in the provider's words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    /// Empty when there is nothing to send.
    pub(super) json: Bytes,
    pub(super) is_tool_result: bool,
    /// The images of a tool result: they must follow, in a user message, after the last result of the batch.
    pub(super) images: Bytes,
}

impl Size for Encoded {
    fn size(&self) -> usize {
        self.json.len() + self.images.len()
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: Option<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: ArgumentsText<'a>,
}

impl<'a> Wire<'a> {
    fn new(role: &'static str, content: WireContent<'a>) -> Self {
        Self {
            role,
            content: Some(content),
            tool_call_id: None,
            reasoning_content: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
        }
    }

    fn bytes(&self) -> Bytes {
        let text = match &self.content {
            Some(WireContent::Text(text)) => text.len(),
            Some(WireContent::Parts(_)) | None => 0,
        };
        let mut out = Vec::with_capacity(text + text / 16 + 128);
        write_json(&mut out, self);
        out.into()
    }
}

pub(super) fn encode_system(text: &str) -> Bytes {
    Wire::new("system", WireContent::Text(text.into())).bytes()
}

/// One message, and what has to be sent after it.
pub(super) fn encode(dress: &Dress, message: &Message) -> Encoded {
    let plain = |json: Bytes| Encoded { json, ..Encoded::default() };
    match &message.body {
        Body::Human => plain(Wire::new("user", user_content(dress, &message.content)).bytes()),
        Body::System => plain(Wire::new("system", WireContent::Text(joined(&message.content))).bytes()),
        Body::Ai(ai) => plain(assistant(dress, message, ai).bytes()),
        Body::AiChunk(chunk) => plain(assistant(dress, message, &chunk.ai).bytes()),
        Body::Tool(result) => {
            let mut wire = Wire::new("tool", WireContent::Text(joined(&message.content)));
            wire.tool_call_id = Some(dress.spelling.id(result.tool_call_id.as_str()));
            let images = match &message.content {
                Content::Text(_) => Vec::new(),
                Content::Blocks(blocks) => blocks.iter().filter_map(|b| attachment(dress, b)).collect(),
            };
            let images = if images.is_empty() {
                Bytes::new()
            } else {
                let label = format!(
                    "Attachments of the result of {}:",
                    dress.spelling.id(result.tool_call_id.as_str())
                );
                let parts = std::iter::once(json!({"type": "text", "text": label})).chain(images).collect();
                Wire::new("user", WireContent::Parts(parts)).bytes()
            };
            Encoded { json: wire.bytes(), is_tool_result: true, images }
        }
        Body::Remove | Body::Other(_) => Encoded::default(),
    }
}

fn assistant<'a>(dress: &Dress, message: &'a Message, ai: &'a Ai) -> Wire<'a> {
    let text: Cow<'a, str> = match &message.content {
        Content::Text(text) => text.into(),
        Content::Blocks(_) => message.content.text().into(),
    };
    let is_silent = text.is_empty();
    let mut wire = Wire::new("assistant", WireContent::Text(text));
    let blocks: &[Block] = match &message.content {
        Content::Blocks(blocks) => blocks,
        Content::Text(_) => &[],
    };
    if dress.send_reasoning {
        wire.reasoning_content = Some(message.reasoning()).filter(|text| !text.is_empty());
    }
    // What a provider signed goes back to that provider; another one would refuse the field.
    let own = message.response_metadata.get("model_provider").is_some_and(|name| name == dress.provider);
    if own {
        wire.reasoning_details = blocks.iter().find_map(|block| match block {
            Block::Object(map) => map.get("reasoning_details"),
            Block::Bare(_) => None,
        });
    }
    wire.tool_calls = tool_calls(ai, own, dress.spelling);
    if !wire.tool_calls.is_empty() && is_silent {
        wire.content = None;
    }
    wire
}

fn tool_calls<'a>(ai: &'a Ai, own: bool, spelling: Spelling) -> Vec<WireCall<'a>> {
    let call = |call: Call<'a>| WireCall {
        id: call.id(spelling),
        kind: "function",
        // Gemini signs its calls and wants the signature back.
        extra_content: call.extra.filter(|_| own).and_then(|extra| extra.get("extra_content")),
        function: Function { name: call.name(spelling), arguments: call.text() },
    };
    calls::of(ai).map(call).collect()
}

fn user_content<'a>(dress: &Dress, content: &'a Content) -> WireContent<'a> {
    let blocks = match content {
        Content::Text(text) => return WireContent::Text(text.into()),
        Content::Blocks(blocks) => blocks,
    };
    if blocks.iter().all(|block| block.as_text().is_some()) {
        return WireContent::Text(joined(content));
    }
    let part = |block: &Block| match block.view() {
        BlockView::Text(text) => Some(json!({"type": "text", "text": text})),
        BlockView::Image(_) | BlockView::File { .. } => attachment(dress, block),
        BlockView::Reasoning { .. } => None,
        BlockView::Other(map) => match map.get("type").and_then(Value::as_str) {
            Some("input_audio") => Some(Value::Object(map.clone())),
            _ => Some(json!({"type": "text", "text": Value::Object(map.clone()).to_string()})),
        },
    };
    WireContent::Parts(blocks.iter().filter_map(part).collect())
}

/// The texts, one below the other: not every server takes a list of parts.
fn joined(content: &Content) -> Cow<'_, str> {
    match content {
        Content::Text(text) => text.into(),
        Content::Blocks(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
            match texts.as_slice() {
                [one] => Cow::Borrowed(one),
                _ => texts.join("\n").into(),
            }
        }
    }
}

fn attachment(dress: &Dress, block: &Block) -> Option<Value> {
    image_part(block).or_else(|| files::chat_part(block, dress.provider == "openrouter"))
}

fn image_part(block: &Block) -> Option<Value> {
    let BlockView::Image(source) = block.view() else { return None };
    let url = match source {
        ImageSource::Url(url) => url.to_owned(),
        ImageSource::Base64 { mime_type, data } => format!("data:{mime_type};base64,{data}"),
    };
    let mut image = json!({"url": url});
    // `detail` decides what an image costs; the rest of the block is LangChain's.
    if let Block::Object(map) = block
        && let Some(detail) = map.get("image_url").and_then(|image| image.get("detail"))
        && let Some(image) = image.as_object_mut()
    {
        image.insert("detail".to_owned(), detail.clone());
    }
    Some(json!({"type": "image_url", "image_url": image}))
}
