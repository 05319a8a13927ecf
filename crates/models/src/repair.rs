//! Mends JSON that a model wrote almost right.
//!
//! Invariant: a valid object is never changed, no key is invented, and the work is linear in the text.

mod reader;

use serde_json::Value;

pub(crate) use reader::Reader;

/// Deeper than any tool's arguments, and shallow enough for any stack; `serde_json` draws the same line.
const MAX_DEPTH: usize = 127;
/// How often a value may be wrapped as a string inside a string.
const MAX_WRAPS: usize = 3;

/// A value, and whether the text had to be mended to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    pub value: Value,
    pub repaired: bool,
}

/// Why a text could not be mended, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line} column {column}")]
pub struct RepairError {
    pub message: &'static str,
    pub line: usize,
    pub column: usize,
}

/// How much of a text that ends too early may be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Nothing: the text is known to be cut.
    Never,
    /// Brackets behind a whole value. A string or number that touches the end may be half of itself.
    Brackets,
    /// Everything: half strings are closed, keys without a value are dropped.
    All,
}

/// The value of `text`, completed as far as need be.
pub fn repair(text: &str) -> Result<Repaired, RepairError> {
    repair_with(text, Closing::All)
}

/// The value of `text`, completed at most as far as `closing` allows.
pub fn repair_with(text: &str, closing: Closing) -> Result<Repaired, RepairError> {
    let read = match serde_json::from_str(text) {
        Ok(value) => Repaired { value, repaired: false },
        Err(_) => Repaired { value: lenient(text, closing)?, repaired: true },
    };
    Ok(unwrapped(read, closing))
}

fn lenient(text: &str, closing: Closing) -> Result<Value, RepairError> {
    let inner = unfenced(text);
    let mut reader = Reader::new(inner, closing);
    reader.document().map_err(|message| {
        let at = reader.at() + offset(text, inner);
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        RepairError {
            message,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    })
}

/// Where `inner`, a part of `text`, begins in it.
fn offset(text: &str, inner: &str) -> usize {
    (inner.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len())
}

/// An object that was encoded again as a string, as some models do with all their arguments.
fn unwrapped(mut read: Repaired, closing: Closing) -> Repaired {
    for _ in 0..MAX_WRAPS {
        let Value::String(text) = &read.value else { break };
        let inner = text.trim_start();
        if !inner.starts_with(['{', '"']) {
            break;
        }
        let again = serde_json::from_str(text).or_else(|_| lenient(text, closing));
        match again {
            Ok(value @ (Value::Object(_) | Value::String(_))) => read = Repaired { value, repaired: true },
            _ => break,
        }
    }
    read
}

/// The inside of a Markdown code fence, if the text is one.
fn unfenced(text: &str) -> &str {
    let trimmed = text.trim().trim_start_matches('\u{feff}').trim_start();
    let Some(opened) = trimmed.strip_prefix("```") else { return trimmed };
    let opened = opened.trim_start_matches('`');
    let body = opened.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    body.trim_end().trim_end_matches('`')
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
