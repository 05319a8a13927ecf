//! Keeps a run within what it may use.
//!
//! Invariant: a model call is made only when its worst case fits, and what was used survives a pause.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hart_kernel::{
    Amount, Command, Exhausted, HookError, HookResult, Interrupt, Middleware, ModelNext, ModelRequest,
    ModelResponse, Resource, RunContext, Schema, State, StateError, ToolNext, ToolOutcome, ToolRequest,
    Update, async_trait,
};
use hart_types::{Message, ToolStatus};
use serde_json::json;
use tokio::time::Instant;

use crate::answer::{hidden, last_word, set_stop_reason};
use crate::spending::{
    Answered, BudgetConfig, Counted, Ledger, OnLimit, Plan, Spending, plan, question, warning,
};

/// Holds a run at its limits: tokens, money, model calls, tool calls, time.
///
/// Limits come with the run (`RunContext::budget`) or from the settings; there are none by default. Before a model
/// call its worst case is set aside (the request as counted, plus the longest answer), afterwards what the provider
/// counted is charged. An answer that would not fit is asked for shorter. When four fifths of a limit are used the
/// model is told once, in a note that begins with `[BUDGET]`.
///
/// At a limit the run pauses with a question whose value has `type: "budget"`, `used`, `limits` and the answers it
/// takes: `{"extend": {"tokens": 50000}}` goes on, `"stop"` ends the run with an answer whose
/// `additional_kwargs.stop_reason` is `token_capped`. With `on_limit: end` the last call that fits is made without
/// tools, for a final answer. Tool calls beyond their limit are answered with an error.
///
/// Time is kept by the kernel as well: what hangs is ended when it is over.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    config: BudgetConfig,
}

impl Budget {
    pub fn new(config: BudgetConfig) -> Self {
        Self { config }
    }

    /// The next call's plan, or why there is no next call. Where it does not fit, a person is asked for more.
    fn plan(&self, cx: &RunContext, request: &ModelRequest) -> Result<Result<Plan, Exhausted>, HookError> {
        let account = cx.scratch.get_or_default::<Account>();
        let (refused, answer) = account.before_asking();
        let ends = self.config.on_limit == OnLimit::End || answer == Some(Answered::Stop);
        let planned = match (account.plan(cx, request, ends), refused) {
            (Ok(plan), 0) => return Ok(Ok(plan)),
            // There is no tool call left, but a final answer is.
            (Ok(plan), _) if ends => return Ok(Ok(Plan { is_last: true, ..plan })),
            (Ok(_), _) => no_tool_calls_left(cx),
            (Err(exhausted), _) => exhausted,
        };
        if ends {
            return Ok(Err(planned));
        }
        let problem = match &answer {
            Some(Answered::Unclear(why)) => Some(why.as_str()),
            _ => None,
        };
        let mut asked = Interrupt::new(&account.subject(cx), question(&cx.budget, &planned, problem));
        asked.response_schema = Some(answer_schema());
        // Answers are taken when the run is resumed; this question is a new one.
        cx.interrupt(asked).map(|_| Err(planned))
    }

    /// Unless the model has been told before.
    fn warning(&self, cx: &RunContext) -> Option<Message> {
        if cx.scratch.get_or_default::<Account>().held().ledger.warned {
            return None;
        }
        warning(&cx.budget, self.config.warn_threshold).map(|text| hidden(&text))
    }
}

#[async_trait]
impl Middleware for Budget {
    fn declare(&self, schema: &mut Schema) -> Result<(), StateError> {
        schema.declare::<Spending>()?;
        Ok(())
    }

    async fn before_agent(&self, cx: &RunContext, state: &State) -> HookResult {
        cx.budget.tighten(&self.config.limits());
        let account = cx.scratch.get_or_default::<Account>();
        match state.get::<Spending>() {
            // The same task goes on: after a question, or after a crash.
            Some(ledger) if cx.is_resuming() || ledger.run.as_ref() == Some(&cx.run_id) => {
                account.held().ledger = ledger.clone();
                account.take_answer(cx);
                // First what was granted, then what was used: in between there must be time left.
                cx.budget.extend(&account.held().ledger.granted);
                cx.budget.carry(&ledger.used, &ledger.counted);
            }
            _ => account.held().ledger.run = Some(cx.run_id.clone()),
        }
        Ok(Command::none())
    }

    async fn wrap_model_call(
        &self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        if cx.budget.is_unlimited() {
            let model = request.model.clone();
            let response = next.run(request).await?;
            cx.budget.charge(Amount::of_answer(model.as_ref(), &response.message, 0));
            return Ok(response);
        }
        // Of what was used, not of what is about to be set aside.
        let warning = self.warning(cx);
        let plan = match self.plan(cx, &request)? {
            Ok(plan) => plan,
            Err(exhausted) => return Ok(stopped(cx, &exhausted)),
        };
        let account = cx.scratch.get_or_default::<Account>();
        if let Some(max_tokens) = plan.max_tokens {
            request.chat.settings.max_tokens = Some(max_tokens);
        }
        if let Some(warning) = warning {
            request.chat.messages.push(warning.into());
            account.held().ledger.warned = true;
        }
        let (model, began) = (request.model.clone(), Instant::now());
        let answered = if plan.is_last {
            let remark = "[BUDGET] The run has used what it may use and was ended here.";
            last_word(request, next, LAST_CALL, "token_capped", remark).await
        } else {
            next.run(request).await
        };
        match answered {
            Ok(mut response) => {
                let took = Amount::of_answer(model.as_ref(), &response.message, plan.input_tokens);
                plan.reserved.settle(took);
                account.learn(took, began.elapsed());
                response.update.extend(Update::none().set::<Spending>(account.ledger(cx)));
                Ok(response)
            }
            Err(error) => {
                // What had been said when it broke off is paid for; a request that was refused is not.
                let partial = match &error {
                    HookError::Model(error) => error.partial.as_deref(),
                    _ => None,
                };
                let took =
                    partial.map(|partial| Amount::of_answer(model.as_ref(), partial, plan.input_tokens));
                plan.reserved.settle(took.unwrap_or(Amount { model_calls: 1, ..Amount::default() }));
                Err(error)
            }
        }
    }

