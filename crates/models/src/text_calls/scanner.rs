//! Tells text, reasoning and calls apart while they are being written.
//!
//! Invariant: what is no call and no reasoning comes out byte for byte, and is held back only while it may still
//! become either.

mod thought;

use super::capture::{Capture, Ending, Verdict};
use super::form::{self, Form};
use super::harmony::{self, Header};
use super::held::Held;
use super::literal::{Match, first, matches};
use super::markdown::Markdown;
use super::offered::{Found, Offered};

const FENCES: [&str; 4] = ["json", "tool_call", "tool_calls", "tool_code"];
const MAX_FENCE: usize = 96;
/// Words that announce an example rather than a call.
const EXAMPLE_WORDS: [&str; 9] =
    ["example", "e.g.", "for instance", "looks like", "look like", "such as", "format", "syntax", "schema"];

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) calls: bool,
    /// Calls without any mark. They are what a structured answer may look like.
    pub(super) bare: bool,
    pub(super) think: bool,
    /// The template opens the reasoning: an answer begins inside it.
    pub(super) opened: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
}

#[derive(Debug)]
pub(super) struct Scanner {
    rules: Rules,
    offered: Offered,
    mode: Mode,
    markdown: Markdown,
    /// What has come and is not decided.
    held: Held,
    /// Up to here nothing is looked for in `held`.
    literal: usize,
    gap: Gap,
    blank: String,
    /// Whether reasoning may also stand in the middle.
    asides: bool,
    /// gpt-oss writes its own marks around everything.
    harmony: bool,
    /// The answer ended a reasoning that it had not begun.
    pub(super) unopened: bool,
    pub(super) text: String,
    /// The length of all that came.
    taken: usize,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Called>,
}

/// A call, and what it was written as.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) found: Vec<Found>,
    pub(super) written: String,
}

#[derive(Debug)]
enum Mode {
    Plain,
    /// Until one of these; `true`: the mark is dropped.
    Reasoning(&'static [(&'static str, bool)]),
    /// The same in the middle of an answer: kept back until it is sure to end.
    Aside {
        open: usize,
        close: &'static str,
        searched: usize,
    },
    /// An answer that is expected to begin inside reasoning; with everything so far.
    Presumed(String),
    Capture(Capture),
}

/// What the white space that comes next would stand between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    None,
    Start,
    Reasoning,
    Call,
}

/// Where in the answer something stands.
#[derive(Clone, Copy)]
struct Place {
    /// Nothing was said before.
    is_start: bool,
    line_start: bool,
    /// Directly behind a line break.
    after_break: bool,
}

enum Opening {
    No,
    More,
    /// The mark up to this length is dropped, and this follows.
    Enter(usize, Mode),
    Unopened(usize),
    Text(usize),
}

impl Scanner {
    pub(super) fn new(rules: Rules, offered: Offered) -> Self {
        let calls = rules.calls && !offered.is_empty();
        let mode = if rules.think && rules.opened { Mode::Presumed(String::new()) } else { Mode::Plain };
        Self {
            rules: Rules { calls, bare: rules.bare && calls, ..rules },
            offered,
            mode,
            markdown: Markdown::new(),
            held: Held::default(),
            literal: 0,
            gap: Gap::Start,
            blank: String::new(),
            asides: true,
            harmony: false,
            unopened: false,
            text: String::new(),
            taken: 0,
            reasoning: String::new(),
            calls: Vec::new(),
        }
    }

    /// Whether all that came is text.
    pub(super) fn is_untouched(&self) -> bool {
        self.text.len() == self.taken
    }

    pub(super) fn push(&mut self, text: String, out: &mut Vec<Piece>) {
        self.taken += text.len();
        self.held.push(text);
        self.advance(None, out);
    }

    pub(super) fn finish(&mut self, ending: Ending, out: &mut Vec<Piece>) {
        self.advance(Some(ending), out);
        let blank = std::mem::take(&mut self.blank);
        if self.gap == Gap::Start && !blank.is_empty() {
            self.gap = Gap::None;
            self.emit(blank, out);
        }
    }

