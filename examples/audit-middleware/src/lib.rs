//! A middleware that somebody else wrote: it keeps an account of every tool call.
//!
//! Invariant: it sees calls as they are about to run, behind the repair of the history, and never changes one.
//!
//! Added with `.with(…)` it sees the lead agent's calls; added with `.with_everywhere(…)` those of subagents too.
//!
//! It needs two crates: the kernel, whose [`Middleware`] it implements, and the agent, whose built-ins it anchors to.
//!
//! ```
//! use audit_middleware::Audit;
//! use hart_agent::SuperAgent;
//! # use hart_models::ScriptedModel;
//! # use hart_kernel::types::Message;
//! # let model = std::sync::Arc::new(ScriptedModel::new(Vec::<Message>::new()));
//!
//! let agent = SuperAgent::builder(model)
//!     .with(Audit::new(|entry| eprintln!("{entry}")))
//!     .build()?;
//! let chain: Vec<&str> = agent.chain().collect();
//! assert!(chain.windows(2).any(|pair| pair == ["DanglingToolCall", "Audit"]));
//! # Ok::<(), hart_kernel::BuildError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use hart_agent::middleware::DanglingToolCall;
use hart_kernel::types::{ThreadId, ToolStatus};
use hart_kernel::{
    HookError, Middleware, Placement, ReduceError, RunContext, Schema, StateError, StateKey, ToolNext,
    ToolOutcome, ToolRequest, Update, async_trait,
};

/// Tells a sink of every call, and keeps the count in the thread under `audit`.
pub struct Audit {
    sink: Arc<dyn Fn(&Entry) + Send + Sync>,
}

impl Audit {
    /// `sink` is called once for every call, when it has ended.
    pub fn new(sink: impl Fn(&Entry) + Send + Sync + 'static) -> Self {
        Self { sink: Arc::new(sink) }
    }
}

/// One call and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub thread: ThreadId,
    pub tool: String,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The tool said so, to the model.
    Refused,
    /// It did not end: the run was cancelled or failed, or waits for an answer.
    Open,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} called {}: {:?}", self.thread, self.tool, self.outcome)
    }
}

/// How often each tool was called in the thread.
#[derive(Debug)]
pub struct Calls;

impl StateKey for Calls {
    type Value = BTreeMap<String, u32>;
    type Update = String;
    const NAME: &'static str = "audit";

    fn reduce(current: Option<Self::Value>, tool: String) -> Result<Self::Value, ReduceError> {
        let mut calls = current.unwrap_or_default();
        *calls.entry(tool).or_default() += 1;
        Ok(calls)
    }
}

#[async_trait]
impl Middleware for Audit {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Calls>()?;
        Ok(())
    }

    /// Whoever installs it may still say otherwise: `Audit::new(…).before::<Sandbox>()`.
    fn placement(&self) -> Placement {
        Placement::after::<DanglingToolCall>()
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let tool = request.call.name.clone();
        let mut outcome = next.run(request).await;
        let ended = match outcome.as_ref().ok().and_then(|outcome| outcome.message.as_tool_result()) {
            Some(result) if result.status == ToolStatus::Success => Outcome::Done,
            Some(_) => Outcome::Refused,
            None => Outcome::Open,
        };
        (self.sink)(&Entry { thread: cx.thread_id.clone(), tool: tool.clone(), outcome: ended });
        if let Ok(outcome) = &mut outcome {
            outcome.command.update.extend(Update::none().set::<Calls>(tool));
        }
        outcome
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audit")
    }
}
