//! What of a run a subagent gets to use.
//!
//! Invariant: those of one answer together leave a tenth of what was left for whoever sent them.

use hart_kernel::{Limits, State};

use super::{Kind, TASK};

/// What is kept back for the agent that has to make something of the reports.
const KEPT_BACK: f64 = 0.1;

/// What one of this kind may use in all. `of_pool` is its part of what subagents have together.
pub(super) fn in_all(kind: &Kind, max_turns: Option<u32>, of_pool: Option<u64>) -> Limits {
    let turns = max_turns.map_or(kind.max_turns, |turns| turns.clamp(1, kind.max_turns));
    Limits {
        tokens: [kind.max_tokens, of_pool].into_iter().flatten().min(),
        model_calls: Some(turns.into()),
        seconds: Some(kind.timeout.as_secs_f64()),
        ..Limits::default()
    }
}

/// What one may use from now on, where the run has so much left.
pub(super) fn of_what_is_left(left: &Limits, state: &State) -> Limits {
    let kept = 1.0 - KEPT_BACK;
    let share = kept / f64::from(side_by_side(state));
    let part = |left: Option<u64>| left.map(|left| (left as f64 * share) as u64);
    Limits {
        tokens: part(left.tokens),
        input_tokens: part(left.input_tokens),
        output_tokens: part(left.output_tokens),
        cost: left.cost.map(|left| left * share),
        model_calls: part(left.model_calls),
        tool_calls: part(left.tool_calls),
        // Time passes for all of them at once.
        seconds: left.seconds.map(|left| left * kept),
        ..Limits::default()
    }
}

/// How many delegations the answer has that this one is of.
pub(super) fn side_by_side(state: &State) -> u32 {
    let answer = state.messages().iter().rev().find(|message| message.as_ai().is_some());
    let tasks =
        answer.map_or(0, |answer| answer.tool_calls().iter().filter(|call| call.name == TASK).count());
    u32::try_from(tasks).unwrap_or(u32::MAX).max(1)
}
