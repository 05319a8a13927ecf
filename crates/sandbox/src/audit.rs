//! What was refused, under the id of the rule that refused it.
//!
//! Invariant: a rule id never changes its meaning; operators match on it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use tokio::sync::mpsc;

/// A refusal that hart itself saw or decided. What the kernel refuses silently (a read-only mount, a file that is not
/// there) is not among them: see `docs/guide/sandbox.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Denied {
    pub rule: &'static str,
    pub detail: String,
}

impl Denied {
    pub(crate) fn new(rule: &'static str, detail: impl Into<String>) -> Self {
        Self { rule, detail: detail.into() }
    }
}

/// Of one command; a command that provokes more only keeps itself busy.
const MAX_RECORDED: u32 = 200;

/// Where the watchers of one command report to.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    to: mpsc::Sender<Denied>,
    recorded: std::sync::Arc<AtomicU32>,
}

impl Audit {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Denied>) {
        let (to, from) = mpsc::channel(64);
        (Self { to, recorded: std::sync::Arc::default() }, from)
    }

    pub(crate) fn denied(&self, rule: &'static str, detail: impl Into<String>) {
        if self.recorded.fetch_add(1, Ordering::Relaxed) >= MAX_RECORDED {
            return;
        }
        let denied = Denied::new(rule, detail);
        tracing::warn!(target: "hart_sandbox::audit", rule = denied.rule, detail = denied.detail, "denied");
        // The log has it in any case; a sink that cannot keep up misses it.
        let _ = self.to.try_send(denied);
    }

    /// Something let through, for the log only.
    pub(crate) fn allowed(&self, rule: &'static str, detail: &str) {
        tracing::info!(target: "hart_sandbox::audit", rule, detail, "allowed");
    }
}
