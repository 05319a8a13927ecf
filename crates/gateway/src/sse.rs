//! A run's frames as server-sent events.
//!
//! Invariant: headers go out at once, a comment at every beat, and a frame is written whole or not at all.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use hart_runtime::port::StoreError;
use hart_runtime::{After, Frame, Run, RunFrames, Runtime, UnsaidEnd};
use hart_types::{CancelAction, RunId, StreamMode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::readers::Reading;
use crate::unsent::Unsent;

/// What one reader wants of one run.
pub(crate) struct Watch {
    pub(crate) run: Run,
    pub(crate) modes: Vec<StreamMode>,
    pub(crate) children: bool,
    pub(crate) after: After,
    /// The run ends with this connection.
    pub(crate) cancel_on_disconnect: bool,
}

/// Where bytes come from. `next` may be given up at any await without losing anything.
pub(crate) trait Source: Send + 'static {
    /// The next bytes to send, whole frames; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, CutOff>> + Send;
}

/// Why a stream ends before its end. The connection breaks with it: a body that ended here would look whole, and nobody
/// would come back for the rest.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CutOff {
    #[error("the server is being stopped")]
    Stopping,
    #[error("what comes next cannot be read: {0}")]
    Unreadable(StoreError),
}

/// What a reader of `whom`, a run or a thread, cannot be told.
pub(crate) fn broke_off(whom: &impl fmt::Display, error: StoreError) -> CutOff {
    tracing::error!(of = %whom, %error, "a stream broke off");
    CutOff::Unreadable(error)
}

pub(crate) fn response(gateway: &Gateway, watch: Watch) -> Response<Body> {
    let guard = OnDisconnect::of(gateway, &watch.run, watch.cancel_on_disconnect);
    let frames = gateway.runtime.frames(watch.run, watch.modes, watch.children, watch.after);
    let reader = Reader { frames, guard };
    respond(gateway, reader)
}

/// Sends what the source has, and a heartbeat whether or not it has any.
pub(crate) fn respond(gateway: &Gateway, source: impl Source) -> Response<Body> {
    let every = gateway.settings.heartbeat;
    let line = Line {
        source,
        closing: gateway.closing.clone(),
        every,
        beat: Instant::now() + every,
        unsent: Unsent::default(),
        _reading: gateway.readers.reading(),
    };
    let body = Body::from_stream(stream::try_unfold(line, |mut line| async move {
        Ok::<_, CutOff>(line.next().await?.map(|bytes| (bytes, line)))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    // A proxy that compresses would keep frames back until it has enough of them.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// One connection.
struct Line<S> {
    source: S,
    closing: CancellationToken,
    every: Duration,
    beat: Instant,
    unsent: Unsent,
    _reading: Reading,
}

impl<S: Source> Line<S> {
    async fn next(&mut self) -> Result<Option<Bytes>, CutOff> {
        let bytes = tokio::select! {
            biased;
            bytes = self.source.next() => bytes?,
            () = tokio::time::sleep_until(self.beat) => {
                self.beat = Instant::now() + self.every;
                Some(Bytes::from_static(b": heartbeat\n\n"))
            }
            () = self.closing.cancelled() => return Err(CutOff::Stopping),
        };
        let Some(bytes) = bytes else { return Ok(None) };
        tokio::select! {
            biased;
            bytes = self.unsent.add(bytes) => Ok(Some(bytes)),
            () = self.closing.cancelled() => Err(CutOff::Stopping),
        }
    }
}

struct Reader {
    frames: RunFrames,
    guard: OnDisconnect,
}

impl Source for Reader {
    async fn next(&mut self) -> Result<Option<Bytes>, CutOff> {
        let mut out = BytesMut::new();
        match self.frames.next().await {
            Ok(Some(frames)) => frames.iter().for_each(|frame| write(&mut out, frame)),
            Ok(None) => {
                // Nothing is left to cancel.
                self.guard.disarm();
                match self.frames.unsaid_end().await {
                    Ok(Some(UnsaidEnd::Ended(failure))) => {
                        if let Some(failure) = failure.and_then(|failure| serde_json::to_vec(&failure).ok()) {
                            write_lines(&mut out, "error", &failure);
                        }
                        write_lines(&mut out, "end", b"null");
                    }
                    // Whoever comes back is told of the gap.
                    Ok(Some(UnsaidEnd::Forgotten) | None) => {}
                    Err(error) => return Err(broke_off(&self.frames.run().id, error)),
                }
            }
            Err(error) => {
                // The reader asks again; it has not left.
                self.guard.disarm();
                return Err(broke_off(&self.frames.run().id, error));
            }
        }
        Ok((!out.is_empty()).then(|| out.freeze()))
    }
}

pub(crate) fn write(out: &mut BytesMut, frame: &Frame) {
    write_event(out, &frame.event, &frame.data, frame.id);
}

pub(crate) fn write_event(out: &mut BytesMut, event: &str, data: &[u8], id: impl std::fmt::Display) {
    write_fields(out, event, data);
    out.put_slice(b"id: ");
    out.put_slice(id.to_string().as_bytes());
    out.put_slice(b"\r\n\r\n");
}

/// A frame that is no place in the stream.
pub(crate) fn write_lines(out: &mut BytesMut, event: &str, data: &[u8]) {
    write_fields(out, event, data);
    out.put_slice(b"\r\n");
}

fn write_fields(out: &mut BytesMut, event: &str, data: &[u8]) {
    out.reserve(event.len() + data.len() + 64);
    out.put_slice(b"event: ");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\r\ndata: ");
    out.put_slice(data);
    out.put_slice(b"\r\n");
}

/// Stops the run when whoever asked for that goes away before its end.
/// A server that ends its connections is not a client that leaves: the run goes on with the next server.
pub(crate) struct OnDisconnect {
    run: Option<(Runtime, RunId)>,
    closing: CancellationToken,
}

impl OnDisconnect {
    pub(crate) fn of(gateway: &Gateway, run: &Run, cancel: bool) -> Self {
        let run = cancel.then(|| (gateway.runtime.clone(), run.id.clone()));
        Self { run, closing: gateway.closing.clone() }
    }

    pub(crate) fn disarm(&mut self) {
        self.run = None;
    }
}

impl Drop for OnDisconnect {
    fn drop(&mut self) {
        if let Some((runtime, run)) = self.run.take()
            && !self.closing.is_cancelled()
        {
            runtime.cancel_later(run, CancelAction::Interrupt);
        }
    }
}