    async fn wrap_tool_call(
        &self,
        cx: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        let one = Amount { tool_calls: 1, ..Amount::default() };
        match cx.budget.reserve(one) {
            Ok(reserved) => {
                let outcome = next.run(request).await?;
                reserved.settle(one);
                Ok(outcome)
            }
            Err(exhausted) => {
                cx.scratch.get_or_default::<Account>().held().refused += 1;
                let text = format!("Error: nothing was run: {exhausted}. Answer with what you have.");
                let id = request.call.id.clone().unwrap_or_else(|| "".into());
                let message = Message::tool(&id, &request.call.name, ToolStatus::Error, text);
                Ok(ToolOutcome { message, command: Command::none() })
            }
        }
    }

    async fn after_agent(&self, cx: &RunContext, _state: &State) -> HookResult {
        if cx.budget.is_unlimited() || !cx.is_paused() {
            return Ok(Command::none());
        }
        // Tools, time and answers since the last model call.
        let account = cx.scratch.get_or_default::<Account>();
        let ledger = account.ledger(cx);
        Ok(Update::none().set::<Spending>(Ledger { counted: ledger.used, ..ledger }).into())
    }
}

const LAST_CALL: &str = "[BUDGET] This is the last call this run may make, and you cannot call tools any more. Write \
    your final answer now: what you found out, and what is missing.";

/// A run's own books, between two writes to the log.
#[derive(Default)]
struct Account(
    /// Never held across an await.
    Mutex<Held>,
);

#[derive(Default)]
struct Held {
    ledger: Ledger,
    counted: Counted,
    longest: Duration,
    /// Tool calls that did not fit.
    refused: u64,
    /// What a person said to the question the run paused with.
    answer: Option<Answered>,
}

impl Account {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer a resumed run was given, if the question was of the budget.
    fn take_answer(&self, cx: &RunContext) {
        let Ok(answer) = cx.interrupt(Interrupt::new(&self.subject(cx), json!(null))) else { return };
        let mut held = self.held();
        held.ledger.asked += 1;
        let answer = Answered::from_json(&answer);
        if let Answered::Extend(more) = &answer {
            held.ledger.granted = held.ledger.granted.plus(more);
        }
        held.answer = Some(answer);
    }

    fn before_asking(&self) -> (u64, Option<Answered>) {
        let held = self.held();
        (held.refused, held.answer.clone())
    }

    fn plan(&self, cx: &RunContext, request: &ModelRequest, ends: bool) -> Result<Plan, Exhausted> {
        let mut held = self.held();
        let longest = held.longest;
        let input = held.counted.count(request.model.as_ref(), &request.chat);
        plan(&cx.budget, request.model.as_ref(), &request.chat, input, longest, ends)
    }

    fn learn(&self, took: Amount, time: Duration) {
        let mut held = self.held();
        held.counted.correct(took.input_tokens);
        held.longest = held.longest.max(time);
    }

    fn ledger(&self, cx: &RunContext) -> Ledger {
        let mut held = self.held();
        held.ledger.used = cx.budget.used();
        held.ledger.clone()
    }

    /// Another one for each time it asks.
    fn subject(&self, cx: &RunContext) -> String {
        let held = self.held();
        let run = held.ledger.run.as_ref().unwrap_or(&cx.run_id);
        format!("budget:{run}:{}", held.ledger.asked)
    }
}

fn no_tool_calls_left(cx: &RunContext) -> Exhausted {
    let (used, limit) = (cx.budget.used().tool_calls, cx.budget.limits().tool_calls.unwrap_or_default());
    Exhausted { resource: Resource::ToolCalls, used, limit, wanted: 1 }
}

/// The end of a run that may not ask its model any more.
fn stopped(cx: &RunContext, exhausted: &Exhausted) -> ModelResponse {
    let text = format!(
        "[BUDGET] The run was ended at its budget: {exhausted}. What was done so far is kept; send a message to go on."
    );
    let mut message = Message::ai(text);
    set_stop_reason(&mut message, "token_capped");
    let account = cx.scratch.get_or_default::<Account>();
    ModelResponse { message, update: Update::none().set::<Spending>(account.ledger(cx)) }
}

fn answer_schema() -> serde_json::Value {
    json!({"anyOf": [
        {"type": "object", "properties": {"extend": {"type": "object"}}, "required": ["extend"]},
        {"const": "stop"},
    ]})
}
