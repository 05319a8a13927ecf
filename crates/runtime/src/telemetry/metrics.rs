//! Counts of what this process has done since it began.
//!
//! Invariant: counting takes no lock, and a count never goes down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hart_types::RunStatus;

use crate::Totals;

#[derive(Debug, Default)]
pub struct Metrics {
    started: AtomicU64,
    success: AtomicU64,
    error: AtomicU64,
    timeout: AtomicU64,
    interrupted: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    /// In millionths.
    cost: AtomicU64,
    model_calls: AtomicU64,
    tool_calls: AtomicU64,
    model_seconds: [AtomicU64; BUCKETS.len()],
    model_micros: AtomicU64,
    model_answers: AtomicU64,
}

/// Upper bounds of the times that models take, in seconds.
pub const BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// All counts at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub runs_started: u64,
    pub runs_ended: [(RunStatus, u64); 4],
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In the currency of the models' prices, of those that have one.
    pub cost: f64,
    pub model_calls: u64,
    pub tool_calls: u64,
    /// How many answers took no longer than each of [`BUCKETS`].
    pub model_within: [u64; BUCKETS.len()],
    pub model_answers: u64,
    pub model_seconds: f64,
}

impl Metrics {
    pub(crate) fn run_started(&self) {
        add(&self.started, 1);
    }

    pub(crate) fn run_ended(&self, status: RunStatus, totals: &Totals) {
        let count = match status {
            RunStatus::Success => &self.success,
            RunStatus::Timeout => &self.timeout,
            RunStatus::Interrupted => &self.interrupted,
            RunStatus::Error | RunStatus::Pending | RunStatus::Running => &self.error,
        };
        add(count, 1);
        add(&self.input_tokens, totals.usage.input_tokens);
        add(&self.output_tokens, totals.usage.output_tokens);
        add(&self.cost, (totals.cost.unwrap_or(0.0).max(0.0) * 1e6).round() as u64);
        add(&self.model_calls, totals.model_calls);
        add(&self.tool_calls, totals.tool_calls);
    }

    pub(crate) fn model_answered(&self, took: Duration) {
        let fits = BUCKETS.iter().zip(&self.model_seconds).filter(|(bound, _)| took.as_secs_f64() <= **bound);
        for (_, count) in fits {
            add(count, 1);
        }
        add(&self.model_micros, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        add(&self.model_answers, 1);
    }

    pub fn observe(&self) -> Observed {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Observed {
            runs_started: read(&self.started),
            runs_ended: [
                (RunStatus::Success, read(&self.success)),
                (RunStatus::Error, read(&self.error)),
                (RunStatus::Timeout, read(&self.timeout)),
                (RunStatus::Interrupted, read(&self.interrupted)),
            ],
            input_tokens: read(&self.input_tokens),
            output_tokens: read(&self.output_tokens),
            cost: read(&self.cost) as f64 / 1e6,
            model_calls: read(&self.model_calls),
            tool_calls: read(&self.tool_calls),
            model_within: std::array::from_fn(|at| self.model_seconds.get(at).map_or(0, read)),
            model_answers: read(&self.model_answers),
            model_seconds: Duration::from_micros(read(&self.model_micros)).as_secs_f64(),
        }
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
