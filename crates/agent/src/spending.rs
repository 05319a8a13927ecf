//! A run's budget in words and numbers: what the next call may take, what to ask when it does not fit.
//!
//! Invariant: a call is planned for its worst case; where that does not fit it is made shorter, or not made.

use std::time::Duration;

use hart_kernel::{
    Amount, Budget, ChatModel, ChatRequest, Exhausted, Limits, MessageList, Price, ReduceError, Reservation,
    Resource, Scope, StateKey, Used,
};
use hart_types::RunId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a run may use. The first five names are DeerFlow's (`token_budget`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Whether the limits below hold; those a run is given hold anyway.
    pub enabled: bool,
    pub max_tokens: Option<u64>,
    pub max_input_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// The part of a limit at which the model is told, once.
    pub warn_threshold: f64,
    /// The part of a limit at which the run is held.
    pub hard_stop_threshold: f64,
    /// In the currency of the models' prices.
    pub max_cost: Option<f64>,
    pub max_model_calls: Option<u64>,
    pub max_tool_calls: Option<u64>,
    pub max_seconds: Option<f64>,
    pub on_limit: OnLimit,
}

/// What happens at a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLimit {
    /// The run pauses and asks whether it may go on.
    #[default]
    Pause,
    /// Nobody is there to ask: the last call that fits is made for a final answer.
    End,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            max_tokens: Some(200_000),
            max_input_tokens: None,
            max_output_tokens: None,
            warn_threshold: 0.8,
            hard_stop_threshold: 1.0,
            max_cost: None,
            max_model_calls: None,
            max_tool_calls: None,
            max_seconds: None,
            on_limit: OnLimit::Pause,
        }
    }
}

impl BudgetConfig {
    pub(crate) fn limits(&self) -> Limits {
        if !self.enabled {
            return Limits::default();
        }
        let part = |limit: Option<u64>| limit.map(|limit| (limit as f64 * self.hard_stop_threshold) as u64);
        Limits {
            tokens: part(self.max_tokens),
            input_tokens: part(self.max_input_tokens),
            output_tokens: part(self.max_output_tokens),
            cost: self.max_cost.map(|cost| cost * self.hard_stop_threshold),
            model_calls: self.max_model_calls,
            tool_calls: self.max_tool_calls,
            seconds: self.max_seconds,
            ..Limits::default()
        }
    }
}

/// What a run has used and been granted so far; it goes on from here when it is resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// The run that began; a resumed one goes by another id.
    pub(crate) run: Option<RunId>,
    pub(crate) used: Used,
    /// How much of it there was when it last paused: so much has whoever sent it counted.
    #[serde(default)]
    pub(crate) counted: Used,
    pub(crate) granted: Limits,
    /// How often it asked.
    pub(crate) asked: u32,
    pub(crate) warned: bool,
}

pub(crate) struct Spending;

impl StateKey for Spending {
    type Value = Ledger;
    type Update = Ledger;
    const NAME: &'static str = "__spending__";
    const SCOPE: Scope = Scope::Private;

    fn reduce(_: Option<Ledger>, update: Ledger) -> Result<Ledger, ReduceError> {
        Ok(update)
    }
}

/// What an answer takes at least to be worth asking for.
const LEAST_OUTPUT: u64 = 256;
/// What an answer is taken to need where nobody limits it.
const USUAL_OUTPUT: u64 = 4096;
/// What is kept for a final answer.
const FINAL_OUTPUT: u64 = 1024;

/// How the next model call fits.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) reserved: Reservation,
    pub(crate) input_tokens: u64,
    /// Shorter than the request asks for, because no more is left.
    pub(crate) max_tokens: Option<u32>,
    /// Whether it has to be the run's final answer.
    pub(crate) is_last: bool,
}

/// Sets aside what a call with that much input may take. `longest` is how long calls have taken. Where the run is to
/// end with an answer (`keeps_last`), enough is left for it.
pub(crate) fn plan(
    budget: &Budget,
    model: &dyn ChatModel,
    request: &ChatRequest,
    input_tokens: u64,
    longest: Duration,
    keeps_last: bool,
) -> Result<Plan, Exhausted> {
    let (left, profile) = (budget.remaining(), model.profile());
    if let Some(exhausted) = out_of_time(budget, &left, longest) {
        return Err(exhausted);
    }
    let cost = |output: u64| profile.price.map_or(0, |price| price.of(input_tokens, 0, output));
    let asked = request.settings.max_tokens.or(profile.max_output_tokens).map(u64::from);
    let wanted = asked.unwrap_or(USUAL_OUTPUT);
    let call = |output_tokens| Amount {
        input_tokens,
        output_tokens,
        cost: cost(output_tokens),
        model_calls: 1,
        ..Amount::default()
    };
    // The last call reads what this one says.
    let last = call(LEAST_OUTPUT);
    let last = Amount { input_tokens: input_tokens.saturating_add(FINAL_OUTPUT), ..last };
    let (room, room_before_last) =
        (room(&left, call(0), profile.price), room(&less(&left, last), call(0), profile.price));
    let another = room_before_last.is_some_and(|room| room >= FINAL_OUTPUT.min(wanted))
        && out_of_time(budget, &left, longest.saturating_mul(2)).is_none();
    let room = if keeps_last && another { room_before_last } else { room };
    let output_tokens = wanted.min(room.unwrap_or_default().max(LEAST_OUTPUT.min(wanted)));
    let reserved = budget.reserve(call(output_tokens))?;
    let max_tokens = (output_tokens < wanted).then(|| u32::try_from(output_tokens).unwrap_or(u32::MAX));
    Ok(Plan { reserved, input_tokens, max_tokens, is_last: keeps_last && !another })
}

