//! The order of the chain, on one page: one line per middleware with its reason.
//!
//! Invariant: the order is decided here and nowhere else. The first entry is the outermost.

use std::sync::Arc;

use hart_kernel::Middleware;

use crate::middleware::{Clarification, DanglingToolCall, Sandbox};

/// The lead agent's chain.
pub(crate) fn lead(sandbox: Option<Sandbox>) -> Vec<Arc<dyn Middleware>> {
    let mut chain: Vec<Arc<dyn Middleware>> = Vec::new();
    chain.extend(sandbox.map(|sandbox| Arc::new(sandbox) as _)); // outermost: lets go of the sandbox when all others are done with it
    chain.push(Arc::new(DanglingToolCall)); // repairs the history before any provider, or any wrapper further in, sees it
    chain.push(Arc::new(Clarification)); // last: it ends the turn; nothing may follow
    chain
}
