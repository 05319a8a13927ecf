//! What was refused, under the id of the rule that refused it.
//!
//! Invariant: a rule id never changes its meaning; operators match on it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::sync::mpsc;

/// A refusal that hart itself saw or decided; `docs/guide/sandbox.md` lists the rules and what is not seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
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

/// Of one command, the same one once; a command that provokes more only keeps itself busy.
const MAX_RECORDED: usize = 200;

/// Where the watchers of one command report to.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    to: mpsc::Sender<Denied>,
    recorded: Arc<Mutex<HashSet<Denied>>>,
}

impl Audit {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Denied>) {
        let (to, from) = mpsc::channel(MAX_RECORDED);
        (Self { to, recorded: Arc::default() }, from)
    }

    pub(crate) fn denied(&self, rule: &'static str, detail: impl Into<String>) {
        let denied = Denied::new(rule, detail);
        {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.len() >= MAX_RECORDED || !recorded.insert(denied.clone()) {
                return;
            }
        }
        tracing::warn!(target: "hart_sandbox::audit", rule = denied.rule, detail = denied.detail, "denied");
        // The log has it in any case; a sink that cannot keep up misses it.
        let _ = self.to.try_send(denied);
    }

    /// Something let through, for the log only.
    pub(crate) fn allowed(&self, rule: &'static str, detail: &str) {
        tracing::info!(target: "hart_sandbox::audit", rule, detail, "allowed");
    }
}
