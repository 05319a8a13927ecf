//! Counts what a request costs before it is sent, and learns from what the provider counted.
//!
//! Invariant: counting never fails, never waits and never downloads; a longer text never counts less in the same
//! state, and the learnt correction stays within bounds.

mod family;
mod message;
mod text;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{ChatRequest, MessageList, ToolSpec};
use hart_types::Message;

use crate::config::{Dialect, ModelConfig};
use crate::encoded::{Encodings, Size};
pub use family::Family;
use family::Traits;
pub use text::{estimate, exact};

/// Conversations whose sums are kept ready.
const KEPT: usize = 8;
/// How far the provider's counts may pull ours. Beyond that something else is wrong, and following it would do harm.
const BOUNDS: (f64, f64) = (0.4, 2.5);
/// What the newest answer weighs against all before it, once there are some.
const NEWEST: f64 = 0.2;
/// Below this the fixed parts of a request outweigh its text.
const MIN_OBSERVED: u64 = 50;

/// Counts for one model. Shared freely: it is cheap to ask from anywhere.
///
/// ```
/// use hart_models::tokens::{Family, TokenCounter};
///
/// let counter = TokenCounter::new(Family::OpenAi);
/// assert_eq!(counter.count_text("tiktoken is great!"), 6);
/// ```
#[derive(Debug)]
pub struct TokenCounter {
    traits: Traits,
    method: Method,
    with_reasoning: bool,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Exact,
    Estimate,
}

#[derive(Debug)]
struct State {
    /// What the provider counts per token of ours.
    ratio: f64,
    observed: u32,
    messages: Encodings<Message, Tokens>,
    tools: Encodings<ToolSpec, Tokens>,
    system: Encodings<str, Tokens>,
    conversations: VecDeque<Counted>,
}

/// A conversation and the sum up to and including each of its messages.
#[derive(Debug, Default)]
struct Counted {
    messages: MessageList,
    sums: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tokens(u64);

impl Size for Tokens {
    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

impl TokenCounter {
    /// Counts exactly in OpenAI's vocabulary, and scales to the family's.
    pub fn new(family: Family) -> Self {
        Self {
            traits: family.traits(),
            method: Method::Exact,
            with_reasoning: true,
            state: Mutex::new(State {
                ratio: 1.0,
                observed: 0,
                messages: Encodings::default(),
                tools: Encodings::default(),
                system: Encodings::default(),
                conversations: VecDeque::new(),
            }),
        }
    }

    /// For a configured model.
    pub fn of(config: &ModelConfig) -> Self {
        let family = match Family::of(&config.model) {
            Family::Other if config.dialect == Dialect::Anthropic => Family::Anthropic,
            Family::Other if config.provider == "openai" => Family::OpenAi,
            known => known,
        };
        let with_reasoning = config.send_reasoning || config.dialect != Dialect::OpenAi;
        Self { with_reasoning, ..Self::new(family) }
    }

    /// Counts by kinds of characters instead: within a tenth for most text, without loading the vocabulary (80 ms and
    /// some 15 MB at the first count of a process).
    #[must_use]
    pub fn estimating(self) -> Self {
        Self { method: Method::Estimate, ..self }
    }

    pub fn count_text(&self, text: &str) -> u64 {
        scaled(self.raw(text), self.lock().ratio)
    }

    /// One message with all it carries. Counted once, then remembered.
    pub fn count_message(&self, message: &Arc<Message>) -> u64 {
        let mut state = self.lock();
        let raw = self.message(&mut state, message);
        scaled(raw, state.ratio)
    }

    /// The messages of a conversation. One that continues an earlier one costs only its new end.
    pub fn count_messages(&self, messages: &MessageList) -> u64 {
        let mut state = self.lock();
        let raw = self.messages(&mut state, messages);
        scaled(raw, state.ratio)
    }

    /// The whole request: system prompt, tools, messages and what the provider puts around them.
    pub fn count_request(&self, request: &ChatRequest) -> u64 {
        let mut state = self.lock();
        let mut raw = message::REPLY;
        if let Some(system) = &request.system {
            raw += state.system.of(system, |text| Tokens(self.raw(text) + message::AROUND)).0;
        }
        if !request.tools.is_empty() {
            raw += self.traits.tools;
        }
        for tool in request.tools.iter() {
            raw += state.tools.of(tool, |tool| Tokens(message::tool(tool, &|text| self.raw(text)))).0;
        }
        raw += message::output(&request.settings.output, &|text| self.raw(text));
        raw += self.messages(&mut state, &request.messages);
        scaled(raw, state.ratio)
    }

    /// Learns from an answer: `estimated` is what this counter said of the request, `actual` what the provider counted
    /// (`input_tokens` of its usage, with the cached ones).
    pub fn observe(&self, estimated: u64, actual: u64) {
        if estimated < MIN_OBSERVED || actual == 0 {
            return;
        }
        let mut state = self.lock();
        let (low, high) = BOUNDS;
        let seen = state.ratio * actual as f64 / estimated as f64;
        // A server that counts so little leaves out what it had cached, or makes its numbers up. To believe it would
        // let a conversation grow beyond its window; a count that is too high only compacts it early.
        if seen < low {
            return;
        }
        let seen = seen.min(high);
        let weight = (1.0 / f64::from(state.observed + 1)).max(NEWEST);
        state.ratio = (state.ratio + weight * (seen - state.ratio)).clamp(low, high);
        state.observed = state.observed.saturating_add(1);
    }

    /// What the provider counts per token of ours: 1 until an answer was observed.
    pub fn ratio(&self) -> f64 {
        self.lock().ratio
    }

    fn messages(&self, state: &mut State, messages: &MessageList) -> u64 {
        let mut counted = state.continued(messages);
        let start = counted.sums.len();
        let mut sum = counted.sums.last().copied().unwrap_or_default();
        for message in messages.iter_from(start) {
            sum += self.message(state, message);
            counted.sums.push(sum);
        }
        if state.conversations.len() >= KEPT {
            state.conversations.pop_front();
        }
        state.conversations.push_back(counted);
        sum
    }

    fn message(&self, state: &mut State, message: &Arc<Message>) -> u64 {
        let count = |message: &Message| {
            let count = |text: &str| self.raw(text);
            Tokens(message::message(message, self.traits.image, self.with_reasoning, &count))
        };
        state.messages.of(message, count).0
    }

    /// In the family's tokens, before what was learnt.
    fn raw(&self, text: &str) -> u64 {
        let counted = match self.method {
            Method::Exact => exact(text),
            Method::Estimate => estimate(text),
        };
        let Traits { text: most, east_asian, .. } = self.traits;
        if (most, east_asian) == (1.0, 1.0) {
            return counted;
        }
        let share = if most == east_asian { 0.0 } else { text::east_asian(text) };
        scaled(counted, most + (east_asian - most) * share)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Another caller's panic cannot leave a wrong sum behind: sums are stored when they are complete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The kept sums that `messages` continues the furthest, cut to what they share.
    fn continued(&mut self, messages: &MessageList) -> Counted {
        let shared = |kept: &Counted| kept.messages.common_prefix(messages);
        let best = self.conversations.iter().map(shared).enumerate().max_by_key(|(_, common)| *common);
        let mut counted = match best {
            Some((at, common)) if common > 0 => {
                let mut counted = self.conversations.remove(at).unwrap_or_default();
                counted.sums.truncate(common);
                counted
            }
            _ => Counted::default(),
        };
        counted.messages = messages.clone();
        counted
    }
}

fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).round() as u64
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
