//! Reads a value the way a person would: quotes of any kind, Python's words, comments, forgotten brackets.
//!
//! Invariant: every byte is looked at a bounded number of times, and nesting is bounded.

use memchr::memchr2;
use serde_json::{Map, Value};

use super::{Closing, MAX_DEPTH};

type Read<T> = Result<T, &'static str>;

const ENDS_EARLY: &str = "the text ends too early";
/// Longer than any number that means something.
const MAX_NUMBER: usize = 4096;

pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    closing: Closing,
    /// The text ended inside a value, and `closing` allowed to make do with what was there.
    ended: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, closing: Closing) -> Self {
        Self { text, at: 0, depth: 0, closing, ended: false }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes `literal` if it is next.
    pub(crate) fn eat(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    /// One value and nothing else, but for brackets that were closed once too often.
    pub(super) fn document(&mut self) -> Read<Value> {
        let value = self.value()?.ok_or("there is no value")?;
        loop {
            self.skip();
            match self.peek() {
                None => return Ok(value),
                Some(b'}' | b']' | b',' | b';') => self.at += 1,
                Some(_) => return Err("something follows the value"),
            }
        }
    }

    /// The next value; `None`: the text ended where one should be, and that may be overlooked.
    pub(crate) fn value(&mut self) -> Read<Option<Value>> {
        self.skip();
        let Some(byte) = self.peek() else { return self.end(Closing::All).map(|()| None) };
        match byte {
            b'{' => self.nested(Self::object).map(Some),
            b'[' => self.nested(Self::array).map(Some),
            b'-' | b'+' | b'.' | b'0'..=b'9' => self.number(),
            _ if self.quote().is_some() => self.string().map(|text| Some(Value::String(text))),
            _ => self.word(),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read<Value>) -> Read<Value> {
        if self.depth >= MAX_DEPTH {
            return Err("the nesting is too deep");
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Read<Value> {
        let mut map = Map::new();
        loop {
            self.skip();
            match self.peek() {
                None => return self.end(Closing::Brackets).map(|()| Value::Object(map)),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                Some(_) => {}
            }
            let key = self.key()?;
            if self.ended {
                return Ok(Value::Object(map));
            }
            self.skip();
            match self.peek() {
                Some(b':') => self.at += 1,
                None => return self.end(Closing::All).map(|()| Value::Object(map)),
                Some(_) => return Err("expected `:`"),
            }
            let Some(value) = self.value()? else { return Ok(Value::Object(map)) };
            map.insert(key, value);
            if !self.more(b'}')? {
                return Ok(Value::Object(map));
            }
        }
    }

    fn array(&mut self) -> Read<Value> {
        let mut items = Vec::new();
        loop {
            self.skip();
            match self.peek() {
                None => return self.end(Closing::Brackets).map(|()| Value::Array(items)),
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                Some(_) => {}
            }
            let Some(item) = self.value()? else { return Ok(Value::Array(items)) };
            items.push(item);
            if !self.more(b']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    /// Whether a list goes on behind a value.
    fn more(&mut self, close: u8) -> Read<bool> {
        if self.ended {
            return Ok(false);
        }
        self.skip();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            None => self.end(Closing::Brackets).map(|()| false),
            Some(_) => Err("expected `,` or a closing bracket"),
        }
    }

    /// Quoted, a bare word, or a number as Python's dictionaries have them.
    fn key(&mut self) -> Read<String> {
        if self.quote().is_some() {
            return self.string();
        }
        let rest = self.rest();
        let length =
            rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))).unwrap_or(rest.len());
        let key = rest.get(..length).unwrap_or_default();
        if key.is_empty() {
            return Err("expected a key");
        }
        self.at += length;
        if self.peek().is_none() {
            self.end(Closing::All)?;
        }
        Ok(key.to_owned())
    }

    /// What closes the string that opens here, and how long the opening is.
    fn quote(&self) -> Option<(char, usize)> {
        let close = match self.rest().chars().next()? {
            '"' => ('"', 1),
            '\'' => ('\'', 1),
            '“' | '”' | '„' => ('”', 3),
            '‘' | '’' => ('’', 3),
            _ => return None,
        };
        Some(close)
    }

    pub(crate) fn string(&mut self) -> Read<String> {
        let Some((close, length)) = self.quote() else { return Err("expected a string") };
        self.at += length;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let stop = if close.is_ascii() {
                memchr2(close as u8, b'\\', rest.as_bytes())
            } else {
                rest.find([close, '\\'])
            };
            let Some(stop) = stop else {
                out.push_str(rest);
                self.at = self.text.len();
                return self.end(Closing::All).map(|()| out);
            };
            out.push_str(rest.get(..stop).unwrap_or_default());
            self.at += stop;
            if self.peek() != Some(b'\\') {
                self.at += close.len_utf8();
                return Ok(out);
            }
            self.at += 1;
            self.escape(&mut out)?;
            if self.ended {
                return Ok(out);
            }
        }
    }

    /// What stands behind a backslash. One that means nothing, as in a pattern or a Windows path, is kept.
    fn escape(&mut self, out: &mut String) -> Read<()> {
        let Some(c) = self.rest().chars().next() else { return self.end(Closing::All) };
        self.at += c.len_utf8();
        match c {
            '"' | '\\' | '/' | '\'' | '“' | '”' | '‘' | '’' | '\n' => out.push(c),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => return self.unicode(out),
            'x' => match self.hex(2).and_then(char::from_u32) {
                Some(c) => out.push(c),
                None => out.push_str("\\x"),
            },
            _ => {
                out.push('\\');
                out.push(c);
            }
        }
        Ok(())
    }

    fn unicode(&mut self, out: &mut String) -> Read<()> {
        if self.rest().len() < 4 && self.rest().bytes().all(|byte| byte.is_ascii_hexdigit()) {
            self.at = self.text.len();
            return self.end(Closing::All);
        }
        let Some(unit) = self.hex(4) else {
            out.push_str("\\u");
            return Ok(());
        };
        let low = if (0xd800..0xdc00).contains(&unit) {
            let mark = self.at;
            let low = if self.eat("\\u") { self.hex(4) } else { None };
            let low = low.filter(|low| (0xdc00..0xe000).contains(low));
            if low.is_none() {
                self.at = mark;
            }
            low
        } else {
            None
        };
        let code = low.map_or(unit, |low| 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
        // Half a pair stands for nothing.
        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text = self.rest().get(..digits)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += digits;
        u32::from_str_radix(text, 16).ok()
    }

    fn number(&mut self) -> Read<Option<Value>> {
        let rest = self.rest();
        let inside = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let written = rest.get(..length).unwrap_or_default();
        if matches!(written, "-" | "+")
            && rest.get(length..).is_some_and(|after| after.starts_with(['I', 'N']))
        {
            self.at += length;
            return self.word();
        }
        self.at += length;
        if self.peek().is_none() && self.depth > 0 {
            self.end(Closing::All)?;
        }
        match number(written) {
            Some(value) => Ok(Some(value)),
            // The beginning of a number, such as `-` or `1e`.
            None if self.ended => Ok(None),
            None => {
                self.at -= length;
                Err("this is not a number")
            }
        }
    }

    fn word(&mut self) -> Read<Option<Value>> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let value = match rest.get(..length).unwrap_or_default() {
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            // JSON has no word for these numbers.
            "null" | "None" | "NULL" | "undefined" | "NaN" | "nan" | "Infinity" | "inf" => Value::Null,
            "" => return Err("expected a value"),
            _ if length == rest.len() && self.depth > 0 && self.closing == Closing::All => {
                self.at += length;
                return self.end(Closing::All).map(|()| None);
            }
            _ => return Err("a text needs quotes"),
        };
        self.at += length;
        Ok(Some(value))
    }

    /// The text is over. `needed` says what it takes to go on without the rest.
    fn end(&mut self, needed: Closing) -> Read<()> {
        let allowed = match self.closing {
            Closing::Never => false,
            Closing::Brackets => needed == Closing::Brackets,
            Closing::All => true,
        };
        if !allowed {
            return Err(ENDS_EARLY);
        }
        self.ended = true;
        Ok(())
    }

    /// Skips white space and comments.
    pub(crate) fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.at += rest.len() - trimmed.len();
            let length = if trimmed.starts_with("//") || trimmed.starts_with('#') {
                trimmed.find('\n')
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.at += length.unwrap_or(trimmed.len());
        }
    }
}

/// A number in JSON's spelling or nearly so.
fn number(written: &str) -> Option<Value> {
    if written.len() > MAX_NUMBER {
        return None;
    }
    let unsigned = written.strip_prefix('+').unwrap_or(written);
    let (sign, digits) = match unsigned.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", unsigned),
    };
    let zero = if digits.starts_with('.') { "0" } else { "" };
    let end = if digits.ends_with('.') && digits.len() > 1 { "0" } else { "" };
    serde_json::from_str(&format!("{sign}{zero}{digits}{end}")).ok().filter(Value::is_number)
}
