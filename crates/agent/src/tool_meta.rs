//! What kind of failure a tool's error is, and what the model had better do about it.
//!
//! Invariant: keys and words are DeerFlow's (`deerflow_tool_meta`); clients and middlewares read them, not the text.

use hart_types::Message;
use serde_json::{Value, json};

/// Where it is kept.
pub(crate) const META: &str = "deerflow_tool_meta";

/// The kinds of failure, with the words they are known by. The first that fits is it.
const KINDS: [Kind; 8] = [
    Kind::new("auth", false, "stop", &["401", "403", "unauthorized", "authentication", "api key"]),
    Kind::new("rate_limited", false, "summarize", &["rate limit", "rate_limit", "429", "too many requests"]),
    Kind::new(
        "transient",
        false,
        "try_alternative",
        &["timeout", "timed out", "connection", "network", "temporarily", "502", "503", "504"],
    ),
    Kind::new("config", false, "stop", &["not configured", "not installed", "missing required", "disabled"]),
    Kind::new(
        "permission",
        true,
        "try_alternative",
        &["permission denied", "access denied", "forbidden", "outside"],
    ),
    Kind::new("no_results", true, "rewrite_query", &["no results", "no content found", "no images found"]),
    Kind::new("not_found", true, "rewrite_query", &["not found", "no such file", "does not exist", "404"]),
    Kind::new(
        "internal",
        false,
        "stop",
        &["internal error", "unexpected error", "crashed", "panicked", "500"],
    ),
];

const UNKNOWN: Kind = Kind::new("unknown", true, "try_alternative", &[]);
const TRANSIENT: &str = "transient";

#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    recoverable: bool,
    next: &'static str,
    words: &'static [&'static str],
}

impl Kind {
    const fn new(
        name: &'static str,
        recoverable: bool,
        next: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self { name, recoverable, next, words }
    }
}

/// Where an error comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The tool, or what is around it, failed.
    Exception,
    /// The tool said so itself.
    ToolReturn,
}

/// Marks an error with its kind, unless somebody who knows better has.
pub(crate) fn stamp(message: &mut Message, text: &str, source: Source) {
    if message.additional_kwargs.contains_key(META) {
        return;
    }
    let marked = message.additional_kwargs.shift_remove(hart_kernel::TRANSIENT) == Some(Value::Bool(true));
    let kind = if marked { KINDS.into_iter().find(|kind| kind.name == TRANSIENT) } else { None };
    let kind = kind.unwrap_or_else(|| classify(text));
    let source = match source {
        Source::Exception => "exception",
        Source::ToolReturn => "tool_return",
    };
    let meta = json!({
        "status": "error",
        "error_type": kind.name,
        "recoverable_by_model": kind.recoverable,
        "recommended_next_action": kind.next,
        "source": source,
    });
    message.additional_kwargs.insert(META.to_owned(), meta);
}

/// Judged by its beginning: what follows may be anything's output.
fn classify(text: &str) -> Kind {
    const READ: usize = 500;
    let text: String = text.chars().take(READ).collect::<String>().to_lowercase();
    let known = KINDS.into_iter().find(|kind| kind.words.iter().any(|word| says(&text, word)));
    known.unwrap_or(UNKNOWN)
}

/// A number counts only when it stands alone: 500 is not in `1500ms`.
fn says(text: &str, word: &str) -> bool {
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.contains(word);
    }
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use hart_types::ToolStatus;

    use super::*;

    #[test]
    fn errors_are_told_apart() {
        let cases = [
            ("HTTP 401 from api", "auth"),
            ("request timed out after 30 s", "transient"),
            ("Too many requests", "rate_limited"),
            ("no such file or directory: /a", "not_found"),
            ("`/etc/passwd` is outside of /mnt", "permission"),
            ("took 500ms and then failed", "unknown"),
            ("the tool `x` crashed (oops)", "internal"),
            ("as asked", "unknown"),
        ];
        for (text, kind) in cases {
            let mut message = Message::tool(&"c".into(), "t", ToolStatus::Error, text);
            stamp(&mut message, text, Source::ToolReturn);
            assert_eq!(message.additional_kwargs[META]["error_type"], kind, "{text}");
        }
    }

    #[test]
    fn a_mark_goes_before_words_and_a_stamp_is_kept() {
        let mut message = Message::tool(&"c".into(), "t", ToolStatus::Error, "");
        message.additional_kwargs.insert("transient".into(), true.into());
        stamp(&mut message, "no such file", Source::Exception);
        assert_eq!(message.additional_kwargs[META]["error_type"], "transient");
        assert_eq!(message.additional_kwargs.len(), 1, "the mark has become the stamp");
        stamp(&mut message, "401", Source::Exception);
        assert_eq!(message.additional_kwargs[META]["error_type"], "transient");
    }
}
