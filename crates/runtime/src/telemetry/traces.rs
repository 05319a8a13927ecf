//! Spans on their way to whoever collects them.
//!
//! Invariant: when the collector is slow or gone, spans are dropped and runs go on.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hart_kernel::async_trait;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

use super::Span;

/// Hands spans over.
#[async_trait]
pub trait TraceExporter: Send + Sync + 'static {
    async fn export(&self, spans: Vec<Span>) -> Result<(), NotExported>;
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotExported(pub String);

/// How many may wait.
const WAITING: usize = 4096;
/// How many go together, and how long the first of them waits for others.
const TOGETHER: usize = 512;
const PAUSE: Duration = Duration::from_secs(1);

/// Nobody collects until somebody asks to.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    to: OnceLock<Sender<Span>>,
}

impl Traces {
    pub(crate) fn record(&self, span: Span) {
        if let Some(to) = self.to.get() {
            // A full queue means that the collector does not keep up, which its own log tells.
            let _ = to.try_send(span);
        }
    }

    /// What there is to hand over; `None` when somebody does so already.
    pub(crate) fn collect(&self) -> Option<Receiver<Span>> {
        let (to, from) = channel(WAITING);
        self.to.set(to).ok().map(|()| from)
    }
}

/// Hands over until `closing`, and then what is left; `idle` says whether more may come.
pub(crate) async fn export(
    mut from: Receiver<Span>,
    exporter: Arc<dyn TraceExporter>,
    closing: CancellationToken,
    idle: impl Fn() -> bool,
) {
    let mut failing = false;
    loop {
        let mut spans = Vec::new();
        tokio::select! {
            _ = from.recv_many(&mut spans, TOGETHER) => {}
            () = closing.cancelled() => {
                while let Ok(span) = from.try_recv() {
                    spans.push(span);
                }
                if spans.is_empty() && idle() {
                    return;
                }
            }
        }
        if spans.len() < TOGETHER {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = closing.cancelled() => tokio::time::sleep(Duration::from_millis(20)).await,
            }
            while spans.len() < TOGETHER
                && let Ok(span) = from.try_recv()
            {
                spans.push(span);
            }
        }
        if spans.is_empty() {
            continue;
        }
        match exporter.export(spans).await {
            Ok(()) => failing = false,
            // Once, not for every batch of a day.
            Err(error) if !failing => {
                tracing::warn!(%error, "traces are dropped: their collector does not take them");
                failing = true;
            }
            Err(_) => {}
        }
    }
}
