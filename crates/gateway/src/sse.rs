//! A run's frames as server-sent events.
//!
//! Invariant: headers go out at once, a comment at every beat, and a frame is written whole or not at all.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use hart_runtime::{After, Entry, Follower, Frame, Renderer, Run, Runtime, Spelling};
use hart_types::{CancelAction, StreamMode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::readers::Reading;

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
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

pub(crate) fn response(gateway: &Gateway, watch: Watch) -> Response<Body> {
    let renderer = Renderer::new(watch.run.clone(), watch.modes, watch.children);
    let (seen, from) = match watch.after {
        After::Frame(id) if renderer.remembers() => (id.seq, After::Start),
        After::Frame(id) => (id.seq, watch.after),
        After::Start | After::Now => (0, watch.after),
    };
    let reader = Reader {
        runtime: gateway.runtime.clone(),
        follower: gateway.runtime.follow(&watch.run.id, from),
        renderer,
        seen,
        guard: watch
            .cancel_on_disconnect
            .then(|| OnDrop { runtime: gateway.runtime.clone(), run: Some(watch.run.id.clone()) }),
        run: watch.run,
        entry: None,
        ended: watch.after == After::Now,
    };
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
        _reading: gateway.readers.reading(),
    };
    let body = Body::from_stream(stream::unfold(line, |mut line| async move {
        let bytes = line.next().await?;
        Some((Ok::<_, Infallible>(bytes), line))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// One connection.
struct Line<S> {
    source: S,
    closing: CancellationToken,
    every: Duration,
    beat: Instant,
    _reading: Reading,
}

impl<S: Source> Line<S> {
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            bytes = self.source.next() => bytes,
            () = tokio::time::sleep_until(self.beat) => {
                self.beat = Instant::now() + self.every;
                Some(Bytes::from_static(b": heartbeat\n\n"))
            }
            () = self.closing.cancelled() => None,
        }
    }
}

struct Reader {
    runtime: Runtime,
    follower: Follower,
    renderer: Renderer,
    run: Run,
    /// Frames up to this number were seen before.
    seen: u64,
    /// What is being rendered.
    entry: Option<Arc<Entry>>,
    /// Whether the reader knows that the run is over, or did not ask.
    ended: bool,
    guard: Option<OnDrop>,
}

impl Source for Reader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.entry.is_none() {
                self.entry = match self.follower.next().await {
                    Ok(Some(entry)) => Some(entry),
                    Ok(None) => return self.finish().await,
                    Err(error) => {
                        tracing::error!(run = %self.run.id, %error, "a stream broke off");
                        return None;
                    }
                };
            }
            let frames = frames(&self.runtime, &mut self.renderer, &self.run, self.entry.as_deref()?).await;
            self.entry = None;
            self.ended |= frames.iter().any(|frame| frame.event == "end");
            let mut out = BytesMut::new();
            for frame in frames.iter().filter(|frame| frame.id.seq > self.seen) {
                write(&mut out, frame);
            }
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
    }
}

impl Reader {
    /// The run is over. Its log lacks the end if its server was killed; the record has it.
    async fn finish(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        if !self.ended {
            let record = self.runtime.store().run(&self.run.id).await.ok().flatten();
            if let Some(failure) = record.and_then(|run| run.error)
                && let Ok(data) = serde_json::to_vec(&failure)
            {
                write_lines(&mut out, "error", &data);
            }
            write_lines(&mut out, "end", b"null");
            self.ended = true;
        }
        // Nothing is left to cancel.
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
        (!out.is_empty()).then(|| out.freeze())
    }
}

/// What an entry looks like to a reader. The renderer is not touched before nothing is awaited any more.
pub(crate) async fn frames(
    runtime: &Runtime,
    renderer: &mut Renderer,
    run: &Run,
    entry: &Entry,
) -> Vec<Frame> {
    let values = match renderer.wants_values(entry) {
        true => runtime.values_of(&run.thread, entry, Spelling::State).await.ok(),
        false => None,
    };
    renderer.render(entry, values.as_ref())
}

pub(crate) fn write(out: &mut BytesMut, frame: &Frame) {
    write_event(out, &frame.event, &frame.data, frame.id);
}

pub(crate) fn write_event(out: &mut BytesMut, event: &str, data: &[u8], id: impl std::fmt::Display) {
    write_lines(out, event, data);
    // Before the empty line.
    out.truncate(out.len().saturating_sub(2));
    out.put_slice(b"id: ");
    out.put_slice(id.to_string().as_bytes());
    out.put_slice(b"\r\n\r\n");
}

/// A frame that is no place in the stream.
pub(crate) fn write_lines(out: &mut BytesMut, event: &str, data: &[u8]) {
    out.reserve(event.len() + data.len() + 64);
    out.put_slice(b"event: ");
    out.put_slice(event.as_bytes());
    out.put_slice(b"\r\ndata: ");
    out.put_slice(data);
    out.put_slice(b"\r\n\r\n");
}

/// Stops the run when its reader goes away.
struct OnDrop {
    runtime: Runtime,
    run: Option<hart_types::RunId>,
}

impl OnDrop {
    fn disarm(mut self) {
        self.run = None;
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            self.runtime.cancel_later(run, CancelAction::Interrupt);
        }
    }
}
