//! What all subagents of a run may use together, so that a small task with many helpers stays a small task.
//!
//! Invariant: what one uses is gone for the others, whether they work at once, one after the other, or after a pause.

use std::sync::OnceLock;

use hart_kernel::{Budget, Limits, RunContext, State};

use super::ledger::{Turn, answer_in};
use super::share;

/// Fewer tokens than these are not worth sending anybody for: a first question takes more.
const FEWEST: u64 = 2000;

/// One run's.
#[derive(Default)]
pub(crate) struct Pool(OnceLock<Budget>);

/// The pool as one delegation finds it.
pub(super) struct Drawn {
    limit: Option<u64>,
    pool: Budget,
    /// What one of an answer may use at most.
    pub(super) share: Option<u64>,
    /// What is charged here was used by this one alone, since it was entered.
    pub(super) own: Budget,
}

impl Pool {
    /// For one that is about to be sent. `limit` is what the run's subagents may use in all; the state says what they had
    /// used before this process had the run.
    pub(super) fn draw(&self, cx: &RunContext, state: &State, limit: Option<u64>) -> Drawn {
        let (before, of_answer) =
            state.get::<Turn>().map_or((0, 0), |turn| turn.tokens(answer_in(state).as_ref()));
        let left = |spent: u64| limit.map(|limit| limit.saturating_sub(spent));
        let whole = || cx.budget.part(&Limits { tokens: left(before + of_answer), ..Limits::default() });
        let pool = self.0.get_or_init(whole).clone();
        // By what there was when the answer was given: those that wait for their turn, or for a person, have as much.
        let share = left(before).map(|left| left / u64::from(share::side_by_side(state)));
        Drawn { limit, own: pool.part(&Limits::default()), pool, share }
    }
}

impl Drawn {
    /// Why nobody can be sent any more.
    pub(super) fn spent(&self) -> Option<String> {
        let is_left = |left: Option<u64>| left.is_none_or(|left| left >= FEWEST);
        let left = self.pool.limits().tokens.map(|limit| limit.saturating_sub(self.pool.used().tokens));
        if is_left(left) && is_left(self.share) {
            return None;
        }
        let limit = self.limit.unwrap_or_default();
        Some(format!("the subagents of a run may use {limit} tokens together, and these are used up"))
    }

    /// What this one has used since it was entered.
    pub(super) fn used(&self) -> u64 {
        self.own.used().tokens
    }
}
