//! The stream of one answer: bytes to events to fragments.
//!
//! Invariant: it ends with `Done` or with an error, once. Dropping it drops the connection.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use hart_kernel::{ChatChunk, ModelError, TimeoutPhase};
use hart_types::Message;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::frames::{Frames, Framing};
use super::{Endpoint, Failure};
use crate::sse::SseEvent;

/// What a dialect makes of events.
pub(crate) trait Decoder: Send + Unpin + 'static {
    /// How the provider separates them.
    const FRAMING: Framing = Framing::Events;

    fn new(provider: &'static str) -> Self;

    fn event(&mut self, event: SseEvent<'_>, out: &mut VecDeque<ChatChunk>) -> Result<Progress, Fault>;

    /// Whether the provider has said why it stopped.
    fn is_complete(&self) -> bool;

    /// What has come so far, as a message.
    fn take(&mut self) -> Message;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Complete,
}

/// Why an event ends the answer.
#[derive(Debug)]
pub(crate) enum Fault {
    Protocol(String),
    Provider(Failure),
}

pub(super) struct Answer<D> {
    endpoint: Endpoint,
    request_id: Option<String>,
    body: Option<Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    silence: Pin<Box<Sleep>>,
    frames: Frames,
    decoder: D,
    ready: VecDeque<ChatChunk>,
}

impl<D: Decoder> Answer<D> {
    pub(super) fn new(
        endpoint: Endpoint,
        response: reqwest::Response,
        cancel: &CancellationToken,
        decoder: D,
    ) -> Self {
        Self {
            request_id: super::failure::request_id(response.headers()),
            body: Some(Box::pin(response.bytes_stream())),
            cancelled: Box::pin(cancel.clone().cancelled_owned()),
            silence: Box::pin(tokio::time::sleep(endpoint.silence)),
            frames: Frames::new(D::FRAMING),
            decoder,
            ready: VecDeque::new(),
            endpoint,
        }
    }

    /// Turns the buffered events into fragments, up to the first that yields any.
    fn decode(&mut self) -> Result<Progress, ModelError> {
        loop {
            let event = match self.frames.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Progress::More),
                Err(error) => return Err(self.endpoint.protocol(error.to_string())),
            };
            match self.decoder.event(event, &mut self.ready) {
                Ok(Progress::More) if self.ready.is_empty() => {}
                Ok(progress) => return Ok(progress),
                Err(Fault::Protocol(message)) => return Err(self.endpoint.protocol(message)),
                Err(Fault::Provider(failure)) => return Err(self.endpoint.failure(failure, None)),
            }
        }
    }

    /// The provider will say no more: either the answer is whole or it broke off.
    fn end(&mut self, cx: &mut Context<'_>, otherwise: ModelError) -> Result<(), ModelError> {
        // Reading the body to its end, where that is at hand, lets the connection be used again.
        if let Some(mut body) = self.body.take() {
            for _ in 0..16 {
                if !matches!(body.as_mut().poll_next(cx), Poll::Ready(Some(Ok(_)))) {
                    break;
                }
            }
        }
        let complete = self.decoder.is_complete();
        let message = self.decoder.take();
        if !complete {
            return Err(otherwise.partial(Some(message)));
        }
        self.ready.push_back(ChatChunk::Done(Box::new(message)));
        Ok(())
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ModelError>> {
        if self.cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ModelError::cancelled()));
        }
        loop {
            if self.decode()? == Progress::Complete {
                let broken = self.endpoint.interrupted("it ended without an answer");
                return Poll::Ready(self.end(cx, broken));
            }
            if !self.ready.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
            match body.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    self.frames.push(&bytes);
                    self.silence.as_mut().reset(Instant::now() + self.endpoint.silence);
                }
                Poll::Ready(Some(Err(error))) => {
                    let error = self.endpoint.transport(error);
                    return Poll::Ready(self.end(cx, error));
                }
                Poll::Ready(None) => {
                    if let Some(event) = self.frames.finish() {
                        // What a cut left of an event is often no JSON; the answer's state then says what is missing.
                        let _ = self.decoder.event(event, &mut self.ready);
                    }
                    let error = self.endpoint.interrupted("the stream ended before the model had finished");
                    return Poll::Ready(self.end(cx, error));
                }
                Poll::Pending => {
                    ready!(self.silence.as_mut().poll(cx));
                    let error = self.endpoint.silent(TimeoutPhase::Idle, self.endpoint.silence);
                    return Poll::Ready(self.end(cx, error));
                }
            }
        }
    }
}

impl<D: Decoder> Stream for Answer<D> {
    type Item = Result<ChatChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(chunk) = this.ready.pop_front() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        if this.body.is_none() {
            return Poll::Ready(None);
        }
        if let Err(error) = ready!(this.advance(cx)) {
            let error =
                if error.partial.is_none() { error.partial(Some(this.decoder.take())) } else { error };
            this.body = None;
            this.ready.clear();
            return Poll::Ready(Some(Err(error.request_id(this.request_id.take()))));
        }
        Poll::Ready(this.ready.pop_front().map(Ok))
    }
}
