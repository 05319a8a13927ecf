//! Fits text into the room a tool's answer has.
//!
//! Invariant: a cut never splits a character, and the reader is told that something is missing.

/// Keeps the beginning and the end. `note` says how many characters it replaces; `limit` counts it too.
pub(crate) fn middle(text: String, limit: usize, note: impl Fn(usize) -> String) -> String {
    let total = text.chars().count();
    if limit == 0 || total <= limit {
        return text;
    }
    // Sized for the longest number it can hold, so that the real one always fits.
    let room = limit.saturating_sub(note(total).chars().count());
    let (head, tail) = (room.div_ceil(2), room / 2);
    format!("{}{}{}", first_chars(&text, head), note(total - room), last_chars(&text, tail))
}

/// The whole lines, line ends included, that fit into `limit` characters, and how many they are.
pub(crate) fn whole_lines(text: &str, limit: usize) -> (&str, usize) {
    let (mut bytes, mut chars, mut lines) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        chars += line.chars().count();
        if chars > limit {
            break;
        }
        bytes += line.len();
        lines += 1;
    }
    (text.get(..bytes).unwrap_or(text), lines)
}

pub(crate) fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

pub(crate) fn last_chars(text: &str, count: usize) -> &str {
    let Some(skipped) = count.checked_sub(1) else { return "" };
    text.char_indices().nth_back(skipped).and_then(|(start, _)| text.get(start..)).unwrap_or(text)
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
