//! Compares what has come of a text with what it may become.
//!
//! Invariant: `Maybe` is only said while more text could make it `Yes`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    Maybe,
    No,
}

/// Whether `text` begins with `literal`; `last`: no more text will come.
pub(super) fn matches(text: &str, literal: &str, last: bool) -> Match {
    if text.starts_with(literal) {
        Match::Yes
    } else if !last && literal.starts_with(text) {
        Match::Maybe
    } else {
        Match::No
    }
}

/// The first `bytes` of `text`, or as many as whole characters take.
pub(super) fn first(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
