//! Reads the parameters of a call in XML while they are being written.
//!
//! Invariant: a value ends where its closing tag is followed by the next parameter or the end of the call, so that
//! a file about these very tags can be written; each byte is looked at a bounded number of times.

use memchr::memmem;

use super::literal::{Match, matches};

/// A key or the rest of a tag is short.
const MAX_TAG: usize = 256;

/// How one family spells its tags.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tags {
    pub(super) open: &'static str,
    pub(super) key_end: &'static str,
    /// What stands between key and value.
    pub(super) value: &'static str,
    pub(super) close: &'static str,
    pub(super) end: &'static str,
    /// The template puts a value on lines of its own.
    pub(super) own_lines: bool,
}

pub(super) const EQUALS: Tags = Tags {
    open: "<parameter=",
    key_end: ">",
    value: "",
    close: "</parameter>",
    end: "</function>",
    own_lines: true,
};
pub(super) const NAMED: Tags = Tags {
    open: "<parameter name=\"",
    key_end: "\"",
    value: ">",
    close: "</parameter>",
    end: "</invoke>",
    own_lines: true,
};
pub(super) const DSML: Tags = Tags {
    open: "<｜DSML｜parameter name=\"",
    key_end: "\"",
    value: ">",
    close: "</｜DSML｜parameter>",
    end: "</｜DSML｜invoke>",
    own_lines: false,
};
pub(super) const PAIRS: Tags = Tags {
    open: "<arg_key>",
    key_end: "</arg_key>",
    value: "<arg_value>",
    close: "</arg_value>",
    end: "</tool_call>",
    own_lines: false,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Param {
    pub(super) key: String,
    pub(super) value: String,
    /// Whether the call itself says that this is a string.
    pub(super) is_text: Option<bool>,
}

#[derive(Debug)]
pub(super) struct Params {
    tags: &'static Tags,
    at: usize,
    open: Option<Open>,
    pub(super) done: Vec<Param>,
}

#[derive(Debug)]
struct Open {
    key: String,
    is_text: Option<bool>,
    from: usize,
    searched: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    More,
    /// The call ended before this offset.
    End(usize),
    /// This is no list of parameters.
    Bad,
}

impl Params {
    pub(super) fn new(tags: &'static Tags, at: usize) -> Self {
        Self { tags, at, open: None, done: Vec::new() }
    }

    /// Whether the text so far ends between two parameters.
    pub(super) fn is_between(&self) -> bool {
        self.open.is_none()
    }

    /// Whether the tag that ends the parameters is also the last of the call.
    pub(super) fn ends_answer(&self) -> bool {
        *self.tags == PAIRS
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Reads on in `text`, which always begins at the same place; `last`: nothing will follow.
    pub(super) fn feed(&mut self, text: &str, last: bool) -> Reading {
        loop {
            let step = match self.open.take() {
                Some(open) => self.value(open, text, last),
                None => self.tag(text, last),
            };
            if let Some(reading) = step {
                return reading;
            }
        }
    }

    fn tag(&mut self, text: &str, last: bool) -> Option<Reading> {
        let rest = text.get(self.at..).unwrap_or_default();
        let body = rest.trim_start();
        let at = self.at + rest.len() - body.len();
        self.at = at;
        match matches(body, self.tags.end, last) {
            Match::Yes => return Some(Reading::End(at + self.tags.end.len())),
            Match::Maybe => return Some(Reading::More),
            Match::No => {}
        }
        match matches(body, self.tags.open, last) {
            Match::Yes => {}
            Match::Maybe => return Some(Reading::More),
            Match::No if body.is_empty() => return Some(Reading::More),
            Match::No => return Some(Reading::Bad),
        }
        let after = body.get(self.tags.open.len()..).unwrap_or_default();
        let incomplete = |seen: &str, end: &str| {
            Some(if seen.len() >= MAX_TAG + end.len() { Reading::Bad } else { Reading::More })
        };
        let (key_end, value) = (self.tags.key_end, self.tags.value);
        let Some((key, tail)) = after.split_once(key_end) else { return incomplete(after, key_end) };
        if key.len() >= MAX_TAG {
            return Some(Reading::Bad);
        }
        let Some(length) = tail.find(value) else { return incomplete(tail, value) };
        let attributes = tail.get(..length).unwrap_or_default();
        if attributes.len() >= MAX_TAG {
            return Some(Reading::Bad);
        }
        let from = at + self.tags.open.len() + key.len() + self.tags.key_end.len();
        let from = from + length + self.tags.value.len();
        let is_text = match attributes.trim() {
            "string=\"true\"" => Some(true),
            "string=\"false\"" => Some(false),
            _ => None,
        };
        self.open = Some(Open { key: key.trim().to_owned(), is_text, from, searched: from });
        None
    }

    fn value(&mut self, mut open: Open, text: &str, last: bool) -> Option<Reading> {
        let close = self.tags.close;
        let bytes = text.as_bytes();
        loop {
            let tail = bytes.get(open.searched..).unwrap_or_default();
            let Some(found) = memmem::find(tail, close.as_bytes()) else {
                open.searched = text.len().saturating_sub(close.len()).max(open.searched);
                self.open = Some(open);
                return Some(Reading::More);
            };
            let end = open.searched + found;
            let after = text.get(end + close.len()..).unwrap_or_default();
            let next = after.trim_start();
            let mut follows = [self.tags.open, self.tags.end].map(|tag| matches(next, tag, last));
            if after.len() - next.len() > MAX_TAG {
                follows = [Match::No; 2];
            }
            if follows.contains(&Match::Yes) || (last && next.is_empty()) {
                let value = text.get(open.from..end).unwrap_or_default();
                let value = if self.tags.own_lines { unwrapped(value) } else { value };
                let value = value.to_owned();
                self.done.push(Param { key: open.key, value, is_text: open.is_text });
                self.at = end + close.len();
                return None;
            }
            if follows.contains(&Match::Maybe) {
                open.searched = end;
                self.open = Some(open);
                return Some(Reading::More);
            }
            open.searched = end + 1;
        }
    }
}

/// A value without the line breaks that only set it apart from its tags.
fn unwrapped(value: &str) -> &str {
    let Some(inner) = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n')) else { return value };
    inner.strip_suffix("\r\n").or_else(|| inner.strip_suffix('\n')).unwrap_or(inner)
}
