//! Follows Markdown closely enough to know what is code.
//!
//! Invariant: one byte costs constant time, and however the text is cut, the answer is the same.

#[derive(Clone, Debug)]
pub(super) struct Markdown {
    code: Code,
    /// Only white space on this line so far.
    blank: bool,
    /// Only what may stand before a fence: white space, list and quotation marks.
    prefix: bool,
    quoted: bool,
    indent: u32,
    run: u32,
    run_of: u8,
    run_at_prefix: bool,
    /// A fence was opened on this line.
    opening: bool,
    /// The fence's end was seen on this line, with nothing behind it yet.
    closing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    None,
    Inline(u32),
    Fence(u8, u32),
}

impl Markdown {
    pub(super) fn new() -> Self {
        Self {
            code: Code::None,
            blank: true,
            prefix: true,
            quoted: false,
            indent: 0,
            run: 0,
            run_of: b'`',
            run_at_prefix: false,
            opening: false,
            closing: false,
        }
    }

    /// Whether what comes next is neither code nor quotation; `next` is its first byte.
    pub(super) fn is_prose(&mut self, next: u8) -> bool {
        if next != self.run_of {
            self.settle();
        }
        self.code == Code::None && self.run == 0 && !self.quoted && self.indent < 4
    }

    /// Whether nothing but white space is on this line.
    pub(super) fn is_line_start(&self) -> bool {
        self.blank
    }

    pub(super) fn feed(&mut self, byte: u8) {
        if self.run > 0 && byte != self.run_of {
            self.settle();
        }
        match byte {
            b'`' | b'~' => {
                if self.run == 0 {
                    (self.run_of, self.run_at_prefix) = (byte, self.prefix);
                }
                self.run += 1;
                (self.blank, self.prefix) = (false, false);
            }
            b'\n' => {
                if self.closing || matches!(self.code, Code::Inline(_)) {
                    // An inline span may reach over a line's end, but models hardly ever write one that does.
                    self.code = Code::None;
                }
                let code = self.code;
                *self = Self { code, ..Self::new() };
            }
            b' ' if self.blank => self.indent += 1,
            b'\t' if self.blank => self.indent += 4,
            b' ' | b'\t' | b'\r' => {}
            _ => {
                self.closing = false;
                self.quoted |= self.blank && byte == b'>';
                self.blank = false;
                self.prefix &= matches!(byte, b'>' | b'-' | b'*' | b'+' | b'.' | b')' | b'0'..=b'9');
            }
        }
    }

    /// A run of backticks or tildes is over.
    fn settle(&mut self) {
        let (length, of) = (self.run, self.run_of);
        if length == 0 {
            return;
        }
        self.run = 0;
        match self.code {
            Code::None if self.run_at_prefix && length >= 3 => {
                self.code = Code::Fence(of, length);
                self.opening = true;
            }
            Code::None if of == b'`' => self.code = Code::Inline(length),
            Code::Inline(opened) if of == b'`' && opened == length => self.code = Code::None,
            // Three backticks on both sides of one line are an inline span after all.
            Code::Fence(b'`', opened) if self.opening && of == b'`' && opened == length => {
                (self.code, self.opening) = (Code::None, false);
            }
            Code::Fence(opened, least) if opened == of && length >= least => {
                self.closing = self.run_at_prefix;
            }
            Code::None | Code::Inline(_) | Code::Fence(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose_at(text: &str) -> bool {
        let (before, after) = text.split_once('@').unwrap();
        let mut markdown = Markdown::new();
        before.bytes().for_each(|byte| markdown.feed(byte));
        let _ = after;
        markdown.is_prose(b'@')
    }

    #[test]
    fn code_is_told_from_prose() {
        for text in [
            "@",
            "a @",
            "`a` @",
            "``a ` b`` @",
            "```\ncode\n```\n@",
            "~~~\ncode\n~~~\n@",
            "```js\ncode\n```  \n@",
            "a ` b\n@",
            "```code``` @",
            "- ```\n  x\n  ```\n@",
            "````\n```\n````\n@",
            "   @",
            "> q\n@",
            "a ~~b~~ @",
        ] {
            assert!(prose_at(text), "{text:?} is prose");
        }
        for text in [
            "`@",
            "`a @",
            "``a ` @",
            "```\n@",
            "```js\n@",
            "```\ncode\n``` no end\n@",
            "~~~\n```\n@",
            "````\n```\n@",
            "1. ```\n   @",
            "    @",
            "\t@",
            "> @",
            "```xml @",
        ] {
            assert!(!prose_at(text), "{text:?} is code");
        }
    }
}
