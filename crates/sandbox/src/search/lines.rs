//! The lines of one file that match, with what stands around them.
//!
//! Invariant: a line that is too long is cut so that its match is seen, and said to be cut.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::contract::{GrepMatch, GrepOutput};
use crate::path::VPath;

/// In characters.
const MAX_LINE: usize = 200;
/// What is shown before a match that lies far behind the beginning of its line.
const LEAD: usize = 50;

/// Receives the lines of one file.
pub(super) struct Collector<'a> {
    matcher: &'a RegexMatcher,
    output: GrepOutput,
    limit: usize,
    count: u64,
    hits: Vec<Hit>,
    /// Lines before a match that is still to come.
    before: Vec<String>,
}

pub(super) struct Collected {
    hits: Vec<Hit>,
    /// `None` where one match was enough.
    pub(super) counted: Option<u64>,
}

struct Hit {
    line: u64,
    text: String,
    cut: bool,
    before: Vec<String>,
    after: Vec<String>,
}

impl Collected {
    pub(super) fn at(self, path: &VPath) -> impl Iterator<Item = GrepMatch> {
        self.hits.into_iter().map(|Hit { line, text, cut, before, after }| GrepMatch {
            path: path.clone(),
            line,
            text,
            cut,
            before,
            after,
        })
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, output: GrepOutput, limit: usize) -> Self {
        Self { matcher, output, limit, count: 0, hits: Vec::new(), before: Vec::new() }
    }

    /// For how many results it stands, and what they are; `None` if there is none.
    pub(super) fn finish(self) -> Option<(usize, Collected)> {
        let counted = (self.output == GrepOutput::Counts).then_some(self.count);
        let weight = self.hits.len().max(1);
        (self.count > 0).then_some((weight, Collected { hits: self.hits, counted }))
    }

    pub(super) fn is_full(&self) -> bool {
        match self.output {
            // One more than counts, so that it is known that there are more.
            GrepOutput::Lines => self.hits.len() > self.limit,
            GrepOutput::Files => self.count > 0,
            GrepOutput::Counts => false,
        }
    }
}

impl Sink for &mut Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.output == GrepOutput::Lines {
            let line = without_end(found.bytes());
            let at = self.matcher.find(line).ok().flatten().map_or(0, |at| at.start());
            let (text, cut) = shorten(line, at);
            let before = std::mem::take(&mut self.before);
            let line = found.line_number().unwrap_or_default();
            self.hits.push(Hit { line, text, cut, before, after: Vec::new() });
        }
        Ok(!self.is_full())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let text = shorten(without_end(context.bytes()), 0).0;
        match (context.kind(), self.hits.last_mut()) {
            (SinkContextKind::After, Some(hit)) => hit.after.push(text),
            _ => self.before.push(text),
        }
        Ok(true)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// At most [`MAX_LINE`] characters of a line, those around the byte `at`, and whether there are more.
fn shorten(line: &[u8], at: usize) -> (String, bool) {
    let text = String::from_utf8_lossy(line);
    if text.chars().nth(MAX_LINE).is_none() {
        return (text.into_owned(), false);
    }
    let ahead = String::from_utf8_lossy(line.get(..at).unwrap_or_default()).chars().count();
    let from = if ahead + LEAD <= MAX_LINE { 0 } else { ahead - LEAD };
    let mut rest = text.chars().skip(from);
    let mut shown = String::with_capacity(MAX_LINE * 2);
    if from > 0 {
        shown.push('…');
    }
    shown.extend(rest.by_ref().take(MAX_LINE));
    if rest.next().is_some() {
        shown.push('…');
    }
    (shown, true)
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn a_long_line_shows_its_match() {
        let line = format!("{}needle{}", "ä".repeat(1000), "x".repeat(1000));
        let at = line.find("needle").unwrap();
        let (text, cut) = shorten(line.as_bytes(), at);
        assert_eq!(text, format!("…{}needle{}…", "ä".repeat(50), "x".repeat(144)));
        assert!(cut);
        let (text, _) = shorten(line.as_bytes(), line.len() - 1);
        assert_eq!(text, format!("…{}", "x".repeat(51)));
        assert_eq!(shorten(line.as_bytes(), 10), (format!("{}…", "ä".repeat(200)), true));
        assert_eq!(shorten("ü".repeat(200).as_bytes(), 399), ("ü".repeat(200), false));
    }
}
