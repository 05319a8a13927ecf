//! Model calls that a middleware makes on its own: for a title, a summary, a judgement.
//!
//! Invariant: such a call is charged to the run like any other, and is not made where it does not fit.

use std::sync::{Arc, Mutex, PoisonError};

use hart_types::{Message, UsageMetadata};

use crate::model::whole;
use crate::{
    AgentEvent, Amount, Asker, ChatModel, ChatRequest, Exhausted, ModelError, Reservation, RunContext,
};

/// One that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct SideCall {
    /// Who asked: the request's `caller`.
    pub caller: Arc<str>,
    /// The model's configured name.
    pub model: String,
    /// As the provider counted it.
    pub usage: UsageMetadata,
    /// In the currency of the model's price, if it has one.
    pub cost: Option<f64>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SideCallError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the run has no room left for it: {0}")]
    Exhausted(#[from] Exhausted),
}

/// Asks a model on the run's account and waits for the whole answer. The request's `caller` says who asks: recordings are
/// keyed by it, and the run's totals name it.
///
/// ```
/// use hart_kernel::{
///     ChatModel, ChatRequest, Command, HookError, Middleware, ModelSettings, RunContext, State, async_trait, side_call,
/// };
/// use std::sync::Arc;
///
/// struct Judge(Arc<dyn ChatModel>);
///
/// #[async_trait]
/// impl Middleware for Judge {
///     async fn after_agent(&self, cx: &RunContext, state: &State) -> Result<Command, HookError> {
///         let request = ChatRequest {
///             caller: "judge".into(),
///             system: Some("Was the user helped? Answer with one word.".into()),
///             messages: state.messages().clone(),
///             tools: Arc::new([]),
///             settings: ModelSettings::default(),
///         };
///         match side_call(cx, self.0.as_ref(), request).await {
///             Ok(verdict) => println!("{}", verdict.text()),
///             Err(error) => eprintln!("no verdict: {error}"),
///         }
///         Ok(Command::none())
///     }
/// }
/// ```
pub async fn side_call(
    cx: &RunContext,
    model: &dyn ChatModel,
    request: ChatRequest,
) -> Result<Message, SideCallError> {
    let caller = Arc::clone(&request.caller);
    // Nobody asks what it may take where there is no limit.
    let input_tokens = if cx.budget.is_unlimited() { 0 } else { model.count_request(&request) };
    let reserved = cx.budget.reserve(worst(model, &request, input_tokens))?;
    let answered = match cx.ask(Asker::Side, model, request).await {
        Ok(stream) => whole(stream, model).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok(answer) => {
            let took = Amount::of_answer(model, &answer, input_tokens);
            reserved.settle(took);
            tell(cx, caller, model, &answer, took).await;
            Ok(answer)
        }
        Err(error) => {
            failed(reserved, model, &error, input_tokens);
            Err(error.into())
        }
    }
}

/// Those of one run that nobody has added up yet.
#[derive(Debug, Default)]
pub(crate) struct SideCalls(
    /// Never held across an await.
    Mutex<Vec<SideCall>>,
);

impl RunContext {
    /// The side calls since this was last asked, for whoever adds up what a run took.
    pub fn take_side_calls(&self) -> Vec<SideCall> {
        let calls = self.scratch.get_or_default::<SideCalls>();
        let mut calls = calls.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *calls)
    }
}

/// What such answers take at most, unless the request says otherwise: they are short, whatever the model could write.
const LONGEST: u64 = 4096;

fn worst(model: &dyn ChatModel, request: &ChatRequest, input_tokens: u64) -> Amount {
    let profile = model.profile();
    let most = profile.max_output_tokens.map_or(LONGEST, |most| u64::from(most).min(LONGEST));
    let output_tokens = request.settings.max_tokens.map_or(most, u64::from);
    let cost = profile.price.map_or(0, |price| price.of(input_tokens, 0, output_tokens));
    Amount { input_tokens, output_tokens, cost, model_calls: 1, ..Amount::default() }
}

/// What had been said when it broke off is paid for; a request that was refused is not.
fn failed(reserved: Reservation, model: &dyn ChatModel, error: &ModelError, input_tokens: u64) {
    let partial = error.partial.as_deref();
    let took = partial.map(|partial| Amount::of_answer(model, partial, input_tokens));
    reserved.settle(took.unwrap_or(Amount { model_calls: 1, ..Amount::default() }));
}

async fn tell(cx: &RunContext, caller: Arc<str>, model: &dyn ChatModel, answer: &Message, took: Amount) {
    let Some(usage) = answer.as_ai().and_then(|ai| ai.usage.clone()) else { return };
    let profile = model.profile();
    let cost = profile.price.map(|_| took.cost as f64 / 1e6);
    let call = SideCall { caller, model: profile.name.clone(), usage, cost };
    let calls = cx.scratch.get_or_default::<SideCalls>();
    calls.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
    cx.emit(AgentEvent::SideCall(Arc::new(call))).await;
}
