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