/// How long an answer to such a call can be; nothing where the call alone does not fit.
fn room(left: &Limits, call: Amount, price: Option<Price>) -> Option<u64> {
    let fits = |left: Option<u64>, wanted: u64| left.is_none_or(|left| left >= wanted);
    if !fits(left.model_calls, call.model_calls) || !fits(left.input_tokens, call.input_tokens) {
        return None;
    }
    let mut room = u64::MAX;
    if let Some(tokens) = left.tokens {
        room = room.min(tokens.checked_sub(call.input_tokens)?);
    }
    if let Some(output) = left.output_tokens {
        room = room.min(output);
    }
    if let (Some(money), Some(price)) = (left.cost, price.filter(|price| price.output > 0.0)) {
        let affordable = (money * 1e6 - call.cost as f64) / price.output;
        room = room.min(affordable.max(0.0) as u64);
    }
    Some(room)
}

/// What would be left after a call.
fn less(left: &Limits, call: Amount) -> Limits {
    let minus = |left: Option<u64>, amount: u64| left.map(|left| left.saturating_sub(amount));
    Limits {
        tokens: minus(left.tokens, call.input_tokens.saturating_add(call.output_tokens)),
        input_tokens: minus(left.input_tokens, call.input_tokens),
        output_tokens: minus(left.output_tokens, call.output_tokens),
        cost: left.cost.map(|left| (left - call.cost as f64 / 1e6).max(0.0)),
        model_calls: minus(left.model_calls, call.model_calls),
        ..*left
    }
}

/// The time is over before it is over: a call that would not be finished is not begun.
fn out_of_time(budget: &Budget, left: &Limits, needed: Duration) -> Option<Exhausted> {
    let seconds = left.seconds?;
    let limit = budget.limits().seconds.unwrap_or(seconds);
    let millis = |seconds: f64| (seconds * 1000.0) as u64;
    (seconds <= needed.as_secs_f64()).then(|| Exhausted {
        resource: Resource::WallClock,
        used: millis(budget.used().seconds),
        limit: millis(limit),
        wanted: millis(needed.as_secs_f64()),
    })
}

/// The request that was counted last, so that only what is new is counted again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    messages: MessageList,
    tokens: u64,
}

impl Counted {
    /// About what the request takes, without walking what was walked before.
    pub(crate) fn count(&mut self, model: &dyn ChatModel, request: &ChatRequest) -> u64 {
        let common = self.messages.common_prefix(&request.messages);
        let known = !self.messages.is_empty() && common == self.messages.len();
        let tokens = if known {
            let new: MessageList = request.messages.iter_from(common).cloned().collect();
            let tail = ChatRequest { messages: new, system: None, tools: [].into(), ..request.clone() };
            self.tokens + model.count_request(&tail)
        } else {
            model.count_request(request)
        };
        *self = Self { messages: request.messages.clone(), tokens };
        tokens
    }

    /// The provider knows better.
    pub(crate) fn correct(&mut self, tokens: u64) {
        self.tokens = tokens;
    }
}

/// What the model is told when most of it is gone; nothing where there is still enough.
pub(crate) fn warning(budget: &Budget, threshold: f64) -> Option<String> {
    let (used, limits) = (to_map(&budget.used()), to_map(&budget.limits()));
    let near = limits.iter().filter_map(|(name, limit)| {
        let (used, limit) = (used.get(name)?.as_f64()?, limit.as_f64()?);
        (used >= limit * threshold)
            .then(|| format!("{} of {} {}", number(used), number(limit), name.replace('_', " ")))
    });
    let near: Vec<String> = near.collect();
    (!near.is_empty()).then(|| {
        format!(
            "[BUDGET] Most of what this run may use is gone: {}. Finish the most important part now, and answer with \
             what you have before it runs out.",
            near.join(", ")
        )
    })
}

/// The question a run pauses with.
pub(crate) fn question(budget: &Budget, exhausted: &Exhausted, problem: Option<&str>) -> Value {
    let name = exhausted.resource.name();
    let more = match to_map(&budget.limits()).get(name) {
        Some(limit) => limit.clone(),
        None => 1000.into(),
    };
    let mut value = json!({
        "type": "budget",
        "resource": name,
        "message": format!("The run has reached its budget: {exhausted}. Extend it, or stop here."),
        "used": budget.used(),
        "limits": budget.limits(),
        "answers": [{"extend": {name: more}}, "stop"],
    });
    if let (Some(problem), Value::Object(map)) = (problem, &mut value) {
        map.insert("problem".to_owned(), problem.into());
    }
    value
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answered {
    Extend(Limits),
    Stop,
    /// With what is wrong with it.
    Unclear(String),
}

impl Answered {
    pub(crate) fn from_json(answer: &Value) -> Self {
        match answer {
            Value::String(word) if word.eq_ignore_ascii_case("stop") => Self::Stop,
            Value::Object(map) => match map.get("extend") {
                Some(more) => match serde_json::from_value::<Limits>(more.clone()) {
                    Ok(more) if more != Limits::default() => Self::Extend(more),
                    Ok(_) => Self::Unclear("`extend` is empty; say by how much".to_owned()),
                    Err(error) => Self::Unclear(format!("`extend` cannot be read: {error}")),
                },
                None if map.contains_key("stop") => Self::Stop,
                None => Self::Unclear("neither `extend` nor `stop` is in the answer".to_owned()),
            },
            other => Self::Unclear(format!("`{other}` is neither {{\"extend\": {{…}}}} nor \"stop\"")),
        }
    }
}

fn to_map(value: &impl Serialize) -> serde_json::Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}

/// Without decimals where there are none.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
#[path = "spending_tests.rs"]
mod tests;
