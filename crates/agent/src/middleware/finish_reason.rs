//! Looks at how an answer ended, and mends the endings a user should not be left with.
//!
//! DeerFlow does this in three middlewares; they read the same word, so here they are one. Where DeerFlow drops a cut
//! call and ends the run, hart asks the model to go on in smaller pieces: the file that did not fit is still wanted.
//!
//! Invariant: a call that was not sent whole is never run, and a run never ends with nothing to read.

use std::sync::atomic::{AtomicU32, Ordering};

use hart_kernel::{
    AgentEvent, Command, Goto, HookError, HookResult, Middleware, ModelNext, ModelRequest, ModelResponse,
    RunContext, State, Update, async_trait,
};
use hart_types::{Body, Message, StopReason};
use serde::Deserialize;
use serde_json::json;

use crate::answer::{
    append_text, hidden, is_blank, set_stop_reason, stop_reason, take_calls, take_invalid_calls,
};

/// Acts on answers that did not end well.
///
/// - **Cut off** (`length`, `max_tokens`, …): calls that were not whole are dropped, the answer gets
///   `additional_kwargs.stop_reason = "model_length_capped"`, and if calls were dropped the model is told which, and
///   goes on, at most `max_continuations` times in a row.
/// - **Declined** (`content_filter`, `refusal`, `SAFETY`, …): calls are dropped, a line for the user is added, the
///   `stop_reason` is `safety_capped`, a custom event `safety_termination` is sent, and the run ends.
/// - **Not finished** (`pause_turn`): the model goes on.
/// - **Nothing said**, no text and no call: the model is asked once more; if it is silent again, a line for the user
///   stands in for the answer.
///
/// The notes to the model are hidden human messages (`hide_from_ui`) in the thread.
#[derive(Clone, Debug, Default)]
pub struct FinishReason {
    config: FinishReasonConfig,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FinishReasonConfig {
    /// How often in a row a model may be asked to go on after it was cut off.
    pub max_continuations: u32,
    /// How often in a row it is asked to say something.
    pub max_empty_retries: u32,
    /// Whether the calls of an answer that declined are dropped and the user is told.
    pub safety: bool,
}

impl Default for FinishReasonConfig {
    fn default() -> Self {
        Self { max_continuations: 3, max_empty_retries: 1, safety: true }
    }
}

impl FinishReason {
    pub fn new(config: FinishReasonConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for FinishReason {
    async fn before_model(&self, _cx: &RunContext, state: &State) -> HookResult {
        // Behind the results of the calls that were whole, if there were any.
        let mut back = state.messages().iter().rev();
        let latest = back.find(|message| !matches!(message.body, Body::Tool(_)));
        let Some(names) = latest.and_then(|message| dropped(message)) else { return Ok(Command::none()) };
        Ok(Update::none().messages(hidden(&go_on(&names))).into())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let mut response = next.run(request).await?;
        let message = &mut response.message;
        match message.stop_reason() {
            Some(StopReason::Length) => {
                let dropped = take_invalid_calls(message);
                set_stop_reason(message, LENGTH);
                if !dropped.is_empty() || is_blank(message) {
                    message.additional_kwargs.insert(DROPPED.to_owned(), dropped.into());
                }
            }
            Some(StopReason::Refused) if self.config.safety => {
                let why = message.stop_word().unwrap_or_default();
                let dropped = take_calls(message, |_| false);
                append_text(
                    message,
                    &format!(
                        "The model declined to go on ({why}). Say it differently, or use another model."
                    ),
                );
                set_stop_reason(message, "safety_capped");
                tracing::warn!(thread = %cx.thread_id, %why, "the model declined to go on");
                let event =
                    json!({"type": "safety_termination", "reason": why, "dropped_tool_calls": dropped});
                cx.emit(AgentEvent::Custom(event)).await;
            }
            _ => {}
        }
        Ok(response)
    }

    async fn after_model(&self, cx: &RunContext, state: &State) -> HookResult {
        let Some(answer) = state.messages().last().filter(|message| message.as_ai().is_some()) else {
            return Ok(Command::none());
        };
        let tries = cx.scratch.get_or_default::<Tries>();
        let calls = !answer.tool_calls().is_empty();
        if answer.additional_kwargs.contains_key(DROPPED) {
            let again = tries.cut.fetch_add(1, Ordering::Relaxed) < self.config.max_continuations;
            return Ok(match (calls, again) {
                (true, _) => Command::none(),
                (false, false) => replaced(answer, CUT_TOO_OFTEN),
                (false, true) if is_blank(answer) => {
                    instead_of(answer, &go_on(&dropped(answer).unwrap_or_default()))
                }
                // What to do next is said by `before_model`.
                (false, true) => Command::none().goto(Goto::Model),
            });
        }
        tries.cut.store(0, Ordering::Relaxed);
        if !calls && answer.stop_reason() == Some(StopReason::Unfinished) {
            let again = tries.unfinished.fetch_add(1, Ordering::Relaxed) < MAX_UNFINISHED;
            return Ok(if again { Command::none().goto(Goto::Model) } else { Command::none() });
        }
        if !is_blank(answer) || stop_reason(answer).is_some() {
            tries.empty.store(0, Ordering::Relaxed);
            return Ok(Command::none());
        }
        if tries.empty.fetch_add(1, Ordering::Relaxed) >= self.config.max_empty_retries {
            return Ok(replaced(answer, NOTHING_SAID));
        }
        tracing::info!(thread = %cx.thread_id, "the model said nothing and is asked again");
        Ok(instead_of(answer, SAY_SOMETHING))
    }
}

const LENGTH: &str = "model_length_capped";
/// The names of the calls that were not whole.
const DROPPED: &str = "dropped_tool_calls";
const SAY_SOMETHING: &str = "[NO ANSWER] Your last answer was empty. Answer the user now: say what you did and what came \
    of it. If something is left to do, call the tool for it.";
const NOTHING_SAID: &str = "The model gave no answer, and none when it was asked again. What its tools did is kept; ask \
    again, or use another model.";
const CUT_TOO_OFTEN: &str = "The model's answers were cut off at their longest again and again, so the run was ended. \
    Raise the model's `max_tokens`, or ask for less at once.";

/// How often a provider's own tools may be waited for.
const MAX_UNFINISHED: u32 = 10;

/// In a row.
#[derive(Default)]
struct Tries {
    cut: AtomicU32,
    empty: AtomicU32,
    unfinished: AtomicU32,
}

fn dropped(answer: &Message) -> Option<Vec<&str>> {
    let names = answer.additional_kwargs.get(DROPPED)?.as_array()?;
    Some(names.iter().filter_map(|name| name.as_str()).collect())
}

/// Takes an empty answer back, which providers do not take, and asks again.
fn instead_of(answer: &Message, note: &str) -> Command {
    let id = answer.id.clone().unwrap_or_else(|| "".into());
    let update = Update::none().messages(vec![Message::remove(id), hidden(note)]);
    Command::from(update).goto(Goto::Model)
}

fn go_on(dropped: &[&str]) -> String {
    let lost = match dropped {
        [] => "before anything was said".to_owned(),
        names => format!("in the middle of a call of {}, which was not run", names.join(", ")),
    };
    format!(
        "[CUT OFF] Your last answer was cut off at its greatest length, {lost}. Go on in smaller pieces: write long files \
         in several calls that append, and say less before you call."
    )
}

/// The answer with a line for the user.
fn replaced(answer: &Message, text: &str) -> Command {
    let mut message = answer.clone();
    append_text(&mut message, text);
    message.additional_kwargs.insert("deerflow_error_fallback".to_owned(), true.into());
    message.additional_kwargs.shift_remove(DROPPED);
    Update::none().messages(message).into()
}
