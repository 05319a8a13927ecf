//! The headers of gpt-oss's messages: who speaks, on which channel, to whom.
//!
//! Invariant: a header is short and ends with `<|message|>`; anything else is text.

use super::literal::{Match, first, matches};

const MESSAGE: &str = "<|message|>";
const MAX_HEADER: usize = 256;

/// What ends a message; `false`: it also begins the next.
pub(super) const ENDS: &[(&str, bool)] = &[
    ("<|end|>", true),
    ("<|return|>", true),
    ("<|call|>", true),
    ("<|start|>", false),
    ("<|channel|>", false),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    No,
    More,
    /// What follows is reasoning; each with the length of the header.
    Analysis(usize),
    /// What follows are the arguments of a call.
    Call(String, usize),
    /// What follows is for the user.
    Said(usize),
}

pub(super) fn header(text: &str, last: bool) -> Header {
    let opened = ["<|channel|>", "<|start|>assistant"].map(|mark| matches(text, mark, last));
    if !opened.contains(&Match::Yes) {
        return if opened.contains(&Match::Maybe) { Header::More } else { Header::No };
    }
    // Only so much is looked at, so that it does not matter how much is there.
    let seen = first(text, MAX_HEADER);
    let Some(length) = seen.find(MESSAGE) else {
        let open = !last && text.len() <= MAX_HEADER && !seen.contains('\n');
        return if open { Header::More } else { Header::No };
    };
    let head = seen.get(..length).unwrap_or_default();
    if head.contains('\n') {
        return Header::No;
    }
    let length = length + MESSAGE.len();
    if let Some((_, to)) = head.split_once("to=") {
        let name = to.split(|c: char| c.is_whitespace() || c == '<').next().unwrap_or_default();
        return Header::Call(name.to_owned(), length);
    }
    match head.split_once("<|channel|>").map(|(_, channel)| channel.trim()) {
        Some(channel) if channel.starts_with("analysis") => Header::Analysis(length),
        Some(channel) if channel.starts_with("final") || channel.starts_with("commentary") => {
            Header::Said(length)
        }
        _ => Header::No,
    }
}
