//! How long streams can be read again.
//!
//! Invariant: only logs of runs that have ended are forgotten, each as a whole; threads, runs and states stay.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::Inner;

/// What is kept of the streams of runs that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How long after the run's end.
    pub age: Duration,
    /// How often what is older is looked for.
    pub every: Duration,
}

impl Default for Retention {
    /// A week, looked after every hour.
    fn default() -> Self {
        Self { age: Duration::from_secs(7 * 24 * 3600), every: Duration::from_secs(3600) }
    }
}

/// Forgets what is old as long as the runtime is there.
pub(super) async fn forget(runtime: Weak<Inner>, retention: Retention) {
    let mut look = tokio::time::interval(retention.every.max(Duration::from_millis(1)));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let Some(inner) = runtime.upgrade() else { return };
        let Ok(before) = inner.clock.now().checked_sub(retention.age) else { continue };
        match inner.store.forget_events(before).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "old events were forgotten"),
            Err(error) => tracing::warn!(%error, "old events cannot be forgotten; trying again later"),
        }
    }
}
