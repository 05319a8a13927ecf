//! The order of the chain, on one page: one line per middleware with its reason.
//!
//! Invariant: the order is decided here and nowhere else. The first entry is the outermost.

use std::sync::Arc;

use hart_kernel::{Chain, ChainError, Middleware, Placed};
use hart_tools::ToolOutputConfig;

use crate::Features;
use crate::middleware::{
    Clarification, DanglingToolCall, DynamicContext, ReadBeforeWrite, Sandbox, SandboxAudit, ThreadData,
    Title, Todo, ToolOutputBudget, UnsupportedContent, Uploads, ViewImage, ViewImageConfig,
};

/// The lead agent's chain.
pub(crate) fn lead(features: Features, extras: Vec<Placed>) -> Result<Vec<Arc<dyn Middleware>>, ChainError> {
    let sandboxes = features.sandbox.as_ref().map(Sandbox::provider);
    let (mut chain, mut tail) = (Chain::default(), Chain::default());

    // Outermost around tools: what any of the others adds to a result counts too.
    chain.feature(features.tool_output, || {
        ToolOutputBudget::new(ToolOutputConfig::default(), sandboxes.clone())
    });

    // Before anyone speaks of the thread's files.
    if sandboxes.is_some() {
        chain.feature(features.thread_data, || ThreadData);
    }

    // Outside the sandbox: what it looks at is let go of after it.
    if let Some(sandboxes) = sandboxes.clone() {
        chain.feature(features.uploads, || Uploads::new(sandboxes));
    }

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

    // Appends what changes from day to day, so that nothing before it has to change.
    chain.feature(features.dynamic_context, DynamicContext::default);

    // Inside whatever shortens the conversation: it sees whether the list is still in it.
    chain.feature(features.todo, || Todo);

    // Names the thread from the user's words alone, so its place among the others does not matter.
    chain.feature(features.title, Title::default);

    // Inside whatever counts or shortens messages: images are in the request only.
    if let Some(sandboxes) = sandboxes {
        chain.feature(features.view_image, || ViewImage::new(sandboxes, ViewImageConfig::default()));
    }

    // Next to the model: what is put into the request last can be refused too.
    chain.feature(features.unsupported_content, || UnsupportedContent);

    // There is no middleware for prompt caching. Requests share their start because every middleware above only appends,
    // or shows a message the same way each time; the marks that Anthropic's API wants are set where its requests are
    // written, and the other providers cache by themselves. Nor is there one that merges system messages: `models` does,
    // where a model is not known to take several.

    // Last: it ends the turn; nothing may follow.
    tail.push(Clarification);

    chain.complete(extras, tail)
}
