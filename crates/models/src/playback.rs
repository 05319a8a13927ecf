//! Streams a message that is already known as if a model were just writing it.
//!
//! Invariant: the fragments put together are the message that `Done` carries.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream;
use hart_kernel::{ChatChunk, ChatStream, ModelError};
use hart_types::{Block, BlockView, Content, Message, ToolCallChunk};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// About three tokens.
const PIECE_CHARS: usize = 12;

/// The message in small pieces, `pace` apart.
pub(crate) fn stream(message: Message, pace: Option<Duration>, cancel: &CancellationToken) -> ChatStream {
    let chunks = chunks(message);
    Box::pin(stream::unfold((chunks, cancel.clone()), move |(mut chunks, cancel)| async move {
        let chunk = chunks.pop_front()?;
        let paused = async {
            if let Some(pace) = pace {
                tokio::time::sleep(pace).await;
            }
        };
        let cancelled = tokio::select! {
            biased;
            () = cancel.cancelled() => true,
            () = paused => false,
        };
        if cancelled {
            chunks.clear();
            return Some((Err(ModelError::cancelled()), (chunks, cancel)));
        }
        Some((Ok(chunk), (chunks, cancel)))
    }))
}

fn chunks(message: Message) -> VecDeque<ChatChunk> {
    let mut out = VecDeque::new();
    let mut say = |block: &Block| match block.view() {
        BlockView::Text(text) => out.extend(pieces(text).map(ChatChunk::Text)),
        BlockView::Reasoning { text, .. } => out.extend(pieces(text).map(ChatChunk::Reasoning)),
        BlockView::Image(_) | BlockView::File { .. } | BlockView::Other(_) => {}
    };
    match &message.content {
        Content::Text(text) => say(&Block::Bare(text.clone())),
        Content::Blocks(blocks) => blocks.iter().for_each(say),
    }
    if let Some(ai) = message.as_ai() {
        let valid = ai.tool_calls.iter();
        let valid =
            valid.map(|c| (c.id.clone(), Some(c.name.clone()), Value::Object(c.args.clone()).to_string()));
        let invalid = ai.invalid_tool_calls.iter();
        let invalid = invalid.map(|c| (c.id.clone(), c.name.clone(), c.args.clone().unwrap_or_default()));
        for (index, (id, name, args)) in valid.chain(invalid).enumerate() {
            out.push_back(ChatChunk::ToolCall(ToolCallChunk::new(index, id, name, String::new())));
            let more =
                pieces(&args).map(|piece| ChatChunk::ToolCall(ToolCallChunk::new(index, None, None, piece)));
            out.extend(more);
        }
    }
    out.push_back(ChatChunk::Done(Box::new(message)));
    out
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let mut chars = text.chars();
    std::iter::from_fn(move || {
        let piece: String = chars.by_ref().take(PIECE_CHARS).collect();
        (!piece.is_empty()).then_some(piece)
    })
}
