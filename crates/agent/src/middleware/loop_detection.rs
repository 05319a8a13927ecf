//! Notices that the model goes round in circles, tells it, and ends it if it does not listen.
//!
//! Invariant: nothing is ever put between a call and its result, and a run that is stopped ends with an answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hart_kernel::{
    HookError, Middleware, ModelNext, ModelRequest, ModelResponse, RunContext, State, ToolNext, ToolOutcome,
    ToolRequest, async_trait,
};
use hart_types::{Body, Message};

use crate::answer::{hidden, is_from_user, last_word};
use crate::loops::{Detector, LoopDetectionConfig, Verdict};

/// Watches for repetition since the user's latest message.
///
/// An answer whose calls, arguments and results are all as before counts as a repetition. At the third within the
/// last twenty answers the next request carries a note to the model that begins with `[LOOP DETECTED]`; at the fifth
/// the model is asked one last time, without tools, for an answer, which ends with `[FORCED STOP] …` and carries
/// `additional_kwargs.stop_reason = "loop_capped"`. The same happens to a tool that is called in 30 or 50 of the last
/// 100 answers, whatever its results; not to `bash` and the file tools, unless `tool_freq_overrides` names them. Polling
/// something that changes is no repetition.
///
/// Notes are in the request only. What was done is read from the thread's log, so a resumed run knows it too. A copy
/// shares the settings and nothing else.
#[derive(Clone, Debug, Default)]
pub struct LoopDetection {
    config: LoopDetectionConfig,
}

impl LoopDetection {
    pub fn new(config: LoopDetectionConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for LoopDetection {
    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let watch = cx.scratch.get_or_default::<Watch>();
        let verdict = watch.look(&self.config, &request.state, &|called| cx.tool_name(called).to_owned());
        match verdict {
            Verdict::Fine => next.run(request).await,
            Verdict::Correct(note) => {
                tracing::info!(thread = %cx.thread_id, %note, "the model repeats itself");
                request.chat.messages.push(hidden(&note).into());
                next.run(request).await
            }
            Verdict::Stop(what) => {
                tracing::warn!(thread = %cx.thread_id, %what, "the model went on repeating itself and is stopped");
                let note = format!(
                    "[FORCED STOP] You have called {what}. You cannot call tools any more. Write your final answer now: \
                     what you found out, what is missing, and what stood in the way."
                );
                let remark = format!("[FORCED STOP] The run was ended: the agent had called {what}.");
                last_word(request, next, &note, "loop_capped", &remark).await
            }
        }
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let id = request.call.id.clone();
        let outcome = next.run(request).await?;
        if let Some(id) = id {
            let watch = cx.scratch.get_or_default::<Watch>();
            watch.detector().returned(&id, &outcome.message.text());
        }
        Ok(outcome)
    }
}

/// One run's memory of what it did.
#[derive(Default)]
struct Watch {
    /// Never held across an await.
    detector: Mutex<Detector>,
    /// What the latest answer called for; it stands until there is another.
    verdict: Mutex<Option<Verdict>>,
}

impl Watch {
    fn detector(&self) -> MutexGuard<'_, Detector> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(
        &self,
        config: &LoopDetectionConfig,
        state: &State,
        own_name: &dyn Fn(&str) -> String,
    ) -> Verdict {
        let mut detector = self.detector();
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        // Usually one answer; all since the user's message where an earlier run paused.
        let mut new: Vec<&Message> = Vec::new();
        for message in state.messages().iter().rev() {
            if is_from_user(message) {
                if !new.iter().any(|message| message.as_ai().is_some()) {
                    (*detector, *verdict) = (Detector::default(), None);
                }
                break;
            }
            if matches!(message.body, Body::Ai(_)) && detector.has_seen(message) {
                break;
            }
            new.push(message);
        }
        new.reverse();
        let mut rest = new.as_slice();
        while let Some((first, behind)) = rest.split_first() {
            let end = behind.iter().position(|message| message.as_ai().is_some()).unwrap_or(behind.len());
            let (results, later) = behind.split_at(end);
            rest = later;
            // A stop is for good.
            if first.as_ai().is_some() && !matches!(*verdict, Some(Verdict::Stop(_))) {
                *verdict = Some(detector.observe(config, first, results, own_name));
            }
        }
        // A correction is said once.
        let said = matches!(*verdict, Some(Verdict::Correct(_)));
        let now = if said { verdict.take() } else { verdict.clone() };
        now.unwrap_or(Verdict::Fine)
    }
}
