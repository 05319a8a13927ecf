//! Errors as they are written into a log.
//!
//! Invariant: no cause is left out, and none is on a line of its own.

use std::error::Error;

/// The whole story in one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
