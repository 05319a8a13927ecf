//! What can be done to a model's answer before others read it: calls taken out, words and reasons added.
//!
//! Invariant: a call that is taken out leaves no trace in the content, so what is sent back to a provider fits.

use std::collections::HashSet;

use hart_kernel::{HookError, ModelNext, ModelRequest, ModelResponse, ToolChoice};
use hart_types::{Block, Body, Content, Message, ToolCallId};
use serde_json::Value;

/// Why an answer is the last one, or not what it would have been: DeerFlow's word for it.
pub(crate) const STOP_REASON: &str = "stop_reason";

pub(crate) fn set_stop_reason(message: &mut Message, reason: &str) {
    // Not in `response_metadata`: a provider's own word of that name is there.
    message.additional_kwargs.insert(STOP_REASON.to_owned(), reason.into());
}

pub(crate) fn stop_reason(message: &Message) -> Option<&str> {
    message.additional_kwargs.get(STOP_REASON)?.as_str()
}

/// Asks once more, without tools, and marks the answer as the last one. `note` is read by the model, `remark` by the
/// user.
pub(crate) async fn last_word(
    mut request: ModelRequest,
    next: ModelNext<'_>,
    note: &str,
    reason: &str,
    remark: &str,
) -> Result<ModelResponse, HookError> {
    request.chat.messages.push(hidden(note).into());
    // The tools stay in the request: histories with calls need them, and so does the provider's cache.
    request.chat.settings.tool_choice = ToolChoice::None;
    let mut response = next.run(request).await?;
    take_calls(&mut response.message, |_| false);
    append_text(&mut response.message, remark);
    set_stop_reason(&mut response.message, reason);
    Ok(response)
}

/// A message that speaks to the model and not to the user.
pub(crate) fn hidden(text: &str) -> Message {
    let mut message = Message::human(text);
    message.additional_kwargs.insert("hide_from_ui".to_owned(), true.into());
    message
}

/// Whether a person wrote it. Answers to forms are hidden, but written by a person too.
pub(crate) fn is_from_user(message: &Message) -> bool {
    let says =
        |key: &str| message.additional_kwargs.get(key).is_some_and(|value| *value != Value::Bool(false));
    matches!(message.body, Body::Human) && (!says("hide_from_ui") || says("human_input_response"))
}

/// Takes out the calls that `keep` does not want, valid or not; their names are returned.
pub(crate) fn take_calls(message: &mut Message, keep: impl Fn(Option<&ToolCallId>) -> bool) -> Vec<String> {
    let Body::Ai(ai) = &mut message.body else { return Vec::new() };
    let (mut names, mut ids) = (Vec::new(), HashSet::new());
    let mut take = |id: &Option<ToolCallId>, name: &str| {
        let kept = keep(id.as_ref());
        if !kept {
            names.push(name.to_owned());
            ids.extend(id.clone());
        }
        kept
    };
    ai.tool_calls.retain(|call| take(&call.id, &call.name));
    ai.invalid_tool_calls.retain(|call| take(&call.id, call.name.as_deref().unwrap_or_default()));
    if let Content::Blocks(blocks) = &mut message.content {
        blocks.retain(|block| !marks_one_of(block, &ids));
    }
    names
}

/// Takes out the calls that were not whole; their names are returned.
pub(crate) fn take_invalid_calls(message: &mut Message) -> Vec<String> {
    let Body::Ai(ai) = &mut message.body else { return Vec::new() };
    let taken = std::mem::take(&mut ai.invalid_tool_calls);
    let ids: HashSet<ToolCallId> = taken.iter().filter_map(|call| call.id.clone()).collect();
    if let Content::Blocks(blocks) = &mut message.content {
        blocks.retain(|block| !marks_one_of(block, &ids));
    }
    taken.into_iter().map(|call| call.name.unwrap_or_default()).collect()
}

pub(crate) fn append_text(message: &mut Message, text: &str) {
    if text.is_empty() {
        return;
    }
    match &mut message.content {
        Content::Text(said) if said.trim().is_empty() => text.clone_into(said),
        Content::Text(said) => {
            said.push_str("\n\n");
            said.push_str(text);
        }
        Content::Blocks(blocks) => blocks.push(Block::text(text)),
    }
}

/// Whether a reader would see nothing: no text, no picture, no call.
pub(crate) fn is_blank(message: &Message) -> bool {
    let Some(ai) = message.as_ai() else { return false };
    let silent = |block: &Block| match block.as_text() {
        Some(text) => text.trim().is_empty(),
        None => matches!(kind(block), Some("reasoning" | "thinking" | "redacted_thinking" | "tool_use")),
    };
    let said_nothing = match &message.content {
        Content::Text(text) => text.trim().is_empty(),
        Content::Blocks(blocks) => blocks.iter().all(silent),
    };
    said_nothing && ai.tool_calls.is_empty() && ai.invalid_tool_calls.is_empty()
}

/// Where something follows a call, the content marks the call's place.
fn marks_one_of(block: &Block, ids: &HashSet<ToolCallId>) -> bool {
    let Block::Object(map) = block else { return false };
    let id = map.get("id").and_then(Value::as_str);
    kind(block) == Some("tool_use") && id.is_some_and(|id| ids.contains(&ToolCallId::from(id)))
}

fn kind(block: &Block) -> Option<&str> {
    match block {
        Block::Object(map) => map.get("type")?.as_str(),
        Block::Bare(_) => None,
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
