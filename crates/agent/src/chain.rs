//! The order of the chain, on one page: one line per middleware with its reason.
//!
//! Invariant: the order is decided here and nowhere else. The first entry is the outermost.

use std::sync::Arc;

use hart_kernel::{Chain, ChainError, Middleware, Placed};
use hart_tools::ToolOutputConfig;

use crate::Features;
use crate::middleware::{
    DanglingToolCall, EditedToolCall, Guardrail, HumanInTheLoop, InputSanitization, Pii, ReadBeforeWrite,
    Sandbox, SandboxAudit, ToolOutputBudget, UntrustedContent,
};

/// The lead agent's chain.
pub(crate) fn lead(features: Features, extras: Vec<Placed>) -> Result<Vec<Arc<dyn Middleware>>, ChainError> {
    let sandboxes = features.sandbox.as_ref().map(Sandbox::provider);
    let permissions = features.permissions.map(|permissions| permissions.rules);
    // What the file tools see; hart's own files are not the rules' business.
    let sandbox = match permissions.clone() {
        Some(rules) => features.sandbox.map(|sandbox| sandbox.restricted_to(rules)),
        None => features.sandbox,
    };
    let permitted = sandbox.as_ref().map(Sandbox::permitted);
    let review = HumanInTheLoop::combined(features.human_in_the_loop, permissions, sandboxes.clone());
    let (mut chain, mut tail) = (Chain::default(), Chain::default());

    // Outermost around the model: everyone further in sees the user's words as the provider will.
    chain.feature(features.input_sanitization, || InputSanitization);

    // Outermost around tools: every guard looks at the call a person made of it, not at the one that will not run.
    if review.is_some() {
        chain.push(EditedToolCall);
    }

    // Outermost around tools: what any of the others adds to a result counts too.
    chain.feature(features.tool_output, || {
        ToolOutputBudget::new(ToolOutputConfig::default(), sandboxes.clone())
    });

    // Right inside the budget: what is cut or put into a file is sealed already.
    chain.feature(features.untrusted_content, UntrustedContent::default);

    // Inside the seal, whose own words are nobody's data, and inside the budget, whose files must not keep any.
    chain.feature(features.pii, Pii::default);

    // Lets go of the sandbox, and ends what runs in it, when all further in are done with it.
    chain.maybe(sandbox);

    // Repairs the history before any provider, or any wrapper further in, sees it.
    chain.push(DanglingToolCall);

    // Before anything looks into a call: what may not run at all leaves no other trace.
    chain.feature(features.guardrail, Guardrail::default);

    // Before anything acts on a call: a blocked one leaves no trace but its line.
    chain.feature(features.sandbox_audit, SandboxAudit::new);

    // Next to the tool: what it compares is what the tool finds.
    if let Some(permitted) = permitted {
        chain.feature(features.read_before_write, || ReadBeforeWrite::new(permitted));
    }

    // The first to look at an answer: a person is asked before any tool runs, about the calls as the model made them.
    tail.maybe(review);

    // Last: it ends the turn; nothing may follow.
    tail.push(features.clarification);

    chain.complete(extras, tail)
}
