//! Turns the bytes of a stream of JSON lines into lines, whatever pieces they arrive in.
//!
//! Invariant: how the bytes are cut into chunks never changes the lines, and memory stays below the limit.

use crate::sse::{MAX_EVENT, SseTooLong};

/// An incremental decoder for `application/x-ndjson`. Blank lines are passed over.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    limit: usize,
    /// Received and not yet consumed, from `start` on; no line end before `scanned`.
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
    /// A line that is no UTF-8, made readable.
    repaired: String,
    too_long: bool,
}

impl LineDecoder {
    pub(crate) fn new() -> Self {
        Self::with_limit(MAX_EVENT)
    }

    fn with_limit(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), start: 0, scanned: 0, repaired: String::new(), too_long: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.too_long {
            return;
        }
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, SseTooLong> {
        while !self.too_long {
            let rest = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(found) = memchr::memchr(b'\n', rest) else {
                self.scanned = self.buffer.len();
                self.too_long = self.scanned - self.start > self.limit;
                break;
            };
            let (start, end) = (self.start, self.scanned + found);
            (self.start, self.scanned) = (end + 1, end + 1);
            self.too_long = end - start > self.limit;
            if !self.too_long && !self.is_blank(start, end) {
                return Ok(Some(self.text(start, end)));
            }
        }
        if self.too_long { Err(SseTooLong { limit: self.limit }) } else { Ok(None) }
    }

    /// The line that the end of the stream cut off.
    pub(crate) fn finish(&mut self) -> Option<&str> {
        let (start, end) = (self.start, self.buffer.len());
        (self.start, self.scanned) = (end, end);
        (!self.too_long && !self.is_blank(start, end)).then(|| self.text(start, end))
    }

    fn is_blank(&self, start: usize, end: usize) -> bool {
        self.buffer.get(start..end).unwrap_or_default().trim_ascii().is_empty()
    }

    fn text(&mut self, start: usize, end: usize) -> &str {
        let line = self.buffer.get(start..end).unwrap_or_default().trim_ascii();
        match std::str::from_utf8(line) {
            Ok(text) => text,
            Err(_) => {
                self.repaired = String::from_utf8_lossy(line).into_owned();
                &self.repaired
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], size: usize) -> Vec<String> {
        let mut lines = LineDecoder::new();
        let mut all = Vec::new();
        for chunk in bytes.chunks(size) {
            lines.push(chunk);
            while let Some(line) = lines.next_line().unwrap() {
                all.push(line.to_owned());
            }
        }
        all.extend(lines.finish().map(str::to_owned));
        all
    }

    #[test]
    fn the_pieces_do_not_matter() {
        let bytes = "{\"a\":\"ü\"}\r\n\n  \n{\"b\":2}\n{\"cut".as_bytes();
        for size in 1..=bytes.len() {
            assert_eq!(read(bytes, size), ["{\"a\":\"ü\"}", "{\"b\":2}", "{\"cut"], "{size}");
        }
        assert!(read(b"\n\r\n", 1).is_empty());
    }

    #[test]
    fn bytes_that_are_no_text_are_made_readable() {
        assert_eq!(read(b"a\xffb\nc\n", 2), ["a\u{fffd}b", "c"]);
    }

    #[test]
    fn a_line_without_end_is_refused_and_nothing_more_is_kept() {
        let mut lines = LineDecoder::with_limit(8);
        lines.push(b"12345678\n");
        assert_eq!(lines.next_line(), Ok(Some("12345678")));
        lines.push(b"123456789");
        assert_eq!(lines.next_line(), Err(SseTooLong { limit: 8 }));
        lines.push(&[b'x'; 100]);
        assert_eq!(lines.next_line(), Err(SseTooLong { limit: 8 }));
        assert!(lines.buffer.len() < 20 && lines.finish().is_none());
    }
}
