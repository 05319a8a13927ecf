//! Puts a note where a model would get something it cannot take in.
//!
//! Invariant: everything else of a message stays as it is.

use hart_types::{Block, BlockView, Body, Content, Message};
use serde_json::Value;

use super::Parameter;

/// What the model cannot take in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unseen {
    pub(super) images: bool,
    pub(super) files: bool,
}

impl Unseen {
    /// The message with notes in it; `None` when it holds nothing of the kind.
    pub(super) fn replace(self, message: &Message, tell: impl Fn(Parameter)) -> Option<Message> {
        // What a model said itself is its own to judge; a signed block must not change.
        if matches!(message.body, Body::Ai(_) | Body::AiChunk(_)) {
            return None;
        }
        let Content::Blocks(blocks) = &message.content else { return None };
        let mut changed = false;
        let note = |block: &Block| match self.unseen(block) {
            Some(parameter) => {
                changed = true;
                tell(parameter);
                Block::text(match parameter {
                    Parameter::Images => "[An image was here. You cannot see images.]",
                    _ => "[A file was here. You cannot read files of this kind.]",
                })
            }
            None => block.clone(),
        };
        let blocks = blocks.iter().map(note).collect();
        changed.then(|| {
            let mut message = message.clone();
            message.content = Content::Blocks(blocks);
            message
        })
    }

    fn unseen(self, block: &Block) -> Option<Parameter> {
        if matches!(block.view(), BlockView::Image(_)) {
            return self.images.then_some(Parameter::Images);
        }
        let Block::Object(map) = block else { return None };
        match map.get("type").and_then(Value::as_str) {
            Some("file" | "document") => self.files.then_some(Parameter::Files),
            _ => None,
        }
    }
}
