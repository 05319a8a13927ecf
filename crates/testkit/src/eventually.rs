//! Waiting for what must come, and not for ever: a mistake in the product must not hang its tests.
//!
//! Invariant: no wait here ends a test that would pass on a slow machine.

use std::time::{Duration, Instant};

/// How long a test waits for what comes in a moment.
pub const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(10);

/// Asks again and again until there is an answer.
///
/// # Panics
///
/// When [`PATIENCE`] is over, with `what` did not come.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "still not: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// As [`eventually`], for tests without tasks.
///
/// # Panics
///
/// As there.
pub fn eventually_here<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// What the work gives, which comes in a moment.
///
/// # Panics
///
/// When [`PATIENCE`] is over, with `what` did not come.
pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("still not: {what}"),
    }
}
