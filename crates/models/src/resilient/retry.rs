//! When a failed call is asked again.
//!
//! Invariant: only what may succeed a little later is repeated, a bounded number of times, and callers that failed
//! together do not come back together.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hart_kernel::{ModelError, ModelErrorKind, TimeoutPhase};

use crate::config::DEFAULT_MAX_RETRIES;

/// How often a model is asked again, and after how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all; 1 means that nothing is repeated.
    pub attempts: u32,
    /// The shortest pause.
    pub base: Duration,
    /// The longest pause that nobody asked for.
    pub cap: Duration,
    /// The shortest pause after requests came too fast for the provider.
    pub burst_base: Duration,
    /// The longest pause that a provider may ask for; beyond it, the error is reported or another model asked.
    pub longest_wait: Duration,
    /// All attempts, pauses and other models together.
    pub total: Duration,
}

/// Repeating these adds to what is wrong, or costs minutes each time.
const TIGHT_ATTEMPTS: u32 = 2;

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: DEFAULT_MAX_RETRIES + 1,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(8),
            burst_base: Duration::from_secs(5),
            longest_wait: Duration::from_secs(60),
            total: crate::config::DEFAULT_TOTAL_TIMEOUT,
        }
    }
}

impl RetryPolicy {
    /// How many attempts there are when this is what goes wrong.
    pub fn attempts_for(&self, error: &ModelError) -> u32 {
        let silence =
            matches!(error.kind, ModelErrorKind::Timeout(TimeoutPhase::Idle | TimeoutPhase::FirstByte));
        match error.kind {
            ModelErrorKind::Timeout(TimeoutPhase::Total) => 1,
            kind if !kind.is_transient() => 1,
            _ if silence || is_burst(error) => self.attempts.min(TIGHT_ATTEMPTS),
            _ => self.attempts,
        }
        .max(1)
    }

    /// The pause before the next attempt; `None`: there is none. `last` is the previous pause, and becomes this one.
    pub(super) fn pause(
        &self,
        error: &ModelError,
        made: u32,
        last: &mut Duration,
        dice: &Dice,
    ) -> Option<Duration> {
        if !error.kind.is_transient() || made >= self.attempts_for(error) {
            return None;
        }
        if let Some(asked) = error.retry_after {
            // A little later than asked: everybody who was refused is told the same moment.
            let spread = dice.between(Duration::ZERO, (asked / 10).max(self.base / 4));
            return (asked <= self.longest_wait).then_some(asked + spread);
        }
        let (base, cap) = if is_burst(error) {
            (self.burst_base, self.cap.max(self.burst_base * 3))
        } else {
            (self.base, self.cap.max(self.base))
        };
        *last = dice.between(base, (*last).max(base) * 3).min(cap);
        Some(*last)
    }
}

/// A limit on how fast the rate rises: asking again soon is what it punishes.
fn is_burst(error: &ModelError) -> bool {
    let message = error.message.to_ascii_lowercase();
    error.kind == ModelErrorKind::RateLimit
        && ["burst", "increased too quickly", "too quickly"].iter().any(|words| message.contains(words))
}

/// Chance, good enough to keep callers apart.
#[derive(Debug)]
pub(super) struct Dice(AtomicU64);

impl Dice {
    pub(super) fn new() -> Self {
        // The standard library seeds every hasher anew.
        Self(AtomicU64::new(RandomState::new().build_hasher().finish()))
    }

    pub(super) fn between(&self, low: Duration, high: Duration) -> Duration {
        // SplitMix64.
        let mut x = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        let share = (x >> 32) as u32;
        low + high.saturating_sub(low).mul_f64(f64::from(share) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, message: &str) -> ModelError {
        ModelError::new(kind, "m", message)
    }

    fn pauses(policy: &RetryPolicy, error: &ModelError) -> Vec<Duration> {
        let (dice, mut last) = (Dice::new(), Duration::ZERO);
        (1..100).map_while(|made| policy.pause(error, made, &mut last, &dice)).collect()
    }

    #[test]
    fn only_what_may_succeed_later_is_repeated_and_only_so_often() {
        let policy = RetryPolicy { attempts: 5, ..RetryPolicy::default() };
        let overflow = ModelErrorKind::ContextOverflow { limit: None, used: None };
        for (kind, message, attempts) in [
            (ModelErrorKind::Network, "", 5),
            (ModelErrorKind::Overloaded, "", 5),
            (ModelErrorKind::Malformed, "", 5),
            (ModelErrorKind::Interrupted, "", 5),
            (ModelErrorKind::RateLimit, "slow down", 5),
            (ModelErrorKind::RateLimit, "Request rate increased too quickly", 2),
            (ModelErrorKind::RateLimit, "code limit_burst_rate", 2),
            (ModelErrorKind::Timeout(TimeoutPhase::Connect), "", 5),
            (ModelErrorKind::Timeout(TimeoutPhase::Idle), "", 2),
            (ModelErrorKind::Timeout(TimeoutPhase::FirstByte), "", 2),
            (ModelErrorKind::Timeout(TimeoutPhase::Total), "", 1),
            (ModelErrorKind::Auth, "", 1),
            (ModelErrorKind::BadRequest, "", 1),
            (ModelErrorKind::ContentFilter, "", 1),
            (overflow, "", 1),
            (ModelErrorKind::Resting, "", 1),
            (ModelErrorKind::NotRecorded, "", 1),
            (ModelErrorKind::Cancelled, "", 1),
        ] {
            let error = error(kind, message);
            assert_eq!(policy.attempts_for(&error), attempts, "{error}");
            assert_eq!(pauses(&policy, &error).len() as u32 + 1, attempts, "{error}");
        }
        let never = RetryPolicy { attempts: 0, ..RetryPolicy::default() };
        assert_eq!(never.attempts_for(&error(ModelErrorKind::Network, "")), 1);
    }

    #[test]
    fn pauses_stay_between_base_and_cap_and_differ() {
        let policy = RetryPolicy { attempts: 50, ..RetryPolicy::default() };
        let usual = pauses(&policy, &error(ModelErrorKind::Overloaded, ""));
        assert!(usual.iter().all(|pause| (policy.base..=policy.cap).contains(pause)), "{usual:?}");
        assert_ne!(usual, pauses(&policy, &error(ModelErrorKind::Overloaded, "")), "two callers part");
        for pause in pauses(&policy, &error(ModelErrorKind::RateLimit, "burst rate")) {
            assert!(pause >= policy.burst_base);
        }
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_unless_it_is_too_long() {
        let policy = RetryPolicy::default();
        let asks = |seconds| {
            let wait = Some(Duration::from_secs(seconds));
            pauses(&policy, &error(ModelErrorKind::RateLimit, "").retry_after(wait))
        };
        assert_eq!(asks(30).len(), 2);
        assert!(asks(30).iter().all(|pause| (30..=33).contains(&pause.as_secs())));
        assert!(asks(0).iter().all(|pause| *pause < policy.base));
        assert!(asks(61).is_empty());
    }
}
