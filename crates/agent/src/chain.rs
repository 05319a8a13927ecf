//! The order of the chain, on one page: one line per middleware with its reason.
//!
//! Invariant: the order is decided here and nowhere else. The first entry is the outermost.

use std::sync::Arc;

use hart_kernel::{Chain, ChainError, ChatModel, Middleware, Placed};
use hart_tools::ToolOutputConfig;

use crate::compaction::SummarizationConfig;
use crate::middleware::{
    Clarification, ContextEditing, DanglingToolCall, ReadBeforeWrite, Sandbox, SandboxAudit, Summarization,
    ToolOutputBudget, ToolSelection,
};
use crate::{ContextEditingConfig, Features, ToolSelectionConfig};

/// The lead agent's chain.
pub(crate) fn lead(
    model: &Arc<dyn ChatModel>,
    features: Features,
    extras: Vec<Placed>,
) -> Result<Vec<Arc<dyn Middleware>>, ChainError> {
    let sandboxes = features.sandbox.as_ref().map(Sandbox::provider);
    let (mut chain, mut tail) = (Chain::default(), Chain::default());

    // Outermost around tools: what any of the others adds to a result counts too.
    chain.feature(features.tool_output, || {
        ToolOutputBudget::new(ToolOutputConfig::default(), sandboxes.clone())
    });

    // Lets go of the sandbox, and ends what runs in it, when all further in are done with it.
    chain.maybe(features.sandbox);

    // Repairs the history before any provider, or any wrapper further in, sees it.
    chain.push(DanglingToolCall);

    // Before anything acts on a call: a blocked one leaves no trace but its line.
    chain.feature(features.sandbox_audit, SandboxAudit::new);

    // Next to the tool: what it compares is what the tool finds.
    if let Some(sandboxes) = sandboxes.clone() {
        chain.feature(features.read_before_write, || ReadBeforeWrite::new(sandboxes));
    }

    // Inside what repairs and adds to the history: what it counts is what goes out.
    chain.feature(features.summarization, || {
        let summarization = Summarization::new(SummarizationConfig::default());
        summarization.agent_model(Arc::clone(model)).sandboxes(sandboxes)
    });

    // Inside compaction: it edits what that leaves of the conversation.
    chain.feature(features.context_editing, || ContextEditing::new(ContextEditingConfig::default()));

    // Inside all that add tools: it chooses among them.
    chain.feature(features.tool_selection, || ToolSelection::new(ToolSelectionConfig::default()));

    // Last: it ends the turn; nothing may follow.
    tail.push(Clarification);

    chain.complete(extras, tail)
}
