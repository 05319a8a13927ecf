//! Bounds how many calls a model may make: in one answer, in a run, in a thread.
//!
//! Invariant: an answer enters the thread with a bounded number of calls, and every call in it gets its result.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hart_kernel::{
    Command, HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, Schema, StateError,
    ToolNext, ToolOutcome, ToolRequest, Update, async_trait,
};
use hart_types::{Message, ToolCall, ToolStatus};

use crate::answer::{last_word, set_stop_reason};
use crate::call_limits::{
    CallCounts, CallLimitsConfig, ExitBehavior, ThreadCalls, bound, dropped_behind, own_ids, too_many,
};

/// Limits on numbers of calls; LangChain's `ModelCallLimit` and `ToolCallLimit` in one.
///
/// Of an answer with more than `max_calls_per_answer` calls the first ones run; the next one is answered with an error
/// that speaks for all the others, which are dropped: ten thousand error messages would end the run they were to
/// save. Calls that come with an id that another one of the answer has get an id of their own.
///
/// `model` and `tools` (by name, or `*` for all together) count per run and per thread. At a limit the model gets its
/// last word (`end`), the run fails (`error`), or, for tools, the call is answered with an error (`continue`).
#[derive(Clone, Debug, Default)]
pub struct CallLimits {
    config: CallLimitsConfig,
}

impl CallLimits {
    pub fn new(config: CallLimitsConfig) -> Self {
        Self { config }
    }

    /// The first limit that one more call of this tool would break.
    fn broken(&self, cx: &RunContext, request: &ToolRequest) -> Option<(String, ExitBehavior)> {
        let tool = &request.call.name;
        let counts = cx.scratch.get_or_default::<Counts>();
        let mut counts = counts.held();
        for key in [tool.as_str(), ALL] {
            let Some(limit) = self.config.tools.get(key) else { continue };
            let run = counts.tools.get(key).copied().unwrap_or_default();
            let before = request.state.get::<ThreadCalls>().map_or(0, |calls| calls.tool(key));
            let thread = before + counts.unwritten.get(key).copied().unwrap_or_default();
            if let Some(why) = limit.broken_by(run, thread) {
                return Some((why, limit.exit_behavior));
            }
        }
        for key in [tool.as_str(), ALL] {
            *counts.tools.entry(key.to_owned()).or_default() += 1;
            *counts.unwritten.entry(key.to_owned()).or_default() += 1;
        }
        None
    }
}

#[async_trait]
impl Middleware for CallLimits {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<ThreadCalls>()?;
        Ok(())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let counts = cx.scratch.get_or_default::<Counts>();
        let (run, ended, failed) = {
            let mut counts = counts.held();
            counts.unwritten.clear();
            (counts.model, counts.ended.clone(), counts.failed.take())
        };
        if let Some(why) = failed {
            return Err(HookError::Other(format!("a tool may not be called again: {why}").into()));
        }
        let thread = request.state.get::<ThreadCalls>().map_or(0, |calls| calls.model);
        let model = self.config.model.unwrap_or_default();
        if let Some(why) = model.broken_by(run, thread) {
            if model.exit_behavior == ExitBehavior::Error {
                return Err(HookError::Other(format!("the model may not be called again: {why}").into()));
            }
            return Ok(ended_by(&format!("Model call limit reached: {why}. What was done so far is kept.")));
        }
        counts.held().model += 1;
        let mut response = match ended {
            Some(why) => {
                last_word(request, next, &no_more_calls(&why), STOPPED, &format!("[CALL LIMIT] {why}."))
                    .await?
            }
            None => next.run(request).await?,
        };
        own_ids(&mut response.message);
        bound(&mut response.message, self.config.max_calls_per_answer);
        if self.config.model.is_some_and(|limit| limit.thread_limit.is_some()) {
            let one = CallCounts { model: 1, ..CallCounts::default() };
            response.update.extend(Update::none().set::<ThreadCalls>(one));
        }
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        if let Some(dropped) = dropped_behind(&request.call) {
            return Ok(refused(&request.call, &too_many(self.config.max_calls_per_answer, dropped)));
        }
        if let Some((why, exit)) = self.broken(cx, &request) {
            match exit {
                // Raised where nobody takes it for a failure of the tool.
                ExitBehavior::Error => {
                    cx.scratch.get_or_default::<Counts>().held().failed = Some(why.clone())
                }
                ExitBehavior::End => cx.scratch.get_or_default::<Counts>().held().ended = Some(why.clone()),
                ExitBehavior::Continue => {}
            }
            return Ok(refused(
                &request.call,
                &format!("{why}. Do not call it again; answer with what you have"),
            ));
        }
        let name = request.call.name.clone();
        let mut outcome = next.run(request).await?;
        let counted = [name.as_str(), ALL]
            .into_iter()
            .filter(|key| self.config.tools.get(*key).is_some_and(|limit| limit.thread_limit.is_some()));
        let tools: BTreeMap<String, u64> = counted.map(|key| (key.to_owned(), 1)).collect();
        if !tools.is_empty() {
            let calls = CallCounts { model: 0, tools };
            outcome.command.update.extend(Update::none().set::<ThreadCalls>(calls));
        }
        Ok(outcome)
    }
}

const ALL: &str = "*";
const STOPPED: &str = "call_limit_capped";

/// One run's counts.
#[derive(Default)]
struct Counts(
    /// Never held across an await.
    Mutex<RunCounts>,
);

#[derive(Default)]
struct RunCounts {
    model: u64,
    tools: BTreeMap<String, u64>,
    /// Of this batch: the thread's count learns of them after it.
    unwritten: BTreeMap<String, u64>,
    /// Why there will be no further tool call.
    ended: Option<String>,
    /// Why the run is to fail.
    failed: Option<String>,
}

impl Counts {
    fn held(&self) -> MutexGuard<'_, RunCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(call: &Arc<ToolCall>, why: &str) -> ToolOutcome {
    let id = call.id.clone().unwrap_or_else(|| "".into());
    let message =
        Message::tool(&id, &call.name, ToolStatus::Error, format!("Error: nothing was run: {why}."));
    ToolOutcome { message, command: Command::none() }
}

fn ended_by(text: &str) -> ModelResponse {
    let mut message = Message::ai(text);
    set_stop_reason(&mut message, STOPPED);
    ModelResponse { message, update: Update::none() }
}

fn no_more_calls(why: &str) -> String {
    format!("[CALL LIMIT] {why}. You cannot call tools any more. Write your final answer now.")
}
