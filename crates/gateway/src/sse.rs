//! A run's frames as server-sent events.
//!
//! Invariant: headers go out at once, a comment at least every few seconds, and a frame is written whole or not at all.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use hart_runtime::{After, Follower, Frame, Renderer, Run, Runtime};
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

/// LangGraph's own pace; clients take three of them as a sign that the line is dead.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub(crate) fn response(gateway: &Gateway, watch: Watch) -> Response<Body> {
    let after = match watch.after {
        After::Frame(id) => id.seq,
        After::Start | After::Now => 0,
    };
    let reader = Reader {
        runtime: gateway.runtime.clone(),
        closing: gateway.closing.clone(),
        follower: gateway.runtime.follow(&watch.run.id, watch.after),
        renderer: Renderer::new(watch.run.clone(), watch.modes, watch.children),
        after,
        heartbeat: Instant::now() + HEARTBEAT,
        guard: watch
            .cancel_on_disconnect
            .then(|| OnDrop { runtime: gateway.runtime.clone(), run: Some(watch.run.id.clone()) }),
        run: watch.run,
        done: false,
        _reading: gateway.readers.reading(),
    };
    let body = Body::from_stream(stream::unfold(reader, |mut reader| async move {
        let bytes = reader.next().await?;
        Some((Ok::<_, Infallible>(bytes), reader))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Reader {
    runtime: Runtime,
    closing: CancellationToken,
    follower: Follower,
    renderer: Renderer,
    run: Run,
    /// Frames up to this number were seen before.
    after: u64,
    heartbeat: Instant,
    guard: Option<OnDrop>,
    done: bool,
    _reading: Reading,
}

impl Reader {
    /// The next bytes to send: all frames that are at hand, or a heartbeat.
    async fn next(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        loop {
            let entry = tokio::select! {
                biased;
                entry = self.follower.next() => entry,
                () = tokio::time::sleep_until(self.heartbeat) => {
                    self.heartbeat = Instant::now() + HEARTBEAT;
                    return Some(Bytes::from_static(b": heartbeat\n\n"));
                }
                () = self.closing.cancelled() => return None,
            };
            let entry = match entry {
                Ok(Some(entry)) => entry,
                Ok(None) => {
                    self.finish();
                    return None;
                }
                Err(error) => {
                    tracing::error!(run = %self.run.id, %error, "a stream broke off");
                    return None;
                }
            };
            let values = match self.renderer.wants_values(&entry) {
                true => self.runtime.values_of(&self.run.thread, &entry).await.ok(),
                false => None,
            };
            let mut out = BytesMut::new();
            for frame in self.renderer.render(&entry, values.as_ref()) {
                if frame.id.seq > self.after {
                    write(&mut out, &frame);
                }
            }
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
    }

    fn finish(&mut self) {
        self.done = true;
        // The run is over: nothing is left to cancel.
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
    }
}

fn write(out: &mut BytesMut, frame: &Frame) {
    out.reserve(frame.event.len() + frame.data.len() + 64);
    out.put_slice(b"event: ");
    out.put_slice(frame.event.as_bytes());
    out.put_slice(b"\r\ndata: ");
    out.put_slice(&frame.data);
    out.put_slice(b"\r\nid: ");
    out.put_slice(frame.id.to_string().as_bytes());
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
