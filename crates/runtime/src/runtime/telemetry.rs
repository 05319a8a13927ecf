//! What a runtime tells its operator.
//!
//! Invariant: asking costs no run anything.

use std::sync::Arc;

use super::Runtime;
use crate::telemetry::{Metrics, TraceExporter, export};

impl Runtime {
    /// Counts since this process began.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Hands the traces of runs over until this runtime closes; the first one to ask gets them.
    pub fn trace_to(&self, exporter: Arc<dyn TraceExporter>) {
        let Some(from) = self.inner.traces.collect() else { return };
        let (inner, closing) = (Arc::clone(&self.inner), self.inner.closing.clone());
        self.inner.tasks.spawn(async move {
            let idle = || inner.lock_live().values().all(|live| live.ended_at.get().is_some());
            export(from, exporter, closing, idle).await;
        });
    }
}
