//! When a conversation is too long, and how much of it may stay.
//!
//! Invariant: room for the answer is taken off before anything is compared, and no setting lets a conversation grow
//! beyond what its model takes.

use hart_kernel::{ChatModel, MessageList, ModelProfile, ModelSettings};
use hart_types::Message;

use super::config::{Clause, Size, SummarizationConfig};

/// Where a conversation is compacted: this part of the window …
const HEADROOM: f64 = 0.80;
/// … and never beyond this part less the answer: our count is an estimate.
const USABLE: f64 = 0.95;
/// Less than this is not worth working with, unless the window itself is that small.
const FLOOR: u64 = 8_000;
const KEPT: f64 = 0.10;
/// Where the window is not known: DeepAgents' figures.
const UNKNOWN_LIMIT: u64 = 170_000;
const UNKNOWN_KEPT: usize = 6;
/// A compaction that ends just below the limit would be due again at once.
const GOAL: f64 = 0.6;

/// What one model call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget<'a> {
    config: &'a SummarizationConfig,
    window: Option<u64>,
    /// For the answer.
    reserve: u64,
    /// What the provider was found not to take, in our count.
    ceiling: Option<u64>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(
        config: &'a SummarizationConfig,
        profile: &ModelProfile,
        settings: &ModelSettings,
        ceiling: Option<u64>,
    ) -> Self {
        let reserve = settings.max_tokens.or(profile.max_output_tokens).unwrap_or_default();
        Self { config, window: profile.context_window.map(u64::from), reserve: reserve.into(), ceiling }
    }

    /// Whether a conversation of this size must be compacted before it is sent.
    pub(crate) fn is_due(&self, tokens: u64, messages: usize) -> bool {
        let all = |clause: &Clause| {
            clause.tokens.is_none_or(|limit| tokens >= limit)
                && clause.messages.is_none_or(|limit| messages >= limit)
                && clause.fraction.is_none_or(|part| self.part(part).is_some_and(|limit| tokens >= limit))
        };
        tokens >= self.most() || self.config.trigger.0.iter().any(all)
    }

    /// What a compaction should get under.
    pub(crate) fn goal(&self) -> u64 {
        let clauses = self.config.trigger.0.iter();
        let limits = clauses.filter_map(|clause| clause.tokens.or_else(|| self.part(clause.fraction?)));
        let least = limits.chain([self.most()]).min().filter(|limit| *limit < u64::MAX);
        portion(least.unwrap_or(UNKNOWN_LIMIT), GOAL)
    }

    /// How much of the end stays as it is.
    pub(crate) fn keep(&self, asked: Option<Size>) -> Size {
        let unknown = Size::Messages(UNKNOWN_KEPT);
        match asked.or(self.config.keep) {
            Some(Size::Fraction(part)) => self.part(part).map_or(unknown, Size::Tokens),
            Some(size) => size,
            None => self.part(KEPT).map_or(unknown, Size::Tokens),
        }
    }

    /// Beyond this it is compacted whatever the configuration says.
    fn most(&self) -> u64 {
        let known = self.window.map(|window| {
            let usable = portion(window, USABLE).saturating_sub(self.reserve);
            // With triggers of the operator's own, only the window itself is the limit.
            let limit =
                if self.config.trigger.0.is_empty() { usable.min(portion(window, HEADROOM)) } else { usable };
            limit.max(FLOOR.min(window / 2))
        });
        // Where the window is not known, the operator's own triggers stand alone.
        let unknown = if self.config.trigger.0.is_empty() { UNKNOWN_LIMIT } else { u64::MAX };
        known.unwrap_or(unknown).min(self.ceiling.unwrap_or(u64::MAX))
    }

    fn part(&self, fraction: f64) -> Option<u64> {
        self.window.map(|window| portion(window, fraction))
    }
}

/// What the provider counted for the newest answer, and our count of what came after it. `None` if there is no count
/// of a conversation as it is shown now: `since` is the newest message when that was last changed.
pub(crate) fn reported(model: &dyn ChatModel, messages: &MessageList, since: Option<usize>) -> Option<u64> {
    let mut after = 0;
    for (back, message) in messages.iter().rev().enumerate() {
        let at = messages.len() - 1 - back;
        if since.is_some_and(|since| at <= since) {
            return None;
        }
        match message.as_ai() {
            Some(ai) => {
                let counted = ai.usage.as_ref()?.total_tokens;
                return (counted > 0).then_some(counted + after);
            }
            None => after += count(model, message),
        }
    }
    None
}

/// One message, about.
pub(super) fn count(model: &dyn ChatModel, message: &Message) -> u64 {
    let calls = message.tool_calls().iter();
    let args = calls.map(|call| serde_json::to_string(&call.args).map_or(0, |args| model.count_text(&args)));
    model.count_text(&message.text()) + args.sum::<u64>() + 4
}

fn portion(of: u64, part: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a count is a count"
    )]
    let portion = (of as f64 * part) as u64;
    portion
}
