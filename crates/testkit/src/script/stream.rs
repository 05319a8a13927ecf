//! Sends a rendered answer: as fast as the socket takes it, or token by token.
//!
//! Invariant: the fast path clones slices of one buffer and does nothing else per frame.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream};
use tokio::time::{Instant, sleep_until};

use super::{Plan, Rendered, TIMESTAMP, unix_nanos};
use crate::request::Dialect;

pub(super) fn response(plan: Arc<Plan>, dialect: Dialect, round: usize, include_usage: bool) -> Response {
    let script = &plan.script;
    let slow = script.token_interval.is_some() || script.flush_each_token || script.timestamps;
    let body = if slow {
        Body::from_stream(paced(plan, dialect, round, include_usage))
    } else {
        Body::from_stream(fast(plan, dialect, round, include_usage))
    };
    let mut response = Response::new(body);
    let streamed = match dialect {
        Dialect::Ollama => "application/x-ndjson",
        _ => "text/event-stream; charset=utf-8",
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(streamed));
    response
}

fn fast(
    plan: Arc<Plan>,
    dialect: Dialect,
    round: usize,
    include_usage: bool,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let skipped = plan.rendered(dialect, round).skipped(include_usage);
    let mut from_end = plan.rendered(dialect, round).frames.len();
    let next = move || {
        loop {
            let frames = &plan.rendered(dialect, round).frames;
            let frame = frames.get(frames.len() - from_end)?.clone();
            from_end -= 1;
            if skipped != Some(from_end + 1) {
                return Some(Ok(frame));
            }
        }
    };
    stream::iter(std::iter::from_fn(next))
}

struct Paced {
    plan: Arc<Plan>,
    dialect: Dialect,
    round: usize,
    skipped: Option<usize>,
    at: usize,
    start: Instant,
}

fn paced(
    plan: Arc<Plan>,
    dialect: Dialect,
    round: usize,
    include_usage: bool,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let skipped = plan.rendered(dialect, round).skipped(include_usage);
    let paced = Paced { plan, dialect, round, skipped, at: 0, start: Instant::now() };
    stream::unfold(paced, |mut paced| async move {
        let event = paced.next().await?;
        Some((Ok(event), paced))
    })
}

impl Paced {
    async fn next(&mut self) -> Option<Bytes> {
        let script = &self.plan.script;
        let rendered = self.plan.rendered(self.dialect, self.round);
        if self.skipped == Some(rendered.events.len() - self.at) {
            self.at += 1;
        }
        let event = rendered.events.get(self.at)?;
        let is_token = rendered.tokens.contains(&self.at);
        if is_token {
            match script.token_interval {
                Some(interval) => {
                    let nth = u32::try_from(self.at - rendered.tokens.start).unwrap_or(u32::MAX);
                    let due = self.start + interval.saturating_mul(nth);
                    if due > Instant::now() {
                        sleep_until(due).await;
                    }
                }
                None if script.flush_each_token => tokio::task::yield_now().await,
                None => {}
            }
        }
        self.at += 1;
        match rendered.timestamp_at.filter(|_| is_token) {
            Some(at) => Some(stamped(event, at)),
            None => Some(event.clone()),
        }
    }
}

impl Rendered {
    /// The usage chunk, counted from the end, when nobody asked for it.
    fn skipped(&self, include_usage: bool) -> Option<usize> {
        self.usage_from_end.filter(|_| !include_usage)
    }
}

/// A token event whose text is the present moment.
fn stamped(event: &Bytes, at: usize) -> Bytes {
    let mut event = BytesMut::from(&event[..]);
    event[at..at + TIMESTAMP.len()].copy_from_slice(format!("{:019}", unix_nanos()).as_bytes());
    event.freeze()
}
