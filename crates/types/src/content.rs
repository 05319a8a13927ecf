//! What a message says: plain text, or blocks of text, images, reasoning and whatever a provider adds.
//!
//! Invariant: a block keeps the JSON it arrived as. Typed access is a view, so signatures, citations and fields
//! nobody here has heard of come back out byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// `content` of a message: LangChain allows a string or a list of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Content {
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }

    /// The readable text: everything but reasoning, images and tool payloads.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(|block| block.as_text()).collect(),
        }
    }

    /// The same content as blocks; a string becomes one text block.
    pub fn to_blocks(&self) -> Vec<Block> {
        match self {
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) => vec![Block::text(text)],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self::Blocks(blocks)
    }
}

/// One block, as JSON. LangChain also lets a bare string stand for a text block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Block {
    Object(Map<String, Value>),
    Bare(String),
}

/// A typed look at a [`Block`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockView<'a> {
    Text(&'a str),
    Image(ImageSource<'a>),
    /// `signature` is the provider's proof that the reasoning is its own; it must go back unchanged.
    Reasoning {
        text: &'a str,
        signature: Option<&'a str>,
    },
    /// A document; a picture that came as a file is an image.
    File {
        mime_type: &'a str,
        source: FileSource<'a>,
        name: Option<&'a str>,
    },
    Other(&'a Map<String, Value>),
}

/// Where an image's bytes are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageSource<'a> {
    /// `https:` or `data:` URL.
    Url(&'a str),
    Base64 {
        mime_type: &'a str,
        data: &'a str,
    },
}

/// Where a file's bytes are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileSource<'a> {
    /// `https:` or `data:` URL.
    Url(&'a str),
    Base64(&'a str),
    /// What the provider calls a file that was uploaded to it.
    Id(&'a str),
    Text(&'a str),
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::object(json!({"type": "text", "text": text.into()}))
    }

    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::object(json!({"type": "reasoning", "reasoning": text.into()}))
    }

    pub fn image_base64(mime_type: &str, data: &str) -> Self {
        Self::object(json!({"type": "image", "mime_type": mime_type, "base64": data}))
    }

    pub fn image_url(url: &str) -> Self {
        Self::object(json!({"type": "image_url", "image_url": {"url": url}}))
    }

    pub fn file_base64(mime_type: &str, data: &str, name: &str) -> Self {
        Self::object(json!({"type": "file", "mime_type": mime_type, "base64": data, "filename": name}))
    }

    /// A block with the given JSON object; anything else becomes its text.
    pub fn object(value: Value) -> Self {
        match value {
            Value::Object(map) => Self::Object(map),
            other => Self::Bare(other.to_string()),
        }
    }

    /// The JSON it arrived as, unless it is a bare string.
    pub fn as_object(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Object(map) => Some(map),
            Self::Bare(_) => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self.view() {
            BlockView::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn view(&self) -> BlockView<'_> {
        let map = match self {
            Self::Bare(text) => return BlockView::Text(text),
            Self::Object(map) => map,
        };
        let field = |name: &str| map.get(name).and_then(Value::as_str);
        match field("type") {
            Some("text") => field("text").map(BlockView::Text),
            Some("reasoning") => {
                field("reasoning").map(|text| BlockView::Reasoning { text, signature: field("signature") })
            }
            Some("thinking") => {
                field("thinking").map(|text| BlockView::Reasoning { text, signature: field("signature") })
            }
            Some("image" | "image_url") => image_source(map).map(BlockView::Image),
            Some("file" | "document" | "text-plain") => file(map),
            _ => None,
        }
        .unwrap_or(BlockView::Other(map))
    }
}

/// LangChain has carried images in five shapes over the years; all of them still arrive.
fn image_source(map: &Map<String, Value>) -> Option<ImageSource<'_>> {
    let field = |name: &str| map.get(name).and_then(Value::as_str);
    match map.get("image_url") {
        Some(Value::String(url)) => return Some(ImageSource::Url(url)),
        Some(Value::Object(inner)) => return inner.get("url")?.as_str().map(ImageSource::Url),
        _ => {}
    }
    if let Some(url) = field("url") {
        return Some(ImageSource::Url(url));
    }
    if let Some(data) = field("base64").or_else(|| field("data")) {
        return Some(ImageSource::Base64 { mime_type: field("mime_type").unwrap_or("image/png"), data });
    }
    let source = map.get("source")?.as_object()?;
    let inner = |name: &str| source.get(name).and_then(Value::as_str);
    match inner("url") {
        Some(url) => Some(ImageSource::Url(url)),
        None => Some(ImageSource::Base64 {
            mime_type: inner("media_type").unwrap_or("image/png"),
            data: inner("data")?,
        }),
    }
}

/// LangChain's files, old (`source_type`) and new, OpenAI's (`file`) and Anthropic's (`document`).
fn file(map: &Map<String, Value>) -> Option<BlockView<'_>> {
    let inner = map.get("file").or_else(|| map.get("source")).and_then(Value::as_object);
    let field = |name: &str| {
        let own = map.get(name).and_then(Value::as_str);
        own.or_else(|| inner.and_then(|inner| inner.get(name)).and_then(Value::as_str))
    };
    let source = if let Some(url) = field("url") {
        FileSource::Url(url)
    } else if let Some(data) = field("base64").or_else(|| field("file_data")) {
        FileSource::Base64(data)
    } else if let Some(data) = field("data") {
        // Anthropic's documents hold plain text under the same name.
        let is_text = inner.and_then(|inner| inner.get("type")).is_some_and(|kind| kind == "text");
        if is_text { FileSource::Text(data) } else { FileSource::Base64(data) }
    } else if let Some(id) = field("file_id") {
        FileSource::Id(id)
    } else if let (Some("id"), Some(id)) = (field("source_type"), field("id")) {
        FileSource::Id(id)
    } else {
        FileSource::Text(field("text")?)
    };
    let (mime_type, source) = match source {
        FileSource::Base64(data) | FileSource::Url(data) => match data_url(data) {
            Some((mime_type, data)) => (Some(mime_type), FileSource::Base64(data)),
            None => (None, source),
        },
        FileSource::Id(_) | FileSource::Text(_) => (None, source),
    };
    let told = field("mime_type").or_else(|| field("media_type")).or(mime_type);
    let mime_type = told.unwrap_or(match source {
        FileSource::Text(_) => "text/plain",
        _ => "application/pdf",
    });
    let name = ["filename", "name", "title"].into_iter().find_map(field);
    Some(match source {
        FileSource::Base64(data) if mime_type.starts_with("image/") => {
            BlockView::Image(ImageSource::Base64 { mime_type, data })
        }
        FileSource::Url(url) if mime_type.starts_with("image/") => BlockView::Image(ImageSource::Url(url)),
        _ => BlockView::File { mime_type, source, name },
    })
}

/// The media type and the base64 text of a `data:` URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
