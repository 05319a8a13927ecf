//! The sanitiser: takes from a text what could pass for a part of the prompt, and nothing else.
//!
//! Invariant: neutralising twice is neutralising once, and looking ahead is bounded, so the time is linear.
//!
//! Three things go. Characters that do not show are dropped. The bracket that opens a framework's tag, or a chat
//! template's token such as `<|im_start|>`, becomes `&lt;`. The dashes of a forged marker become square brackets.
//! Everything else stays to the byte, so code and prose read as before. What it does not catch: letters of other
//! scripts that look like Latin ones, and instructions in plain words; against those stand the sealed block and the
//! guards around tools.

use std::fmt;

use crate::invisible;
use crate::tags::{LONGEST, folded, is_tag, narrow};

/// A text that went through the sanitiser.
#[derive(Clone, PartialEq, Eq)]
pub struct Neutral(String);

impl Neutral {
    pub(crate) fn of(text: &str) -> Self {
        Self(neutralise(text).0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for Neutral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text, and how many characters were looked at for it.
fn neutralise(text: &str) -> (String, usize) {
    let text: Vec<char> = invisible::strip(text).chars().collect();
    let mut scan = Scan { text: &text, looked_at: 0 };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = scan.peek(at) {
        let before = at.checked_sub(1).and_then(|at| text.get(at)).copied();
        if narrow(c) == '<' && scan.opens_a_tag(at + 1) {
            out.push_str("&lt;");
            at += 1;
        } else if is_dash(c)
            && !before.is_some_and(is_dash)
            && let Some(marker) = scan.marker(at)
        {
            out.push_str(marker.inert);
            at = marker.end;
        } else {
            out.push(c);
            at += 1;
        }
    }
    (out, scan.looked_at)
}

struct Scan<'a> {
    text: &'a [char],
    looked_at: usize,
}

/// Markers that enclose what came from outside. [`crate::sealed`] writes the real ones.
const MARKERS: [(&str, &str); 4] = [
    ("BEGIN USER INPUT", "[BEGIN USER INPUT]"),
    ("END USER INPUT", "[END USER INPUT]"),
    ("BEGIN UNTRUSTED CONTENT", "[BEGIN UNTRUSTED CONTENT]"),
    ("END UNTRUSTED CONTENT", "[END UNTRUSTED CONTENT]"),
];

struct Marker {
    inert: &'static str,
    end: usize,
}

/// How far attributes of a tag are followed, and how many spaces count as none.
const REACH: usize = 200;
const GAP: usize = 16;

impl Scan<'_> {
    fn peek(&mut self, at: usize) -> Option<char> {
        self.looked_at += 1;
        self.text.get(at).copied()
    }

    /// Whether a tag's name, or a template's token, follows the bracket before `at`.
    fn opens_a_tag(&mut self, at: usize) -> bool {
        if self.peek(at).is_some_and(|c| narrow(c) == '|') {
            return self.is_token(at + 1);
        }
        let spaced = self.skip_space(at);
        let slash = self.peek(spaced).is_some_and(|c| narrow(c) == '/');
        let start = if slash { self.skip_space(spaced + 1) } else { spaced };
        let (name, end) = self.name(start);
        // `a < memory` compares; `< memory >` and `< memory of="…` are tags.
        let touches = start == at + usize::from(slash);
        is_tag(&name) && (touches || self.has_attribute(end) || self.closes(end))
    }

    /// `<|word|>`, as chat templates write it. However long the word is: it holds no bracket, so nothing is looked at
    /// twice.
    fn is_token(&mut self, start: usize) -> bool {
        let end = self.skip_word(start);
        end > start
            && self.peek(end).is_some_and(|c| narrow(c) == '|')
            && self.peek(end + 1).is_some_and(|c| narrow(c) == '>')
    }

    fn name(&mut self, start: usize) -> (String, usize) {
        let mut name = String::new();
        let mut at = start;
        while name.len() < LONGEST
            && let Some(c) = self.peek(at).and_then(folded)
        {
            name.push(c);
            at += 1;
        }
        (name, at)
    }

    /// Whether a name and a sign of equality follow. The closing bracket may be in the next piece of the text.
    fn has_attribute(&mut self, start: usize) -> bool {
        let name = self.skip_space(start);
        let end = self.skip_word(name);
        name > start && end > name && self.peek(end).is_some_and(|c| narrow(c) == '=')
    }

    /// Whether nothing but attributes stand between here and the closing bracket.
    fn closes(&mut self, start: usize) -> bool {
        for at in start..start + REACH {
            match self.peek(at).map(narrow) {
                Some('>') => return true,
                Some(c) if c.is_alphanumeric() || c.is_whitespace() => {}
                Some('=' | '"' | '\'' | '/' | '-' | '_' | ':' | '.') => {}
                _ => return false,
            }
        }
        false
    }

    fn skip_word(&mut self, start: usize) -> usize {
        let mut at = start;
        while self.peek(at).and_then(folded).is_some() {
            at += 1;
        }
        at
    }

    fn skip_space(&mut self, start: usize) -> usize {
        let mut at = start;
        while at < start + GAP && self.peek(at).is_some_and(char::is_whitespace) {
            at += 1;
        }
        at
    }

    /// A marker that begins with the dashes at `start`; dashes around it belong to it.
    fn marker(&mut self, start: usize) -> Option<Marker> {
        let dashes = self.skip_dashes(start);
        if dashes < start + 2 {
            return None;
        }
        let words = self.skip_space(dashes);
        let (inert, end) =
            MARKERS.iter().find_map(|(spelling, inert)| Some((*inert, self.words(spelling, words)?)))?;
        let closing = self.skip_space(end);
        let closed = self.skip_dashes(closing);
        Some(Marker { inert, end: if closed >= closing + 2 { closed } else { end } })
    }

    fn skip_dashes(&mut self, start: usize) -> usize {
        let mut at = start;
        while self.peek(at).is_some_and(is_dash) {
            at += 1;
        }
        at
    }

    /// The end of these words, in any case and with any space between them.
    fn words(&mut self, spelling: &str, start: usize) -> Option<usize> {
        let mut at = start;
        for expected in spelling.chars() {
            if expected == ' ' {
                let next = self.skip_space(at);
                if next == at {
                    return None;
                }
                at = next;
                continue;
            }
            if self.peek(at).map(|c| narrow(c).to_ascii_uppercase()) != Some(expected) {
                return None;
            }
            at += 1;
        }
        let ends = self.peek(at).is_none_or(|c| !c.is_ascii_alphanumeric());
        ends.then_some(at)
    }
}

fn is_dash(c: char) -> bool {
    matches!(narrow(c), '-' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}

#[cfg(test)]
#[path = "neutral_tests.rs"]
mod tests;