    /// The provider itself told a call: nothing is looked for any more.
    pub(super) fn give_up_calls(&mut self) {
        (self.rules.calls, self.rules.bare) = (false, false);
        if matches!(self.mode, Mode::Capture(_)) {
            self.mode = Mode::Plain;
            self.literal = self.held.len();
        }
    }

    fn advance(&mut self, ending: Option<Ending>, out: &mut Vec<Piece>) {
        loop {
            let mode = std::mem::replace(&mut self.mode, Mode::Plain);
            let again = match mode {
                Mode::Plain => self.plain(ending, out),
                Mode::Reasoning(closers) => self.reason(closers, ending, out),
                Mode::Aside { open, close, searched } => self.aside((open, close, searched), ending, out),
                Mode::Presumed(whole) => self.presume(whole, ending, out),
                Mode::Capture(capture) => self.capture(capture, ending),
            };
            if !again {
                return;
            }
        }
    }

    /// Returns whether there is more to do, as all modes do.
    fn plain(&mut self, ending: Option<Ending>, out: &mut Vec<Piece>) -> bool {
        let mut at = 0;
        while let Some(&byte) = self.held.as_str().as_bytes().get(at) {
            if matches!(byte, b'<' | b'[' | b'{' | b'`') && at >= self.literal {
                match self.opening(at, byte, ending.is_some()) {
                    Opening::No => {}
                    Opening::More => {
                        self.say(at, out);
                        return false;
                    }
                    Opening::Enter(length, mode) => {
                        self.say(at, out);
                        self.held.drop_front(length);
                        self.mode = mode;
                        return true;
                    }
                    Opening::Text(length) => {
                        self.say(at, out);
                        self.held.drop_front(length);
                        self.harmony = true;
                        (self.gap, at) = (Gap::Reasoning, 0);
                        continue;
                    }
                    Opening::Unopened(length) => {
                        self.say(at, out);
                        self.held.drop_front(length);
                        self.unopened = true;
                        self.reclassify(out);
                        at = 0;
                        continue;
                    }
                }
            }
            self.markdown.feed(byte);
            at += 1;
        }
        self.say(at, out);
        false
    }

    /// What begins at `at`.
    fn opening(&mut self, at: usize, byte: u8, last: bool) -> Opening {
        let prose = self.markdown.is_prose(byte);
        let rest = self.held.as_str().get(at..).unwrap_or_default();
        if byte == b'<' && (prose || self.harmony) {
            match self.harmony(rest, last) {
                Opening::No => {}
                other => return other,
            }
        }
        if !prose {
            return Opening::No;
        }
        let before = self.held.as_str().get(..at).unwrap_or_default();
        let previous = before.chars().next_back().or_else(|| self.text.chars().next_back());
        if previous.is_some_and(|c| matches!(c, '"' | '\'' | '“' | '‘' | '«' | '「')) {
            return Opening::No;
        }
        let is_start = self.gap != Gap::None && before.trim().is_empty();
        let line_start = self.markdown.is_line_start();
        let mut found = Opening::No;
        if byte == b'<' && self.rules.think {
            found =
                self.thought(rest, Place { is_start, line_start, after_break: previous == Some('\n') }, last);
        }
        if self.rules.calls && matches!(byte, b'<' | b'[') && !matches!(found, Opening::Enter(..)) {
            match form::opened(rest, last) {
                (Match::Yes, Some((form, skip))) => {
                    return Opening::Enter(0, Mode::Capture(Capture::new(form, skip)));
                }
                (Match::Maybe, _) => found = Opening::More,
                _ => {}
            }
        }
        if !self.rules.bare || !line_start || !matches!(found, Opening::No) || byte == b'<' {
            return found;
        }
        match byte {
            b'`' => fence(rest, last),
            _ => Opening::Enter(0, Mode::Capture(Capture::new(Form::Bare(None), 0))),
        }
    }

