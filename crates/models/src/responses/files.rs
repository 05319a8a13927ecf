//! Spells what a user shows, texts, images and files, as parts of an input message.
//!
//! Invariant: no block is lost in silence: what has no place of its own is sent as its JSON.

use std::borrow::Cow;

use hart_types::{Block, BlockView, Content, ImageSource};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The content of a message or of a tool's result: a string where that is all there is, since every server takes one.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Input<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

impl Input<'_> {
    /// What the text alone takes.
    pub(super) fn text_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Parts(_) => 0,
        }
    }
}

pub(super) fn input_content(content: &Content) -> Input<'_> {
    let blocks = match content {
        Content::Text(text) => return Input::Text(text.into()),
        Content::Blocks(blocks) => blocks,
    };
    if blocks.iter().all(|block| block.as_text().is_some()) {
        let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
        return Input::Text(texts.join("\n").into());
    }
    let part = |block: &Block| match block.view() {
        BlockView::Text(text) => Some(json!({"type": "input_text", "text": text})),
        BlockView::Image(source) => Some(image(source, block)),
        BlockView::Reasoning { .. } => None,
        BlockView::File { .. } | BlockView::Other(_) => block.as_object().map(other),
    };
    Input::Parts(blocks.iter().filter_map(part).collect())
}

fn image(source: ImageSource<'_>, block: &Block) -> Value {
    let url = match source {
        ImageSource::Url(url) => url.to_owned(),
        ImageSource::Base64 { mime_type, data } => data_url(mime_type, data),
    };
    let mut image = json!({"type": "input_image", "image_url": url});
    // `detail` decides what an image costs; the rest of the block is LangChain's.
    if let (Block::Object(block), Some(image)) = (block, image.as_object_mut()) {
        let inner = block.get("image_url").and_then(|inner| inner.get("detail"));
        if let Some(detail) = inner.or_else(|| block.get("detail")) {
            image.insert("detail".to_owned(), detail.clone());
        }
    }
    image
}

fn other(map: &Map<String, Value>) -> Value {
    let file = match map.get("type").and_then(Value::as_str) {
        Some("input_text" | "input_image" | "input_file" | "input_audio") => Some(map.clone()),
        Some("file") => file(map),
        Some("document") => document(map),
        _ => None,
    };
    match file {
        Some(file) => Value::Object(file),
        None => json!({"type": "input_text", "text": Value::Object(map.clone()).to_string()}),
    }
}

/// LangChain's file, and that of chat completions.
fn file(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    if let Some(Value::Object(inner)) = map.get("file") {
        let mut part = Map::from_iter([("type".to_owned(), "input_file".into())]);
        part.extend(inner.clone());
        return Some(part);
    }
    if let Some(id) = text("file_id") {
        return part([("file_id", id.to_owned())]);
    }
    let named = ["extras", "metadata"].iter().filter_map(|key| map.get(*key)).flat_map(|more| {
        ["filename", "name", "title"].into_iter().filter_map(move |key| more.get(key).and_then(Value::as_str))
    });
    let name = ["filename", "name"].into_iter().filter_map(text).chain(named).next();
    let mime_type = text("mime_type").unwrap_or("application/octet-stream");
    match (text("base64").or_else(|| text("data")), text("url")) {
        (Some(data), _) => data_part(name, mime_type, data),
        (None, Some(url)) => url_part(name, url),
        (None, None) => None,
    }
}

/// Anthropic's file.
fn document(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let source = map.get("source")?;
    let inner = |key: &str| source.get(key).and_then(Value::as_str);
    let title = map.get("title").and_then(Value::as_str);
    match (inner("type")?, inner("data"), inner("url")) {
        ("base64", Some(data), _) => data_part(title, inner("media_type").unwrap_or("application/pdf"), data),
        ("text", Some(data), _) => {
            Some(Map::from_iter([("type".to_owned(), "input_text".into()), ("text".to_owned(), data.into())]))
        }
        ("url", _, Some(url)) => url_part(title, url),
        _ => None,
    }
}

/// The API refuses content without a name.
fn data_part(name: Option<&str>, mime_type: &str, data: &str) -> Option<Map<String, Value>> {
    let name = name.map_or_else(|| format!("file.{}", ending(mime_type)), str::to_owned);
    part([("filename", name), ("file_data", data_url(mime_type, data))])
}

fn url_part(name: Option<&str>, url: &str) -> Option<Map<String, Value>> {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((mime_type, data)) => data_part(name, mime_type, data),
        None => part([("file_url", url.to_owned())]),
    }
}

fn part<const N: usize>(fields: [(&str, String); N]) -> Option<Map<String, Value>> {
    let mut part = Map::from_iter([("type".to_owned(), "input_file".into())]);
    part.extend(fields.map(|(key, value)| (key.to_owned(), Value::from(value))));
    Some(part)
}

fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

fn ending(mime_type: &str) -> &str {
    match mime_type {
        "text/plain" => "txt",
        "text/markdown" => "md",
        other => other.rsplit(['/', '+', '.']).next().unwrap_or("bin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_every_spelling() {
        let shown = |block: Value| {
            serde_json::to_value(input_content(&Content::Blocks(vec![Block::object(block)]))).unwrap()
        };
        let pdf = json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="});
        for block in [
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="}}),
            json!({"type": "file", "mime_type": "application/pdf", "base64": "QQ==", "filename": "a.pdf"}),
            json!({"type": "file", "source_type": "base64", "mime_type": "application/pdf", "data": "QQ==",
                "metadata": {"name": "a.pdf"}}),
            json!({"type": "file", "url": "data:application/pdf;base64,QQ==", "extras": {"filename": "a.pdf"}}),
            json!({"type": "document", "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}}),
            pdf.clone(),
        ] {
            assert_eq!(shown(block.clone()), json!([pdf]), "{block}");
        }
        assert_eq!(
            shown(json!({"type": "file", "url": "https://a/b.pdf"})),
            json!([{"type": "input_file", "file_url": "https://a/b.pdf"}])
        );
        assert_eq!(
            shown(json!({"type": "file", "file_id": "file-1"})),
            json!([{"type": "input_file", "file_id": "file-1"}])
        );
        let unnamed = shown(json!({"type": "file", "mime_type": "text/csv", "base64": "QQ=="}));
        assert_eq!(unnamed[0]["filename"], "file.csv");
        let unknown = shown(json!({"type": "hologram", "x": 1}));
        assert_eq!(unknown, json!([{"type": "input_text", "text": "{\"type\":\"hologram\",\"x\":1}"}]));
    }
}
