//! Finds the end of a JSON or Python value while it is being written.
//!
//! Invariant: each byte is looked at once, however often more text arrives.

#[derive(Clone, Debug, Default)]
pub(super) struct Nesting {
    at: usize,
    depth: u32,
    string: Option<u8>,
    escaped: bool,
    /// The last byte that is not white space: tells an apostrophe from a quote.
    last: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// The value ended before this offset.
    End(usize),
    /// A `<` that no value can contain stands at this offset.
    Angle(usize),
    More,
}

impl Nesting {
    /// Looks at what is new of `value`, which always begins at the same place.
    pub(super) fn feed(&mut self, value: &str) -> Reached {
        let new = value.as_bytes().get(self.at..).unwrap_or_default();
        for &byte in new {
            self.at += 1;
            if let Some(quote) = self.string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    _ if byte == quote => self.string = None,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.string = Some(byte),
                b'\'' if matches!(self.last, b'{' | b'[' | b'(' | b',' | b':' | b'=') => {
                    self.string = Some(byte);
                }
                b'{' | b'[' | b'(' => self.depth += 1,
                b'}' | b']' | b')' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Reached::End(self.at);
                    }
                }
                b'<' => return Reached::Angle(self.at - 1),
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.last = byte;
            }
        }
        Reached::More
    }

    /// Looks at the last byte again, when more of the text is there.
    pub(super) fn step_back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_with_its_last_bracket() {
        for value in [r#"{"a": "}\""}"#, "[[], {}]", "f(x='it)', y=[1])", "{'a': 'x}'}", "[f(a=\"b\")]"] {
            for cut in 0..value.len() {
                let mut nesting = Nesting::default();
                assert_eq!(nesting.feed(value.split_at(cut).0), Reached::More, "{value} up to {cut}");
                assert_eq!(nesting.feed(&format!("{value} more")), Reached::End(value.len()));
            }
        }
        assert_eq!(Nesting::default().feed("{\"a\": 1</x>"), Reached::Angle(7));
        assert_eq!(Nesting::default().feed("{\"a\": \"<\"}"), Reached::End(10));
    }
}
