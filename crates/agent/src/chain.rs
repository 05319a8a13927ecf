//! The order of the chain, on one page: one line per middleware with its reason.
//!
//! Invariant: the order is decided here and nowhere else. The first entry is the outermost.

use std::sync::Arc;

use hart_kernel::{Chain, ChainError, ChatModel, Middleware, Placed};
use hart_sandbox::SandboxProvider;
use hart_tools::ToolOutputConfig;

use crate::compaction::SummarizationConfig;
use crate::middleware::{
    Budget, CallLimits, ContextEditing, DanglingToolCall, DynamicContext, EditedToolCall, FinishReason,
    Goals, Guardrail, HumanInTheLoop, InputSanitization, LoopDetection, ModelError, Pii, ReadBeforeWrite,
    Sandbox, SandboxAudit, Subagents, Summarization, ThreadData, Title, Todo, TokenUsage, ToolError,
    ToolOutputBudget, ToolRetry, ToolSelection, UnsupportedContent, UntrustedContent, Uploads, ViewImage,
    ViewImageConfig,
};
use crate::{BudgetConfig, ContextEditingConfig, Features, GoalConfig, OnLimit, ToolSelectionConfig};

/// The lead agent's chain.
pub(crate) fn lead(
    model: &Arc<dyn ChatModel>,
    mut features: Features,
    subagents: Option<Subagents>,
    extras: Vec<Placed>,
) -> Result<Vec<Arc<dyn Middleware>>, ChainError> {
    let Reach { sandboxes, sandbox, permitted, review } = Reach::of(&mut features);
    let (mut chain, mut tail) = (Chain::default(), Chain::default());

    // Outermost around the model: everyone further in sees the user's words as the provider will.
    chain.feature(features.input_sanitization, || InputSanitization);

    // Outermost around tools: every guard looks at the call a person made of it, not at the one that will not run.
    if review.is_some() {
        chain.push(EditedToolCall);
    }

    // Around the rest of the tools' wrappers: what any of them adds to a result counts too.
    chain.feature(features.tool_output, || {
        ToolOutputBudget::new(ToolOutputConfig::default(), sandboxes.clone())
    });

    // Right inside the budget: what is cut or put into a file is sealed already.
    chain.feature(features.untrusted_content, UntrustedContent::default);

    // Inside the seal, whose own words are nobody's data, and inside the budget, whose files must not keep any.
    chain.feature(features.pii, Pii::default);

    if let Some(sandboxes) = sandboxes.clone() {
        // Before anyone speaks of the thread's files.
        chain.feature(features.thread_data, || ThreadData);

        // Outside the sandbox: what it looks at is let go of after it.
        chain.feature(features.uploads, || Uploads::new(sandboxes));
    }

    // Lets go of the sandbox, and ends what runs in it, when all further in are done with it.
    chain.maybe(sandbox);

    // Repairs the history before any provider, or any wrapper further in, sees it.
    chain.push(DanglingToolCall);

    // Around all that may fail on the way to the model; only the repair, which cannot, is further out.
    chain.feature(features.model_error, ModelError::default);

    // Before anything looks into a call: what may not run at all leaves no other trace.
    chain.feature(features.guardrail, Guardrail::default);

    // Before anything acts on a call: a blocked one leaves no trace but its line.
    chain.feature(features.sandbox_audit, SandboxAudit::new);

    // Next to the tool: what it compares is what the tool finds.
    if let Some(permitted) = permitted.clone() {
        chain.feature(features.read_before_write, || ReadBeforeWrite::new(permitted));
    }

    // Inside what guards calls, around the rest: a guard's refusal is its own message, a failure becomes one here.
    chain.feature(features.tool_error, ToolError::default);

    // Inside of it, so that only the last failure is reported.
    chain.feature(features.tool_retry, ToolRetry::default);

    // Appends what changes from day to day, so that nothing before it has to change.
    chain.feature(features.dynamic_context, DynamicContext::default);

    // Outside compaction, which must know how long the request really is. It sees calls before anyone but the guards.
    chain.maybe(features.skills);

    // Here: a project's own memory (`AGENTS.md`), once there is such.

    // Inside what repairs and adds to the history: what it counts is what goes out.
    chain.feature(features.summarization, || {
        let summarization = Summarization::new(SummarizationConfig::default());
        summarization.agent_model(Arc::clone(model)).sandboxes(sandboxes.clone())
    });

    // Inside compaction: it edits what that leaves of the conversation.
    chain.feature(features.context_editing, || ContextEditing::new(ContextEditingConfig::default()));

    // Around the list of steps, which has its word first: only whoever means to end is judged.
    chain.feature(features.goals, || Goals::new(GoalConfig::default(), Arc::clone(model)));

    // Inside whatever shortens the conversation: it sees whether the list is still in it.
    chain.feature(features.todo, || Todo);

    // Around what changes answers: it counts what really enters the thread.
    chain.feature(features.token_usage, TokenUsage::default);

    // Next to it: what is counted is charged.
    chain.feature(features.budget, Budget::default);

    // Names the thread from the user's words alone, so its place among the others does not matter.
    chain.feature(features.title, Title::default);

    // Here: long-term memory, which hears of a conversation when it is over.

    // Inside whatever counts or shortens messages: images are in the request only.
    if let Some(permitted) = permitted {
        chain.feature(features.view_image, || ViewImage::new(permitted, ViewImageConfig::default()));
    }

    // Inside all that add tools: it chooses among them. Tools that wait to be asked for belong here too.
    chain.feature(features.tool_selection, || ToolSelection::new(ToolSelectionConfig::default()));

    // Next to the model: what is put into the request last can be refused too.
    chain.feature(features.unsupported_content, || UnsupportedContent);

    // There is no middleware for prompt caching. Requests share their start because every middleware above only appends,
    // or shows a message the same way each time; the marks that Anthropic's API wants are set where its requests are
    // written, and the other providers cache by themselves. Nor is there one that merges system messages: `models` does,
    // where a model is not known to take several.

    // Inside whatever shortens the conversation, as the list of steps is; around what counts calls, as those of an answer
    // that are one too many are not delegated either.
    chain.feature(features.subagents, || subagents.unwrap_or_default());

    // Brings tools only, so its place does not matter.
    chain.maybe(features.remote_subagents);

    // Before anything looks at an answer's calls: there are no more of them than can be run.
    chain.feature(features.call_limits, CallLimits::default);

    // Inside all that shortens results: what it compares is what the tools said.
    chain.feature(features.loop_detection, LoopDetection::default);

    // Behind the extras and innermost around the model: nobody else sees a call that is not whole.
    tail.feature(features.finish_reason, FinishReason::default);

    // The first to look at an answer that has entered the thread. Whatever takes calls out of one (its end, a loop's, too
    // many of them) wraps the model call and has done so by then: a person is asked about calls that will run, before any
    // of them does.
    tail.maybe(review);

    // Last: it ends the turn; nothing may follow.
    tail.push(features.clarification);

    chain.complete(extras, tail)
}

