//! A rate per minute, kept by making callers wait.
//!
//! Invariant: in any minute no more leaves it than one minute's worth and what had been saved up, at most another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Bucket(Mutex<Level>);

#[derive(Debug)]
struct Level {
    per_minute: f64,
    /// Below zero: owed by callers who are waiting.
    level: f64,
    at: Instant,
}

/// What a caller has taken. Dropped unspent, it goes back.
#[derive(Debug)]
pub(super) struct Taken {
    bucket: Arc<Bucket>,
    amount: f64,
    /// How long until it is there.
    pub(super) wait: Duration,
}

impl Bucket {
    pub(super) fn new(per_minute: u32) -> Arc<Self> {
        let per_minute = f64::from(per_minute.max(1));
        Arc::new(Self(Mutex::new(Level { per_minute, level: per_minute, at: Instant::now() })))
    }

    /// Two entries for one endpoint: the stricter one holds.
    pub(super) fn tighten(&self, per_minute: u32) {
        let mut level = self.lock();
        level.per_minute = level.per_minute.min(f64::from(per_minute.max(1)));
        level.level = level.level.min(level.per_minute);
    }

    pub(super) fn take(self: &Arc<Self>, amount: u64) -> Taken {
        let mut level = self.lock();
        level.refill();
        // What is more than a minute's worth could never be there.
        let amount = (amount as f64).min(level.per_minute);
        level.level -= amount;
        let missing = (-level.level).max(0.0);
        let wait = Duration::try_from_secs_f64(missing * 60.0 / level.per_minute).unwrap_or(Duration::MAX);
        Taken { bucket: Arc::clone(self), amount, wait }
    }

    fn lock(&self) -> MutexGuard<'_, Level> {
        // Every statement above leaves the level whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Level {
    fn refill(&mut self) {
        let now = Instant::now();
        let minutes = now.saturating_duration_since(self.at).as_secs_f64() / 60.0;
        self.level = self.per_minute.mul_add(minutes, self.level).min(self.per_minute);
        self.at = now;
    }
}

impl Taken {
    /// It was used as estimated.
    pub(super) fn spent(mut self) {
        self.amount = 0.0;
    }

    /// It was used, but this is how much it was.
    pub(super) fn spent_exactly(mut self, amount: u64) {
        // The rest goes back; what was used beyond it is owed.
        self.amount -= amount as f64;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut level = self.bucket.lock();
        level.refill();
        level.level = (level.level + self.amount).min(level.per_minute);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_minutes_worth_is_free_and_the_rest_waits_its_turn() {
        let bucket = Bucket::new(60);
        for _ in 0..60 {
            let taken = bucket.take(1);
            assert_eq!(taken.wait, Duration::ZERO);
            taken.spent();
        }
        let (first, second) = (bucket.take(1), bucket.take(1));
        assert_eq!((first.wait.as_secs(), second.wait.as_secs()), (1, 2));
        drop((first, second));
        tokio::time::advance(Duration::from_secs(5)).await;
        let taken = bucket.take(5);
        assert_eq!(taken.wait, Duration::ZERO, "what nobody used went back");
        taken.spent();
        assert_eq!(bucket.take(1).wait.as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_estimate_is_corrected_in_both_directions() {
        let bucket = Bucket::new(6000);
        bucket.take(6000).spent_exactly(0);
        let taken = bucket.take(6000);
        assert_eq!(taken.wait, Duration::ZERO);
        taken.spent_exactly(9000);
        assert_eq!(bucket.take(0).wait.as_secs(), 30, "the debt is paid off first");
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(bucket.take(999_999).wait, Duration::ZERO, "more than a minute's worth counts as one");
    }

    #[tokio::test(start_paused = true)]
    async fn the_stricter_rate_holds() {
        let bucket = Bucket::new(600);
        bucket.tighten(60);
        bucket.tighten(6000);
        bucket.take(60).spent();
        assert_eq!(bucket.take(1).wait.as_secs(), 1);
    }
}
