//! Spells a file in a provider's words.
//!
//! Invariant: what a dialect has no place for is said in text, so that the model knows what it does not see.

use hart_types::{Block, BlockView, FileSource};
use serde_json::{Map, Value, json};

/// A part of a chat completion's user message; `None` when the block is no file.
pub(crate) fn chat_part(block: &Block, takes_urls: bool) -> Option<Value> {
    let BlockView::File { mime_type, source, name } = block.view() else { return None };
    let file = match source {
        FileSource::Text(text) => return Some(text_part(&titled(name, text))),
        FileSource::Id(id) => json!({"file_id": id}),
        FileSource::Base64(data) => {
            let data = format!("data:{mime_type};base64,{data}");
            json!({"filename": named(name, mime_type), "file_data": data})
        }
        FileSource::Url(url) if takes_urls => {
            json!({"filename": named(name, mime_type), "file_data": url})
        }
        FileSource::Url(url) => return Some(text_part(&format!("[{} is at {url}]", named(name, mime_type)))),
    };
    Some(json!({"type": "file", "file": file}))
}

/// A block of the Messages API; `None` when the block is no file.
pub(crate) fn document(block: &Block) -> Option<Value> {
    let BlockView::File { mime_type, source, name } = block.view() else { return None };
    // A block in the API's own words may say more than is understood here.
    if let Block::Object(map) = block
        && map.get("type").is_some_and(|kind| kind == "document")
    {
        return Some(Value::Object(map.clone()));
    }
    let plain = |text: &str| json!({"type": "text", "media_type": "text/plain", "data": text});
    let source = match source {
        FileSource::Text(text) if text.trim().is_empty() => return None,
        FileSource::Text(text) => plain(text),
        FileSource::Url(url) => json!({"type": "url", "url": url}),
        FileSource::Id(id) => json!({"type": "file", "file_id": id}),
        FileSource::Base64(data) if mime_type == "application/pdf" => {
            json!({"type": "base64", "media_type": mime_type, "data": data})
        }
        FileSource::Base64(data) => match decoded_text(mime_type, data) {
            Some(text) if text.trim().is_empty() => return None,
            Some(text) => plain(&text),
            None => {
                let told =
                    format!("[{} ({mime_type}) cannot be shown to this model]", named(name, mime_type));
                return Some(text_part(&told));
            }
        },
    };
    let mut document =
        Map::from_iter([("type".to_owned(), Value::from("document")), ("source".to_owned(), source)]);
    if let Some(name) = name {
        document.insert("title".to_owned(), name.into());
    }
    Some(Value::Object(document))
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn titled(name: Option<&str>, text: &str) -> String {
    name.map_or_else(|| text.to_owned(), |name| format!("{name}:\n{text}"))
}

/// Chat completions demand a name, and tell the kind of file by its ending.
fn named(name: Option<&str>, mime_type: &str) -> String {
    let ending = match mime_type {
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        "text/markdown" => "md",
        _ => mime_type.rsplit(['/', '.', '+']).next().unwrap_or("bin"),
    };
    name.map_or_else(|| format!("file.{ending}"), str::to_owned)
}

/// The text of a file whose type says it is text.
fn decoded_text(mime_type: &str, data: &str) -> Option<String> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let is_text = essence.starts_with("text/")
        || ["json", "xml", "yaml", "javascript"].iter().any(|kind| essence.ends_with(kind));
    if !is_text {
        return None;
    }
    String::from_utf8(base64(data)?).ok()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_text_is_read() {
        assert_eq!(decoded_text("text/csv; charset=utf-8", "YSxiCjEsMg==").unwrap(), "a,b\n1,2");
        assert_eq!(decoded_text("application/json", "e30").unwrap(), "{}");
        assert_eq!(decoded_text("text/plain", "w7bDvA==").unwrap(), "öü");
        assert_eq!(decoded_text("text/plain", "/w=="), None, "not UTF-8");
        assert_eq!(decoded_text("text/plain", "!"), None);
        assert_eq!(decoded_text("application/zip", "UEsD"), None);
    }
}
