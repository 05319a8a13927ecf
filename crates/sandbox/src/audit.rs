//! What was refused, under the id of the rule that refused it.
//!
//! Invariant: a rule id never changes its meaning; operators match on it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio::sync::mpsc;

/// A refusal that hart itself saw or decided, or (`text.*`) something out of reach that a command's text names;
/// `docs/guide/sandbox.md` lists the rules and what is not seen.
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
    /// The command's, with its run and thread: who reports does so from a thread of its own.
    span: tracing::Span,
    recorded: Arc<Mutex<HashSet<Denied>>>,
}

impl Audit {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Denied>) {
        let (to, from) = mpsc::channel(MAX_RECORDED);
        (Self { to, span: tracing::Span::current(), recorded: Arc::default() }, from)
    }

    pub(crate) fn denied(&self, rule: &'static str, detail: impl Into<String>) {
        if let Some(denied) = self.first(Denied::new(rule, detail)) {
            tracing::warn!(
                target: "hart_sandbox::audit", parent: &self.span,
                rule = denied.rule, detail = denied.detail, "denied"
            );
            self.tell(denied);
        }
    }

    /// Something out of reach that a command's text names. Whether it is tried, and refused, is not known.
    pub(crate) fn named(&self, rule: &'static str, detail: impl Into<String>) {
        if let Some(named) = self.first(Denied::new(rule, detail)) {
            tracing::warn!(
                target: "hart_sandbox::audit", parent: &self.span,
                rule = named.rule, detail = named.detail, "named"
            );
            self.tell(named);
        }
    }

    /// Nothing for what was recorded before, or is too much.
    fn first(&self, denied: Denied) -> Option<Denied> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        (recorded.len() < MAX_RECORDED && recorded.insert(denied.clone())).then_some(denied)
    }

    fn tell(&self, denied: Denied) {
        // The log has it in any case; a sink that cannot keep up misses it.
        let _ = self.to.try_send(denied);
    }

    /// Something let through, for the log only.
    pub(crate) fn allowed(&self, rule: &'static str, detail: &str) {
        tracing::info!(target: "hart_sandbox::audit", parent: &self.span, rule, detail, "allowed");
    }
}
