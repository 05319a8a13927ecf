//! Server-sent events, as far as a run's stream uses them.
//!
//! Invariant: however the bytes are cut, the same frames come out; a frame that is not complete is none.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::StreamFrame;

#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    event: String,
    data: Option<Vec<u8>>,
    id: Option<String>,
    ready: VecDeque<StreamFrame>,
}

impl Parser {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (head, rest) = bytes.split_at(at);
            bytes = rest.get(1..).unwrap_or_default();
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(head);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.line(&line);
        }
        self.line.extend_from_slice(bytes);
    }

    pub(super) fn pop(&mut self) -> Option<StreamFrame> {
        self.ready.pop_front()
    }

    /// What was not complete when a line broke comes again.
    pub(super) fn forget_partial(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        *self = Self { ready, ..Self::default() };
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            let (event, id) = (std::mem::take(&mut self.event), self.id.take());
            if let Some(data) = self.data.take() {
                let id = id.and_then(|id| id.parse().ok());
                self.ready.push_back(StreamFrame { event, data: Bytes::from(data), id });
            }
            return;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            // A comment, or a field nobody needs.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        b": heartbeat\n\nevent: values\r\ndata: {\"a\":1}\r\nid: 7-4\r\n\r\nevent: x\ndata: 1\ndata: 2\n\n\
        event: end\ndata: null\nid: 8-8\n\nevent: cut\ndata: off";

    fn frames(parser: &mut Parser) -> Vec<(String, Vec<u8>, Option<String>)> {
        let told = |frame: StreamFrame| (frame.event, frame.data.to_vec(), frame.id.map(|id| id.to_string()));
        std::iter::from_fn(|| parser.pop()).map(told).collect()
    }

    #[test]
    fn frames_are_whole_however_the_bytes_are_cut() {
        let mut whole = Parser::default();
        whole.push(STREAM);
        let whole = frames(&mut whole);
        let names: Vec<_> = whole.iter().map(|(event, data, _)| (event.as_str(), data.as_slice())).collect();
        assert_eq!(names, [("values", &b"{\"a\":1}"[..]), ("x", b"1\n2"), ("end", b"null")]);
        assert_eq!(whole[0].2.as_deref(), Some("7-4"));
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            STREAM.chunks(size).for_each(|piece| parser.push(piece));
            assert_eq!(frames(&mut parser), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn a_frame_that_was_cut_off_is_forgotten() {
        let mut parser = Parser::default();
        parser.push(b"event: a\ndata: 1\n\nevent: b\ndata: 2");
        parser.forget_partial();
        parser.push(b"event: b\ndata: 2\n\n");
        assert_eq!(frames(&mut parser).len(), 2);
    }
}
