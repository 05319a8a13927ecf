//! What a message and a tool cost around their text.
//!
//! Invariant: bytes of images and files are never counted as text.

use hart_kernel::{OutputFormat, ToolSpec};
use hart_types::{Ai, Block, BlockView, Content, FileSource, Message};
use serde_json::Value;

/// The role and the marks around a message.
pub(super) const AROUND: u64 = 4;
/// The start of the answer.
pub(super) const REPLY: u64 = 3;
/// The marks around a call or the declaration of a tool.
const AROUND_TOOL: u64 = 8;
/// A page of a document: its text, and often its picture.
const PAGE: u64 = 2000;
/// How many characters of base64 a page of a document usually is.
const PAGE_BYTES: u64 = 70_000;

type Count<'a> = &'a dyn Fn(&str) -> u64;

pub(super) fn message(message: &Message, image: u64, with_reasoning: bool, count: Count<'_>) -> u64 {
    let mut sum = AROUND;
    match &message.content {
        Content::Text(text) => sum += count(text),
        Content::Blocks(blocks) => {
            sum += blocks.iter().map(|b| block(b, image, with_reasoning, count)).sum::<u64>();
        }
    }
    if let Some(ai) = message.as_ai() {
        sum += calls(ai, count);
    }
    if let Some(result) = message.as_tool_result() {
        sum += count(result.tool_call_id.as_str());
    }
    sum
}

fn block(block: &Block, image: u64, with_reasoning: bool, count: Count<'_>) -> u64 {
    match block.view() {
        BlockView::Text(text) => count(text),
        BlockView::Image(_) => image,
        BlockView::Reasoning { text, .. } if with_reasoning => count(text),
        BlockView::Reasoning { .. } => 0,
        BlockView::File { mime_type, source, .. } => match source {
            FileSource::Text(text) => count(text),
            FileSource::Base64(_) if mime_type.starts_with("image/") => image,
            FileSource::Base64(data) => PAGE * (data.len() as u64).div_ceil(PAGE_BYTES).max(1),
            FileSource::Url(_) | FileSource::Id(_) => PAGE,
        },
        // Stands in `tool_calls` too.
        BlockView::Other(map) if map.get("type").is_some_and(|kind| kind == "tool_use") => 0,
        BlockView::Other(map) => count(&Value::Object(map.clone()).to_string()),
    }
}

fn calls(ai: &Ai, count: Count<'_>) -> u64 {
    let valid = ai.tool_calls.iter().map(|call| {
        let id = call.id.as_ref().map_or(0, |id| count(id.as_str()));
        id + count(&call.name) + count(&Value::Object(call.args.clone()).to_string()) + AROUND_TOOL
    });
    let invalid = ai.invalid_tool_calls.iter();
    let invalid = invalid.map(|call| count(call.name.as_deref().unwrap_or_default()) + AROUND_TOOL);
    valid.chain(invalid).sum()
}

pub(super) fn tool(tool: &ToolSpec, count: Count<'_>) -> u64 {
    count(&tool.name) + count(&tool.description) + count(&tool.input_schema.to_string()) + AROUND_TOOL
}

pub(super) fn output(format: &OutputFormat, count: Count<'_>) -> u64 {
    match format {
        OutputFormat::Text => 0,
        OutputFormat::Json { schema, .. } => count(&schema.to_string()) + AROUND_TOOL,
    }
}
