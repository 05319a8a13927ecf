//! Plays the frames of one answer: paced, split, cut or silent as its turn says.
//!
//! Invariant: a client that leaves before the last frame it was meant to get is counted once, and no other is.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};

use super::Shared;
use crate::turn::{End, Payload, Turn};

/// The body of one answer.
pub(super) struct Playback {
    frames: VecDeque<Bytes>,
    end: End,
    pause: Duration,
    split: bool,
    witness: Witness,
}

/// Notices that an answer was dropped before it was complete.
pub(super) struct Witness {
    shared: Arc<Shared>,
    complete: bool,
}

impl Playback {
    pub(super) fn new(turn: &Turn, stream: bool, mut frames: Vec<Bytes>, witness: Witness) -> Self {
        match turn.end {
            End::Complete | End::HangBeforeHeaders => {}
            End::CutAfter(n) | End::HangAfter(n) => frames.truncate(n),
        }
        let is_raw = matches!(turn.payload, Some(Payload::Sse(_)));
        if let (End::CutAfter(_), [whole], false) = (turn.end, frames.as_mut_slice(), stream || is_raw) {
            // A message that is not streamed is one frame; cutting it means cutting through it.
            whole.truncate(whole.len() / 2);
        }
        if let Some(size) = turn.wire_bytes {
            let all = Bytes::from(frames.concat());
            frames = (0..all.len()).step_by(size).map(|at| all.slice(at..all.len().min(at + size))).collect();
        }
        let split = turn.wire_bytes.is_some();
        Self { frames: frames.into(), end: turn.end, pause: turn.pace.between_events, split, witness }
    }

    pub(super) fn stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::unfold(self, |mut playback| async move {
            let frame = playback.next().await?;
            Some((frame, playback))
        })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(frame) = self.frames.pop_front() {
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            } else if self.split {
                // Lets the connection flush, so that frames are not glued together in one write.
                tokio::task::yield_now().await;
            }
            // A client may rightly leave on the last frame, without reading the end of the body.
            if self.frames.is_empty() && self.end == End::Complete {
                self.witness.complete = true;
            }
            return Some(Ok(frame));
        }
        match self.end {
            End::Complete => {
                self.witness.complete = true;
                None
            }
            End::CutAfter(_) => {
                if self.witness.complete {
                    return None;
                }
                // The connection drops what it has not flushed when a body fails; let it flush first.
                tokio::task::yield_now().await;
                self.witness.complete = true;
                Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script")))
            }
            End::HangAfter(_) | End::HangBeforeHeaders => match pending::<Infallible>().await {},
        }
    }
}

impl Witness {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, complete: false }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if !self.complete {
            self.shared.note_disconnect();
        }
    }
}