    fn harmony(&self, rest: &str, last: bool) -> Opening {
        match harmony::header(rest, last) {
            Header::No => {}
            Header::More => return Opening::More,
            Header::Analysis(length) if self.rules.think => {
                return Opening::Enter(length, Mode::Reasoning(harmony::ENDS));
            }
            Header::Call(name, length) if self.rules.calls && self.offered.find(&name).is_some() => {
                return Opening::Enter(0, Mode::Capture(Capture::new(Form::Harmony(name), length)));
            }
            Header::Said(length) => return Opening::Text(length),
            Header::Analysis(_) | Header::Call(..) => return Opening::No,
        }
        if !self.harmony {
            return Opening::No;
        }
        let mut found = Opening::No;
        for (mark, _) in harmony::ENDS {
            match matches(rest, mark, last) {
                Match::Yes => return Opening::Text(mark.len()),
                Match::Maybe => found = Opening::More,
                Match::No => {}
            }
        }
        found
    }

    fn capture(&mut self, mut capture: Capture, ending: Option<Ending>) -> bool {
        match capture.feed(self.held.as_str(), ending, &self.offered, || announces_example(&self.text)) {
            Verdict::More => {
                self.mode = Mode::Capture(capture);
                false
            }
            Verdict::Text(until) => {
                self.literal = until.max(1);
                true
            }
            Verdict::Calls(found, end) => {
                let written = self.held.take_front(end);
                self.calls.push(Called { found, written });
                self.blank.clear();
                (self.gap, self.markdown) = (Gap::Call, Markdown::new());
                true
            }
        }
    }

    /// Passes on the held text up to `at`.
    fn say(&mut self, at: usize, out: &mut Vec<Piece>) {
        if at == 0 {
            return;
        }
        self.literal = self.literal.saturating_sub(at);
        let text = self.held.take_front(at);
        if self.gap == Gap::None {
            return self.emit(text, out);
        }
        let said = text.trim_start();
        let blank = text.len() - said.len();
        self.blank.push_str(text.get(..blank).unwrap_or_default());
        if said.is_empty() {
            return;
        }
        let blank = std::mem::take(&mut self.blank);
        let text = if self.gap == Gap::Reasoning { said.to_owned() } else { blank + said };
        self.gap = Gap::None;
        self.emit(text, out);
    }

    fn emit(&mut self, text: String, out: &mut Vec<Piece>) {
        self.text.push_str(&text);
        out.push(Piece::Text(text));
    }
}

/// Whether the last words before an unmarked call say that it is only shown.
fn announces_example(said: &str) -> bool {
    let said = tail(said.trim_end(), 200).to_lowercase();
    let paragraph = said.rsplit("\n\n").next().unwrap_or(&said);
    EXAMPLE_WORDS.iter().any(|word| paragraph.contains(word))
}

/// The last bytes of `text`, as far as characters allow.
fn tail(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

/// A fence that may hold a call: of JSON, and nothing before the first bracket.
fn fence(rest: &str, last: bool) -> Opening {
    // Only so much is looked at, so that it does not matter how much is there.
    let seen = first(rest, MAX_FENCE);
    let open = if last || rest.len() > MAX_FENCE { Opening::No } else { Opening::More };
    let body = seen.trim_start_matches('`');
    let ticks = seen.len() - body.len();
    if ticks < 3 {
        return if body.is_empty() { open } else { Opening::No };
    }
    let Some((info, inside)) = body.split_once('\n') else {
        let info = body.trim_end_matches([' ', '\r']);
        let may_be = FENCES.iter().any(|word| word.starts_with(info));
        return if may_be { open } else { Opening::No };
    };
    if !info.trim().is_empty() && !FENCES.contains(&info.trim()) {
        return Opening::No;
    }
    match inside.trim_start().bytes().next() {
        None => open,
        Some(b'{' | b'[') => {
            let at = seen.len() - inside.trim_start().len();
            Opening::Enter(0, Mode::Capture(Capture::new(Form::Bare(Some(ticks)), at)))
        }
        Some(_) => Opening::No,
    }
}
