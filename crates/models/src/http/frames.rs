//! Cuts the body of an answer into what a dialect decodes.
//!
//! Invariant: a dialect sees whole events, however they were separated and whatever pieces they came in.

use crate::lines::LineDecoder;
use crate::sse::{SseDecoder, SseEvent, SseTooLong};

/// How a provider separates what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`.
    Events,
    /// One JSON object a line.
    Lines,
}

#[derive(Debug)]
pub(super) enum Frames {
    Events(Box<SseDecoder>),
    Lines(LineDecoder),
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Events => Self::Events(Box::default()),
            Framing::Lines => Self::Lines(LineDecoder::new()),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(sse) => sse.push(bytes),
            Self::Lines(lines) => lines.push(bytes),
        }
    }

    pub(super) fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseTooLong> {
        match self {
            Self::Events(sse) => sse.next_event(),
            Self::Lines(lines) => Ok(lines.next_line()?.map(line)),
        }
    }

    /// What the end of the body cut off.
    pub(super) fn finish(&mut self) -> Option<SseEvent<'_>> {
        match self {
            Self::Events(sse) => sse.finish(),
            Self::Lines(lines) => lines.finish().map(line),
        }
    }
}

fn line(data: &str) -> SseEvent<'_> {
    SseEvent { event: "message", data, id: "" }
}
