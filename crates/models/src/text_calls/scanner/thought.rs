//! Reasoning inside an answer: opened, never opened, never closed, in the middle.
//!
//! Invariant: reasoning is passed on as it comes, without the white space around it; only one that begins in the
//! middle of an answer waits for its end.

use memchr::memmem;

use super::{Ending, Gap, Markdown, Match, Mode, Opening, Piece, Place, Scanner, matches};

const THINK: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
/// White space inside reasoning that is held back to drop it at the end.
const MAX_BLANK: usize = 256;

static THINK_END: [(&str, bool); 1] = [("</think>", true)];
static THINKING_END: [(&str, bool); 1] = [("</thinking>", true)];

impl Scanner {
    pub(super) fn thought(&self, rest: &str, place: Place, last: bool) -> Opening {
        let Place { is_start, line_start, after_break } = place;
        let mut found = Opening::No;
        for (open, close) in THINK {
            match matches(rest, open, last) {
                Match::Yes if is_start => {
                    let end = if close == "</think>" { &THINK_END } else { &THINKING_END };
                    return Opening::Enter(open.len(), Mode::Reasoning(end));
                }
                Match::Yes if line_start && self.asides => {
                    return Opening::Enter(0, Mode::Aside { open: open.len(), close, searched: open.len() });
                }
                Match::Maybe if is_start || line_start => found = Opening::More,
                _ => {}
            }
            let first = self.reasoning.is_empty() && self.calls.is_empty() && !self.harmony && !self.unopened;
            match matches(rest, close, last) {
                Match::Yes if first => {
                    let after = rest.get(close.len()..).unwrap_or_default();
                    match after.chars().next() {
                        _ if after_break || is_start => return Opening::Unopened(close.len()),
                        Some('\n' | '\r') => return Opening::Unopened(close.len()),
                        None if last => return Opening::Unopened(close.len()),
                        None => return Opening::More,
                        Some(_) => {}
                    }
                }
                Match::Maybe if first => found = Opening::More,
                _ => {}
            }
        }
        found
    }

    /// All text so far was reasoning.
    pub(super) fn reclassify(&mut self, out: &mut Vec<Piece>) {
        let said = std::mem::take(&mut self.text);
        self.reasoning = said.trim().to_owned();
        // What was not passed on yet can still be called by its name.
        let pieces = std::mem::take(out);
        out.extend(pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Reasoning(text) => Piece::Reasoning(text),
        }));
        (self.gap, self.markdown) = (Gap::Reasoning, Markdown::new());
    }

    pub(super) fn reason(
        &mut self,
        closers: &'static [(&'static str, bool)],
        ending: Option<Ending>,
        out: &mut Vec<Piece>,
    ) -> bool {
        let bytes = self.held.as_str().as_bytes();
        let found = closers
            .iter()
            .filter_map(|closer| memmem::find(bytes, closer.0.as_bytes()).map(|at| (at, *closer)));
        if let Some((at, (mark, dropped))) = found.min_by_key(|(at, _)| *at) {
            let thought = self.held.as_str().get(..at).unwrap_or_default().trim_end().to_owned();
            self.think(&thought, out);
            self.held.drop_front(at + if dropped { mark.len() } else { 0 });
            self.harmony |= closers.len() > 1;
            (self.gap, self.markdown) = (Gap::Reasoning, Markdown::new());
            return true;
        }
        let open =
            closers.iter().map(|(mark, _)| partial(self.held.as_str(), mark)).max().unwrap_or_default();
        let mut length = if ending.is_some() { self.held.len() } else { self.held.len() - open };
        let said = self.held.as_str().get(..length).unwrap_or_default();
        let trimmed = said.trim_end().len();
        if ending.is_some() || length - trimmed <= MAX_BLANK {
            length = trimmed;
        }
        let thought = self.held.as_str().get(..length).unwrap_or_default().to_owned();
        self.think(&thought, out);
        self.held.drop_front(length);
        if ending.is_some() {
            self.held.clear();
            self.gap = Gap::Reasoning;
        } else {
            self.mode = Mode::Reasoning(closers);
        }
        false
    }

    pub(super) fn think(&mut self, thought: &str, out: &mut Vec<Piece>) {
        let thought = if self.reasoning.is_empty() { thought.trim_start() } else { thought };
        if !thought.is_empty() {
            self.reasoning.push_str(thought);
            out.push(Piece::Reasoning(thought.to_owned()));
        }
    }

    pub(super) fn aside(
        &mut self,
        (open, close, searched): (usize, &'static str, usize),
        ending: Option<Ending>,
        out: &mut Vec<Piece>,
    ) -> bool {
        let tail = self.held.as_str().as_bytes().get(searched..).unwrap_or_default();
        match memmem::find(tail, close.as_bytes()) {
            Some(found) => {
                let end = searched + found;
                let thought = self.held.as_str().get(open..end).unwrap_or_default().trim().to_owned();
                let thought = if self.reasoning.is_empty() { thought } else { format!("\n\n{thought}") };
                self.think(&thought, out);
                self.held.drop_front(end + close.len());
                self.gap = Gap::Call;
                true
            }
            None if ending.is_some() => {
                // Never closed: it was about the tag, not one. What follows is not closed either.
                self.literal = open;
                self.asides = false;
                true
            }
            None => {
                let searched = self.held.len().saturating_sub(close.len()).max(open);
                self.mode = Mode::Aside { open, close, searched };
                false
            }
        }
    }

    pub(super) fn presume(
        &mut self,
        mut whole: String,
        ending: Option<Ending>,
        out: &mut Vec<Piece>,
    ) -> bool {
        let rest = self.held.as_str().trim_start();
        if whole.is_empty() {
            let opened = THINK.map(|(open, _)| matches(rest, open, ending.is_some()));
            if opened.contains(&Match::Yes) {
                return true;
            }
            if opened.contains(&Match::Maybe) {
                self.mode = Mode::Presumed(whole);
                return false;
            }
        }
        let before = self.held.as_str().to_owned();
        if self.reason(&THINK_END, ending, out) {
            self.unopened = true;
            return true;
        }
        if ending.is_some() {
            // It had no reasoning after all.
            whole.push_str(&before);
            self.reasoning.clear();
            self.gap = Gap::Start;
            self.held.clear();
            self.held.push(whole);
            return true;
        }
        let said = before.len() - self.held.len();
        whole.push_str(before.get(..said).unwrap_or_default());
        self.mode = Mode::Presumed(whole);
        false
    }
}

/// How many bytes at the end of `text` may become `mark`.
fn partial(text: &str, mark: &str) -> usize {
    let longest = mark.len().min(text.len() + 1).saturating_sub(1);
    (1..=longest)
        .rev()
        .find(|length| mark.get(..*length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or_default()
}
