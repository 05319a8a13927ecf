//! Puts what was found in the text into the finished message.
//!
//! Invariant: blocks that are not text stay as the provider sent them, in their order.

use hart_kernel::ChatChunk;
use hart_types::{
    Ai, Block, BlockView, Body, Content, InvalidToolCall, Message, ToolCall, ToolCallChunk, ToolCallId,
};
use serde_json::Value;

use super::offered::Found;
use super::scanner::{Called, Scanner};
use crate::tool_args;

/// Whether the provider stopped before the model had finished.
pub(super) fn is_cut(message: &Message) -> bool {
    ["finish_reason", "stop_reason"]
        .iter()
        .filter_map(|key| message.response_metadata.get(*key)?.as_str())
        .any(tool_args::is_cut)
}

/// The message as it should have come, and the fragments that are still missing.
pub(super) fn finished(
    scanner: &mut Scanner,
    mut message: Message,
    native_wins: bool,
) -> (Message, Vec<ChatChunk>) {
    if scanner.is_untouched() {
        return (message, Vec::new());
    }
    let mut chunks = Vec::new();
    let mut text = std::mem::take(&mut scanner.text);
    let called = std::mem::take(&mut scanner.calls);
    if let Body::Ai(ai) = &mut message.body {
        let has_native = !ai.tool_calls.is_empty() || !ai.invalid_tool_calls.is_empty();
        for Called { mut found, written } in called {
            // The same call told twice is one call.
            found.retain(|found| !is_told(ai, found));
            if has_native && native_wins && !found.is_empty() {
                text.push_str(&written);
                chunks.push(ChatChunk::Text(written));
                continue;
            }
            for found in found {
                chunks.push(ChatChunk::ToolCall(file(ai, found)));
            }
        }
    }
    let reasoning = std::mem::take(&mut scanner.reasoning);
    message.content = content(&message.content, text, reasoning);
    (message, chunks)
}

fn is_told(ai: &Ai, found: &Found) -> bool {
    let Found::Call { name, args, .. } = found else { return false };
    let from_text = |call: &ToolCall| call.extra.contains_key("from_text");
    ai.tool_calls.iter().any(|call| !from_text(call) && &call.name == name && &call.args == args)
}

/// Adds a call to the message, and gives back its only fragment.
fn file(ai: &mut Ai, found: Found) -> ToolCallChunk {
    let id: ToolCallId = format!("call_{}", ToolCallId::generate()).into();
    let index = ai.tool_calls.len() + ai.invalid_tool_calls.len();
    match found {
        Found::Call { name, args, repaired } => {
            let written = Value::Object(args.clone()).to_string();
            let mut call = ToolCall::new(id.clone(), name.clone(), args);
            call.extra.insert("from_text".to_owned(), true.into());
            if repaired {
                call.extra.insert("repaired".to_owned(), true.into());
            }
            ai.tool_calls.push(call);
            ToolCallChunk::new(index, Some(id), Some(name), written)
        }
        Found::Broken { name, args, error } => {
            ai.invalid_tool_calls.push(InvalidToolCall::new(id.clone(), &name, &args, error));
            ToolCallChunk::new(index, Some(id), Some(name), args)
        }
    }
}

fn content(before: &Content, text: String, reasoning: String) -> Content {
    let mut blocks = Vec::new();
    let mut said = (!text.is_empty()).then(|| Block::text(text.clone()));
    let mut thought = (!reasoning.is_empty()).then(|| Block::reasoning(reasoning));
    let old = match before {
        Content::Text(_) if thought.is_none() => return Content::Text(text),
        Content::Text(_) => &[][..],
        Content::Blocks(blocks) => blocks.as_slice(),
    };
    for block in old {
        match block.view() {
            BlockView::Text(_) => {
                blocks.extend(thought.take());
                blocks.extend(said.take());
            }
            _ => blocks.push(block.clone()),
        }
    }
    blocks.extend(thought);
    blocks.extend(said);
    Content::Blocks(blocks)
}
