//! What of a run a subagent gets to use.
//!
//! Invariant: those of one answer together leave a tenth of what was left for whoever sent them.

use hart_kernel::{Limits, State};

use super::{Kind, TASK};

/// What is kept back for the agent that has to make something of the reports.
const KEPT_BACK: f64 = 0.1;

/// A slice of what is left, never more than the kind may have.
pub(super) fn limits(kind: &Kind, max_turns: Option<u32>, left: &Limits, state: &State) -> Limits {
    let share = (1.0 - KEPT_BACK) / f64::from(side_by_side(state));
    let part = |left: Option<u64>| left.map(|left| (left as f64 * share) as u64);
    let turns = u64::from(max_turns.map_or(kind.max_turns, |turns| turns.clamp(1, kind.max_turns)));
    let least = |own: Option<u64>, left: Option<u64>| match (own, left) {
        (Some(own), Some(left)) => Some(own.min(left)),
        (own, left) => own.or(left),
    };
    let seconds = kind.timeout.as_secs_f64();
    Limits {
        tokens: least(kind.max_tokens, part(left.tokens)),
        input_tokens: part(left.input_tokens),
        output_tokens: part(left.output_tokens),
        cost: left.cost.map(|left| left * share),
        model_calls: least(Some(turns), part(left.model_calls)),
        tool_calls: part(left.tool_calls),
        // Time passes for all of them at once.
        seconds: Some(left.seconds.map_or(seconds, |left| seconds.min(left * (1.0 - KEPT_BACK)))),
        ..Limits::default()
    }
}

/// How many delegations the answer has that this one is of.
fn side_by_side(state: &State) -> u32 {
    let answer = state.messages().iter().rev().find(|message| message.as_ai().is_some());
    let tasks =
        answer.map_or(0, |answer| answer.tool_calls().iter().filter(|call| call.name == TASK).count());
    u32::try_from(tasks).unwrap_or(u32::MAX).max(1)
}
