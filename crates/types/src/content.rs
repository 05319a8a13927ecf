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

    /// A block with the given JSON object; anything else becomes its text.
    pub fn object(value: Value) -> Self {
        match value {
            Value::Object(map) => Self::Object(map),
            other => Self::Bare(other.to_string()),
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
