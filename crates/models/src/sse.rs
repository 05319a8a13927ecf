//! Turns the bytes of an event stream into events, whatever pieces they arrive in.
//!
//! Invariant: how the bytes are cut into chunks never changes the events, and memory stays below the limit.

use std::time::Duration;

/// The longest line and the longest event accepted, in bytes.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

/// An incremental decoder for `text/event-stream`.
///
/// ```
/// let mut sse = hart_models::sse::SseDecoder::new();
/// sse.push(b"data: hel");
/// assert!(sse.next_event().unwrap().is_none());
/// sse.push(b"lo\r\n\r\n");
/// assert_eq!(sse.next_event().unwrap().unwrap().data, "hello");
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// Received and not yet consumed, from `start` on; no line end before `scanned`.
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
    at_stream_start: bool,
    /// The last line ended in CR: an LF right after it belongs to that line end.
    after_cr: bool,
    data: Vec<u8>,
    has_data: bool,
    event: String,
    id: String,
    retry: Option<Duration>,
    /// The dispatched event; its memory is reused for the next one.
    ready_data: String,
    ready_event: String,
    too_long: bool,
}

/// One event. What the decoder lends is valid until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// `message` unless the stream names another.
    pub event: &'a str,
    pub data: &'a str,
    /// The last id the stream has set; it outlives the event that set it.
    pub id: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {limit} bytes")]
pub struct SseTooLong {
    pub limit: usize,
}

impl SseDecoder {
    pub fn new() -> Self {
        Self::with_limit(MAX_EVENT)
    }

    /// A decoder that refuses lines and events above `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            at_stream_start: true,
            after_cr: false,
            data: Vec::new(),
            has_data: false,
            event: String::new(),
            id: String::new(),
            retry: None,
            ready_data: String::new(),
            ready_event: String::new(),
            too_long: false,
        }
    }

    /// Takes the next bytes in. Call [`next_event`](Self::next_event) until it returns `None` before the next push.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event, or `None` until more bytes arrive. A stream that is too long stays an error.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseTooLong> {
        while let Some((line, next)) = self.line_end() {
            self.too_long = line - self.start > self.limit;
            self.check()?;
            let dispatched = self.line(line);
            (self.start, self.scanned) = (next, next);
            self.check()?;
            if dispatched {
                return Ok(Some(self.ready()));
            }
        }
        self.check()?;
        Ok(None)
    }

    /// The event that the end of the stream cut off, if it had data: some servers forget the last blank line.
    pub fn finish(&mut self) -> Option<SseEvent<'_>> {
        if self.too_long {
            return None;
        }
        let end = self.buffer.len();
        if self.start < end {
            self.line(end);
        }
        self.buffer.clear();
        (self.start, self.scanned) = (0, 0);
        self.dispatch().then(|| self.ready())
    }

    /// The reconnection time the stream asked for.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Where the current line ends and where the next one starts.
    fn line_end(&mut self) -> Option<(usize, usize)> {
        if self.too_long {
            return None;
        }
        if self.at_stream_start {
            const BOM: &[u8] = b"\xef\xbb\xbf";
            if self.buffer.len() < BOM.len() && BOM.starts_with(&self.buffer) {
                return None;
            }
            self.at_stream_start = false;
            if self.buffer.starts_with(BOM) {
                (self.start, self.scanned) = (BOM.len(), BOM.len());
            }
        }
        if self.after_cr {
            match self.buffer.get(self.start) {
                None => return None,
                Some(b'\n') => {
                    self.start += 1;
                    self.scanned = self.start;
                }
                Some(_) => {}
            }
            self.after_cr = false;
        }
        let rest = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'\n', b'\r', rest) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + found;
        // A CR ends its line at once: waiting for a possible LF would hold the event back.
        self.after_cr = rest.get(found) == Some(&b'\r');
        Some((end, end + 1))
    }

    /// Takes in the line from `start` to `end`; true when it dispatched an event.
    fn line(&mut self, end: usize) -> bool {
        let line = self.buffer.get(self.start..end).unwrap_or_default();
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return false, // a comment
            Some(colon) => {
                let (name, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (name, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => set_lossy(&mut self.event, value),
            b"id" if !value.contains(&0) => set_lossy(&mut self.id, value),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        false
    }

    fn dispatch(&mut self) -> bool {
        self.ready_event.clear();
        std::mem::swap(&mut self.ready_event, &mut self.event);
        if !self.has_data {
            return false;
        }
        self.has_data = false;
        let mut spare = std::mem::take(&mut self.ready_data).into_bytes();
        spare.clear();
        let bytes = std::mem::replace(&mut self.data, spare);
        self.ready_data = String::from_utf8(bytes)
            .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned());
        true
    }

    fn ready(&self) -> SseEvent<'_> {
        let event = if self.ready_event.is_empty() { "message" } else { &self.ready_event };
        SseEvent { event, data: &self.ready_data, id: &self.id }
    }

    fn check(&mut self) -> Result<(), SseTooLong> {
        let line = self.scanned - self.start;
        self.too_long |= line > self.limit || self.data.len() > self.limit;
        if self.too_long { Err(SseTooLong { limit: self.limit }) } else { Ok(()) }
    }
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new()
    }
}

fn set_lossy(text: &mut String, value: &[u8]) {
    text.clear();
    match std::str::from_utf8(value) {
        Ok(value) => text.push_str(value),
        Err(_) => text.push_str(&String::from_utf8_lossy(value)),
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
