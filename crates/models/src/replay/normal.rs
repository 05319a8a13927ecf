//! What a conversation says, without what changes from run to run.
//!
//! Invariant: normalising twice is normalising once.

use std::collections::HashMap;
use std::sync::Arc;

use hart_types::{Block, BlockView, Body, Content, FileSource, ImageSource, Message, ToolCallId, ToolStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

mod scrub;
use scrub::scrub;

/// One message, reduced to what a model reacts to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// `human`, `ai` or `tool`.
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Digests of the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SaidCall>,
    /// Which call of the conversation this answers, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<usize>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SaidCall {
    pub name: String,
    pub args: Value,
}

/// The conversation as recordings know it. System messages are left out, as the system prompt is.
pub fn normalise<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<Said> {
    let mut calls: HashMap<ToolCallId, usize> = HashMap::new();
    let mut count = 0;
    let mut out = Vec::new();
    for message in messages {
        let role = match &message.body {
            Body::Human => "human",
            Body::Ai(_) | Body::AiChunk(_) => "ai",
            Body::Tool(_) => "tool",
            Body::System | Body::Remove | Body::Other(_) => continue,
        };
        let mut said = Said {
            role: role.to_owned(),
            text: scrub(&named(&message.original_text(), &calls)),
            images: images(&message.content),
            calls: Vec::new(),
            answers: None,
            failed: false,
        };
        if let Some(ai) = message.as_ai() {
            for call in &ai.tool_calls {
                if let Some(id) = &call.id {
                    calls.insert(id.clone(), count);
                }
                count += 1;
                said.calls.push(SaidCall {
                    name: call.name.clone(),
                    args: scrubbed(&Value::Object(call.args.clone())),
                });
            }
            for call in &ai.invalid_tool_calls {
                if let Some(id) = &call.id {
                    calls.insert(id.clone(), count);
                }
                count += 1;
                let args = Value::from(scrub(call.args.as_deref().unwrap_or_default()));
                said.calls.push(SaidCall { name: call.name.clone().unwrap_or_default(), args });
            }
        }
        if let Some(result) = message.as_tool_result() {
            said.answers = calls.get(&result.tool_call_id).copied();
            said.failed = result.status == ToolStatus::Error;
        }
        out.push(said);
    }
    out
}

/// Ids of calls that stand in a text become their position.
fn named(text: &str, calls: &HashMap<ToolCallId, usize>) -> String {
    let mut text = text.to_owned();
    for (id, position) in calls {
        if id.as_str().len() >= 6 && text.contains(id.as_str()) {
            text = text.replace(id.as_str(), &format!("<call {position}>"));
        }
    }
    text
}

fn images(content: &Content) -> Vec<String> {
    let Content::Blocks(blocks) = content else { return Vec::new() };
    let digest = |block: &Block| match block.view() {
        BlockView::Image(ImageSource::Url(url)) => Some(sha(url)),
        BlockView::Image(ImageSource::Base64 { data, .. }) => Some(sha(data)),
        BlockView::File { source: FileSource::Url(url), .. } => Some(sha(url)),
        BlockView::File { source: FileSource::Base64(data), .. } => Some(sha(data)),
        BlockView::File { source: FileSource::Id(id), .. } => Some(sha(id)),
        BlockView::File { source: FileSource::Text(text), .. } => Some(sha(text)),
        _ => None,
    };
    blocks.iter().filter_map(digest).collect()
}

fn sha(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Keys in order, texts scrubbed.
fn scrubbed(value: &Value) -> Value {
    match value {
        Value::String(text) => scrub(text).into(),
        Value::Array(items) => items.iter().map(scrubbed).collect(),
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().map(|(key, value)| (key.clone(), scrubbed(value))).collect();
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(Map::from_iter(pairs))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Both messages around the first place where they differ.
pub(super) fn excerpts(recorded: Option<&Said>, found: Option<&Said>) -> (String, String) {
    const AROUND: usize = 60;
    let spelled = |said: Option<&Said>| said.map(|said| serde_json::to_string(said).unwrap_or_default());
    let (recorded, found) = (spelled(recorded), spelled(found));
    let at = match (&recorded, &found) {
        (Some(a), Some(b)) => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let cut = |text: Option<String>, absent: &str| {
        let Some(text) = text else { return absent.to_owned() };
        let start = at.saturating_sub(AROUND);
        let mut excerpt: String = text.chars().skip(start).take(2 * AROUND).collect();
        if start > 0 {
            excerpt.insert(0, '…');
        }
        if text.chars().count() > start + 2 * AROUND {
            excerpt.push('…');
        }
        excerpt
    };
    (cut(recorded, "(the conversation ends here)"), cut(found, "(the conversation ends here)"))
}
