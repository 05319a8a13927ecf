//! The file in which the agent can read what left its view.
//!
//! Invariant: what is written is what was said, message by message, in order; only pictures and other data that is no
//! text are named instead.

use std::fmt::Write as _;
use std::sync::Arc;

use hart_sandbox::{HISTORY, PathError, VPath};
use hart_types::{Block, BlockView, Body, Content, Message};

/// A file per thread and first compaction: a thread that was taken back goes on in its own.
pub(super) fn path(session: &str) -> Result<VPath, PathError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = session.chars().take(64).map(plain).collect();
    VPath::parse(&format!("{HISTORY}/session_{name}.md"))
}

/// One section of the file.
pub(super) fn render<'a>(when: &str, messages: impl Iterator<Item = &'a Arc<Message>>) -> String {
    let mut text = format!("## Compacted at {when}\n");
    for message in messages {
        entry(&mut text, message);
    }
    text.push('\n');
    text
}

fn entry(text: &mut String, message: &Message) {
    let who = match &message.body {
        Body::Human => "user".to_owned(),
        Body::Ai(_) | Body::AiChunk(_) => "assistant".to_owned(),
        Body::Tool(_) => format!("result of {}", message.name.as_deref().unwrap_or("a tool")),
        _ => message.kind().to_owned(),
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n### {who}\n");
    match message.additional_kwargs.get("lc_evicted_to").and_then(|path| path.as_str()) {
        Some(path) => {
            let _ = writeln!(text, "(a very long message; it is in {path})");
        }
        None => said(text, &message.content),
    }
    for call in message.tool_calls() {
        let args = serde_json::to_string_pretty(&call.args).unwrap_or_default();
        let _ = writeln!(text, "calls {} {args}", call.name);
    }
}

fn said(text: &mut String, content: &Content) {
    match content {
        Content::Text(said) if said.is_empty() => {}
        Content::Text(said) => {
            let _ = writeln!(text, "{said}");
        }
        Content::Blocks(blocks) => blocks.iter().for_each(|block| block_said(text, block)),
    }
}

fn block_said(text: &mut String, block: &Block) {
    let _ = match block.view() {
        BlockView::Text(said) => writeln!(text, "{said}"),
        BlockView::Image(_) => writeln!(text, "[an image]"),
        BlockView::File { mime_type, name, .. } => {
            writeln!(text, "[a file: {} ({mime_type})]", name.unwrap_or("without a name"))
        }
        BlockView::Reasoning { .. } | BlockView::Other(_) => Ok(()),
    };
}
