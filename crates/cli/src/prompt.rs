//! Several lines as one prompt.
//!
//! Invariant: what is typed arrives as typed, but for the marks that hold its lines together.

/// Opens and closes a block of lines.
const FENCE: &str = "\"\"\"";

/// Whether the text waits for another line: its last one ends in `\`, or a `"""` is not closed.
pub(crate) fn is_open(text: &str) -> bool {
    match text.trim_start().strip_prefix(FENCE) {
        Some(block) => !block.trim_end().ends_with(FENCE),
        None => text.ends_with('\\'),
    }
}

/// The text without the marks.
pub(crate) fn unfold(text: &str) -> String {
    let block = text.trim().strip_prefix(FENCE);
    match block.map(|block| block.strip_suffix(FENCE).unwrap_or(block)) {
        Some(block) => block.trim_matches('\n').to_owned(),
        None => text.replace("\\\n", "\n").trim_end_matches('\\').trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_continues() {
        assert!(is_open("one\\"));
        assert!(!is_open("one\\\ntwo"));
        assert_eq!(unfold("one\\\ntwo"), "one\ntwo");
    }

    #[test]
    fn a_fence_holds_lines_together_as_they_are() {
        assert!(is_open("\"\"\""));
        assert!(is_open("\"\"\"a\nb"));
        assert!(!is_open("\"\"\"a\nb\"\"\""));
        assert_eq!(unfold("\"\"\"\ncd x && \\\n  make\n\"\"\""), "cd x && \\\n  make");
    }

    #[test]
    fn input_that_ends_early_is_not_lost() {
        assert_eq!(unfold("one\\"), "one");
        assert_eq!(unfold("\"\"\"one"), "one");
        assert_eq!(unfold("  plain  "), "plain");
    }
}