/// A subagent's chain: the lead agent's guards, and what keeps it within bounds. Nothing in it speaks to the user.
pub(crate) fn child(
    model: &Arc<dyn ChatModel>,
    mut features: Features,
    sees: bool,
    extras: Vec<Placed>,
) -> Result<Vec<Arc<dyn Middleware>>, ChainError> {
    let Reach { sandboxes, sandbox, permitted, review } = Reach::of(&mut features);
    let (mut chain, mut tail) = (Chain::default(), Chain::default());

    // As for the lead: every guard looks at the call a person made of it.
    if review.is_some() {
        chain.push(EditedToolCall);
    }

    // What fills the lead's conversation would fill this one too, and what is foreign there is foreign here.
    chain.feature(features.tool_output, || {
        ToolOutputBudget::new(ToolOutputConfig::default(), sandboxes.clone())
    });
    chain.feature(features.untrusted_content, UntrustedContent::default);
    chain.feature(features.pii, Pii::default);

    // The same place; it is the lead that holds it and lets go of it.
    if sandbox.is_some() {
        chain.feature(features.thread_data, || ThreadData);
    }
    chain.maybe(sandbox.map(Sandbox::borrowed));

    // Its history can break as any can, and its model can fail.
    chain.push(DanglingToolCall);
    chain.feature(features.model_error, ModelError::default);

    // Delegation is no way around what guards the lead's calls.
    chain.feature(features.guardrail, Guardrail::default);
    chain.feature(features.sandbox_audit, SandboxAudit::new);
    if let Some(permitted) = permitted.clone() {
        chain.feature(features.read_before_write, || ReadBeforeWrite::new(permitted));
    }
    chain.feature(features.tool_error, ToolError::default);
    chain.feature(features.tool_retry, ToolRetry::default);

    // What changes from day to day, where it is to know it.
    chain.feature(features.dynamic_context, DynamicContext::default);

    // Those of the lead's that it may use, held to what they allow as the lead is.
    chain.maybe(features.skills);

    // A long task outgrows a window here as there.
    chain.feature(features.summarization, || {
        let summarization = Summarization::new(SummarizationConfig::default());
        summarization.agent_model(Arc::clone(model)).sandboxes(sandboxes.clone())
    });
    chain.feature(features.context_editing, || ContextEditing::new(ContextEditingConfig::default()));

    // What it uses is counted, and at its limit it ends with what it has: whoever sent it can decide to go on. Always, and
    // without limits of its own: those it is sent with, and what the lead's leave, are in the budget it shares
    // (`RunContext::budget`), and hold whether or not something else holds the lead.
    chain.feature(features.token_usage, TokenUsage::default);
    chain.push(Budget::new(BudgetConfig { on_limit: OnLimit::End, ..BudgetConfig::default() }));

    if let Some(permitted) = permitted.filter(|_| sees) {
        chain.feature(features.view_image, || ViewImage::new(permitted, ViewImageConfig::default()));
    }
    chain.feature(features.tool_selection, || ToolSelection::new(ToolSelectionConfig::default()));
    chain.feature(features.unsupported_content, || UnsupportedContent);

    // What ends a loop of the lead's ends one of its subagents.
    chain.feature(features.call_limits, CallLimits::default);
    chain.feature(features.loop_detection, LoopDetection::default);

    // Behind its own extras, as for the lead.
    tail.feature(features.finish_reason, FinishReason::default);
    tail.maybe(review);
    chain.complete(extras, tail)
}

/// What an agent reaches and who is asked first: the same for the lead and for those it sends.
struct Reach {
    /// As hart itself uses it.
    sandboxes: Option<Arc<dyn SandboxProvider>>,
    sandbox: Option<Sandbox>,
    /// As the file tools see it.
    permitted: Option<Arc<dyn SandboxProvider>>,
    review: Option<HumanInTheLoop>,
}

impl Reach {
    /// Takes out of the features what it is made of.
    fn of(features: &mut Features) -> Self {
        let (sandbox, permissions) = (features.sandbox.take(), features.permissions.take());
        let sandboxes = sandbox.as_ref().map(Sandbox::provider);
        let rules = permissions.map(|permissions| permissions.rules);
        // The rules are about the file tools; hart's own files are not their business.
        let sandbox = match rules.clone() {
            Some(rules) => sandbox.map(|sandbox| sandbox.restricted_to(rules)),
            None => sandbox,
        };
        let permitted = sandbox.as_ref().map(Sandbox::permitted);
        let review = HumanInTheLoop::combined(features.human_in_the_loop.take(), rules, sandboxes.clone());
        Self { sandboxes, sandbox, permitted, review }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
