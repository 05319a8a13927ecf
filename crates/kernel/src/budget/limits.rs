//! Limits, amounts and what was used, as a configuration, a client and a log spell them.
//!
//! Invariant: an absent limit is no limit; money is counted in millionths, so that adding up loses nothing.

use std::time::Duration;

use hart_types::{Message, UsageMetadata};
use serde::{Deserialize, Serialize};

use super::METERED;
use crate::{ChatModel, Price};

/// How much at most; what is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// In the currency of the models' prices. A model without a price costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// How many children a run may have in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<u64>,
    /// How deep children may have children: 1 is children, but no grandchildren.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// Of wall clock, pauses left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// What one step takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of the currency.
    pub cost: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub children: u64,
}

/// What a run has used, in the words of [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    pub tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: f64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub children: u64,
    pub seconds: f64,
}

const MILLION: f64 = 1e6;

impl Limits {
    pub(super) fn new(
        metered: [Option<u64>; METERED.len()],
        depth: Option<u64>,
        time: Option<Duration>,
    ) -> Self {
        let [tokens, input_tokens, output_tokens, cost, model_calls, tool_calls, children] = metered;
        Self {
            tokens,
            input_tokens,
            output_tokens,
            cost: cost.map(|millionths| millionths as f64 / MILLION),
            model_calls,
            tool_calls,
            children,
            depth,
            seconds: time.map(|time| time.as_secs_f64()),
        }
    }

    /// The meters, the depth, then the time in milliseconds.
    pub(super) fn in_order(&self) -> [Option<u64>; METERED.len() + 2] {
        [
            self.tokens,
            self.input_tokens,
            self.output_tokens,
            self.cost.map(|cost| whole(cost * MILLION)),
            self.model_calls,
            self.tool_calls,
            self.children,
            self.depth,
            self.seconds.map(|seconds| whole(seconds * 1000.0)),
        ]
    }

    /// Both together, where either has something.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let real = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        Self {
            tokens: sum(self.tokens, more.tokens),
            input_tokens: sum(self.input_tokens, more.input_tokens),
            output_tokens: sum(self.output_tokens, more.output_tokens),
            cost: real(self.cost, more.cost),
            model_calls: sum(self.model_calls, more.model_calls),
            tool_calls: sum(self.tool_calls, more.tool_calls),
            children: sum(self.children, more.children),
            depth: sum(self.depth, more.depth),
            seconds: real(self.seconds, more.seconds),
        }
    }
}

impl Amount {
    pub(super) fn metered(&self) -> [u64; METERED.len()] {
        let Self { input_tokens, output_tokens, cost, model_calls, tool_calls, children } = *self;
        let tokens = input_tokens.saturating_add(output_tokens);
        [tokens, input_tokens, output_tokens, cost, model_calls, tool_calls, children]
    }

    /// What is more than that.
    pub(super) fn less(self, that: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(that.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(that.output_tokens),
            cost: self.cost.saturating_sub(that.cost),
            model_calls: self.model_calls.saturating_sub(that.model_calls),
            tool_calls: self.tool_calls.saturating_sub(that.tool_calls),
            children: self.children.saturating_sub(that.children),
        }
    }

    /// What a call really took; estimated where the provider does not count.
    pub fn of_answer(model: &dyn ChatModel, answer: &Message, input_tokens: u64) -> Self {
        let (input_tokens, cached, output_tokens) = match answer.as_ai().and_then(|ai| ai.usage.as_ref()) {
            Some(usage) => {
                let cached = usage.input_token_details.as_ref().and_then(|details| details.cache_read);
                (usage.input_tokens, cached.unwrap_or_default(), usage.output_tokens)
            }
            None => (input_tokens, 0, model.count_text(&answer.text())),
        };
        let cost = model.profile().price.map_or(0, |price| price.of(input_tokens, cached, output_tokens));
        Self { input_tokens, output_tokens, cost, model_calls: 1, ..Self::default() }
    }
}

impl Used {
    pub(super) fn new(metered: [u64; METERED.len()], time: Duration) -> Self {
        let [tokens, input_tokens, output_tokens, cost, model_calls, tool_calls, children] = metered;
        Self {
            tokens,
            input_tokens,
            output_tokens,
            cost: cost as f64 / MILLION,
            model_calls,
            tool_calls,
            children,
            seconds: time.as_secs_f64(),
        }
    }

    pub(super) fn amount(&self) -> Amount {
        Amount {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost: whole(self.cost * MILLION),
            model_calls: self.model_calls,
            tool_calls: self.tool_calls,
            children: self.children,
        }
    }

    /// As much as this.
    pub(super) fn as_limits(&self) -> Limits {
        let Self { tokens, input_tokens, output_tokens, cost, model_calls, tool_calls, children, seconds } =
            *self;
        Limits {
            tokens: Some(tokens),
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            cost: Some(cost),
            model_calls: Some(model_calls),
            tool_calls: Some(tool_calls),
            children: Some(children),
            depth: None,
            seconds: Some(seconds),
        }
    }

    pub(super) fn wall_clock(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds).unwrap_or_default()
    }
}

impl Price {
    /// What a call cost by its provider's count, in millionths of the currency.
    pub fn of_usage(&self, usage: &UsageMetadata) -> u64 {
        let cached = usage.input_token_details.as_ref().and_then(|details| details.cache_read).unwrap_or(0);
        self.of(usage.input_tokens, cached, usage.output_tokens)
    }

    /// What a call costs, in millionths of the currency.
    pub fn of(&self, input_tokens: u64, cached: u64, output_tokens: u64) -> u64 {
        let cached = cached.min(input_tokens);
        let fresh = input_tokens - cached;
        let cached_price = self.cached_input.unwrap_or(self.input);
        whole(fresh as f64 * self.input + cached as f64 * cached_price + output_tokens as f64 * self.output)
    }
}

/// Rounded; what is no amount is nothing. A float that is too large becomes the largest number, as casts go.
fn whole(amount: f64) -> u64 {
    amount.max(0.0).round() as u64
}
