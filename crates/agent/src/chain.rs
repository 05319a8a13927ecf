//! The order of the chain, on one page: one line per middleware with its reason.
//!
//! Invariant: the order is decided here and nowhere else. The first entry is the outermost.

use std::sync::Arc;

use hart_kernel::Middleware;

use crate::middleware::{Clarification, DanglingToolCall, ReadBeforeWrite, Sandbox, ToolOutputBudget};
use crate::{Features, builder};

/// The lead agent's chain.
pub(crate) fn lead(sandbox: Option<Sandbox>, features: Features) -> Vec<Arc<dyn Middleware>> {
    let sandboxes = sandbox.as_ref().map(Sandbox::provider);
    let mut chain: Vec<Arc<dyn Middleware>> = Vec::new();
    let budget = features.tool_output.map(|config| ToolOutputBudget::new(config, sandboxes.clone()));
    chain.extend(builder::part(budget)); // outermost around tools: what any of the others adds to a result counts too
    chain.extend(builder::part(sandbox)); // lets go of the sandbox, and ends what runs in it, when all further in are done with it
    chain.push(Arc::new(DanglingToolCall)); // repairs the history before any provider, or any wrapper further in, sees it
    chain.extend(builder::part(features.sandbox_audit)); // before anything acts on a call: a blocked one leaves no trace but its line
    let read_first = sandboxes.filter(|_| features.read_before_write).map(ReadBeforeWrite::new);
    chain.extend(builder::part(read_first)); // next to the tool: what it compares is what the tool finds
    chain.push(Arc::new(Clarification)); // last: it ends the turn; nothing may follow
    chain
}
