//! Spells one message as the parts of a content.
//!
//! Invariant: a part that the model signed is sent as it came; what another provider signed is left out.

use std::borrow::Cow;

use hart_types::{
    Ai, Block, BlockView, Body, Content, ImageSource, Message, ToolCallId, ToolResult, ToolStatus,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{MADE_UP_ID, PART, SIGNATURE};
use crate::calls::{self, Arguments, Call, Spelling};
use crate::encoded::write_json;
use crate::grouped::{Part, Speaker};

const SPELLING: Spelling = Spelling::GEMINI;
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

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    /// The results of a batch of calls become one content: the API wants as many responses there as there were calls.
    Results,
    Model,
}

impl Speaker for Role {
    fn gathers(self) -> bool {
        self == Self::Results
    }

    fn opening(self) -> &'static [u8] {
        match self {
            Self::User | Self::Results => b"{\"role\":\"user\",\"parts\":[",
            Self::Model => b"{\"role\":\"model\",\"parts\":[",
        }
    }
}

/// `called` finds the name of the tool that a call meant.
pub(super) fn encode(
    dress: &Dress,
    message: &Message,
    called: impl FnOnce(&ToolCallId) -> Option<String>,
) -> Part<Role> {
    let mut parts = Parts::default();
    let speaker = match &message.body {
        // Only the start of a conversation has a place for instructions; later ones are spoken by the user.
        Body::Human | Body::System => {
            user_parts(&mut parts, &message.content);
            Role::User
        }
        Body::Ai(ai) => {
            model_parts(&mut parts, dress, message, ai);
            Role::Model
        }
        Body::AiChunk(chunk) => {
            model_parts(&mut parts, dress, message, &chunk.ai);
            Role::Model
        }
        Body::Tool(result) => {
            let name = called(&result.tool_call_id).or_else(|| message.name.clone());
            response_parts(&mut parts, dress, &message.content, result, name.as_deref());
            Role::Results
        }
        Body::Remove | Body::Other(_) => Role::User,
    };
    Part { speaker, bytes: parts.0.into() }
}

/// Parts between commas.
#[derive(Default)]
struct Parts(Vec<u8>);

impl Parts {
    fn push(&mut self, part: &impl Serialize) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        write_json(&mut self.0, part);
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(&TextPart { text, thought: false, signature: None });
        }
    }
}

#[derive(Serialize)]
struct TextPart<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(rename = "thoughtSignature", skip_serializing_if = "Option::is_none")]
    signature: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: FunctionCall<'a>,
    #[serde(rename = "thoughtSignature", skip_serializing_if = "Option::is_none")]
    signature: Option<&'a Value>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    name: Cow<'a, str>,
    args: Arguments<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePart<'a> {
    function_response: Response<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    name: Cow<'a, str>,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    parts: &'a [Value],
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

fn user_parts(parts: &mut Parts, content: &Content) {
    let blocks = match content {
        Content::Text(text) => return parts.text(text),
        Content::Blocks(blocks) => blocks,
    };
    for block in blocks {
        match block.view() {
            BlockView::Text(text) => parts.text(text),
            BlockView::Reasoning { .. } => {}
            BlockView::Image(source) => parts.push(&image(source)),
            BlockView::File { .. } | BlockView::Other(_) => {
                let Some(map) = block.as_object() else { continue };
                match media(map) {
                    Some(part) => parts.push(&part),
                    None => parts.text(&Value::Object(map.clone()).to_string()),
                }
            }
        }
    }
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

fn response_parts(
    parts: &mut Parts,
    dress: &Dress,
    content: &Content,
    result: &ToolResult,
    name: Option<&str>,
) {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    match content {
        Content::Text(text) => texts.push(text.as_str()),
        Content::Blocks(blocks) => {
            for block in blocks {
                match block.view() {
                    BlockView::Text(text) => texts.push(text),
                    BlockView::Image(source) => images.push(image(source)),
                    BlockView::File { .. } | BlockView::Other(_) => {
                        images.extend(block.as_object().and_then(media));
                    }
                    BlockView::Reasoning { .. } => {}
                }
            }
        }
    }
    let text = match texts.as_slice() {
        [one] => Cow::Borrowed(*one),
        _ => Cow::Owned(texts.join("\n")),
    };
    let response = match result.status {
        ToolStatus::Success => Outcome::Output(&text),
        ToolStatus::Error => Outcome::Error(&text),
    };
    let (inside, beside) = if dress.signs_calls { (images, Vec::new()) } else { (Vec::new(), images) };
    let id = shown_id(Some(result.tool_call_id.as_str()));
    let name = SPELLING.name(name.unwrap_or_default());
    let response = Response { name, response, id, parts: &inside };
    parts.push(&ResponsePart { function_response: response });
    beside.iter().for_each(|image| parts.push(image));
}

/// An id, unless it was made up here.
fn shown_id(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty() && !id.starts_with(MADE_UP_ID))
}

fn model_parts(parts: &mut Parts, dress: &Dress, message: &Message, ai: &Ai) {
    let own = message.response_metadata.get("model_provider").is_some_and(|name| name == dress.provider);
    let excuse = Value::from(UNSIGNED);
    let mut calls = calls(ai);
    for (position, (_, part)) in calls.iter_mut().enumerate() {
        part.signature = part.signature.filter(|_| own);
        // Of a step's calls only the first has to prove where it comes from.
        if dress.signs_calls && position == 0 && part.signature.is_none() {
            part.signature = Some(&excuse);
        }
    }
    let blocks = match &message.content {
        Content::Text(text) => {
            parts.text(text);
            &[][..]
        }
        Content::Blocks(blocks) => blocks,
    };
    for block in blocks {
        let signature = match block {
            Block::Object(map) if own => map.get(SIGNATURE),
            _ => None,
        };
        match block.view() {
            BlockView::Text("") if signature.is_none() => {}
            BlockView::Text(text) => parts.push(&TextPart { text, thought: false, signature }),
            // A summary of thoughts that nobody signed says nothing to the model.
            BlockView::Reasoning { .. } if signature.is_none() => {}
            BlockView::Reasoning { text, .. } => parts.push(&TextPart { text, thought: true, signature }),
            BlockView::Image(source) if own => parts.push(&signed(image(source), signature)),
            BlockView::Image(_) | BlockView::File { .. } => {}
            BlockView::Other(map) => match map.get("type").and_then(Value::as_str) {
                Some(PART) if own => map.get("part").iter().for_each(|part| parts.push(part)),
                // The call itself may have been repaired since; the block only says where it stood.
                Some("tool_use") => {
                    let id = map.get("id").and_then(Value::as_str);
                    if let Some(position) = calls.iter().position(|(call, _)| *call == id) {
                        parts.push(&calls.remove(position).1);
                    }
                }
                _ => {}
            },
        }
    }
    calls.iter().for_each(|(_, part)| parts.push(part));
}

fn signed(mut part: Value, signature: Option<&Value>) -> Value {
    if let (Some(map), Some(signature)) = (part.as_object_mut(), signature) {
        map.insert(SIGNATURE.to_owned(), signature.clone());
    }
    part
}

/// The calls with their ids.
fn calls<'a>(ai: &'a Ai) -> Vec<(Option<&'a str>, CallPart<'a>)> {
    let part = |call: Call<'a>| {
        let id = call.given_id();
        let function_call = FunctionCall { name: call.name(SPELLING), args: call.object(), id: shown_id(id) };
        (id, CallPart { function_call, signature: call.extra.and_then(|extra| extra.get(SIGNATURE)) })
    };
    calls::of(ai).map(part).collect()
}
