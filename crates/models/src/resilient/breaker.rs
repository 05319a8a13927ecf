//! Gives an endpoint that keeps failing a rest.
//!
//! Invariant: while it rests nobody asks it; then exactly one caller does, and what that one meets decides for all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hart_kernel::ModelError;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Breaker {
    /// So many failures in a row open it; 0: it never opens.
    threshold: u32,
    recovery: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    failures: u32,
    /// What went wrong last, in words.
    last: String,
    /// No one asks before then.
    open_until: Option<Instant>,
    /// Somebody is finding out whether it works again.
    probing: bool,
}

/// Why nobody may ask now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) failures: u32,
    pub(super) last: String,
    /// `None`: it is being tried at this moment.
    pub(super) again_in: Option<Duration>,
}

/// The right to ask once. Dropped without a verdict, it is as if nobody had asked.
#[derive(Debug)]
pub(super) struct Pass {
    breaker: Arc<Breaker>,
    probe: bool,
}

impl Breaker {
    pub(super) fn new(threshold: u32, recovery: Duration) -> Arc<Self> {
        let state = State { failures: 0, last: String::new(), open_until: None, probing: false };
        Arc::new(Self { threshold, recovery, state: Mutex::new(state) })
    }

    /// Whether it rests, without asking for a pass.
    pub(super) fn resting(&self) -> Option<Rest> {
        self.lock().rest()
    }

    pub(super) fn enter(self: &Arc<Self>) -> Result<Pass, Rest> {
        let mut state = self.lock();
        if let Some(rest) = state.rest() {
            return Err(rest);
        }
        let probe = state.open_until.is_some();
        state.probing = probe;
        Ok(Pass { breaker: Arc::clone(self), probe })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every statement below leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn rest(&self) -> Option<Rest> {
        let until = self.open_until?;
        let again_in = until.saturating_duration_since(Instant::now());
        let waits = !again_in.is_zero();
        (waits || self.probing).then(|| Rest {
            failures: self.failures,
            last: self.last.clone(),
            again_in: waits.then_some(again_in),
        })
    }
}

impl Pass {
    /// The endpoint works, whatever it said.
    pub(super) fn works(self) {
        let mut state = self.breaker.lock();
        (state.failures, state.open_until) = (0, None);
    }

    pub(super) fn fails(self, error: &ModelError) {
        let breaker = &self.breaker;
        let mut state = breaker.lock();
        state.failures = state.failures.saturating_add(1);
        state.last = format!("it {}", error.kind.what());
        // Calls that were under way when it opened do not prolong its rest.
        let closed = state.open_until.is_none();
        if self.probe || (closed && breaker.threshold > 0 && state.failures >= breaker.threshold) {
            state.open_until = Some(Instant::now() + breaker.recovery);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.probe {
            self.breaker.lock().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use hart_kernel::ModelErrorKind;

    use super::*;

    const RECOVERY: Duration = Duration::from_secs(60);

    fn fail(breaker: &Arc<Breaker>) {
        breaker.enter().unwrap().fails(&ModelError::new(ModelErrorKind::Overloaded, "m", ""));
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_enough_failures_in_a_row() {
        let breaker = Breaker::new(3, RECOVERY);
        fail(&breaker);
        fail(&breaker);
        breaker.enter().unwrap().works();
        fail(&breaker);
        fail(&breaker);
        assert!(breaker.resting().is_none());
        fail(&breaker);
        let rest = breaker.enter().unwrap_err();
        assert_eq!((rest.failures, rest.again_in), (3, Some(RECOVERY)));
        assert_eq!(rest.last, "it is overloaded");
    }

    #[tokio::test(start_paused = true)]
    async fn one_probe_decides() {
        let breaker = Breaker::new(1, RECOVERY);
        fail(&breaker);
        tokio::time::advance(RECOVERY).await;
        let probe = breaker.enter().unwrap();
        assert_eq!(breaker.enter().unwrap_err().again_in, None, "one at a time");
        probe.fails(&ModelError::new(ModelErrorKind::Network, "m", ""));
        assert_eq!(breaker.enter().unwrap_err().again_in, Some(RECOVERY), "another rest");

        tokio::time::advance(RECOVERY).await;
        drop(breaker.enter().unwrap());
        let probe = breaker.enter().expect("a probe that was given up leaves its place");
        probe.works();
        let (first, second) = (breaker.enter().unwrap(), breaker.enter().unwrap());
        drop((first, second));
    }

    #[tokio::test(start_paused = true)]
    async fn late_failures_do_not_prolong_a_rest() {
        let breaker = Breaker::new(1, RECOVERY);
        let late = breaker.enter().unwrap();
        fail(&breaker);
        tokio::time::advance(RECOVERY / 2).await;
        late.fails(&ModelError::new(ModelErrorKind::Network, "m", ""));
        assert_eq!(breaker.resting().unwrap().again_in, Some(RECOVERY / 2));
    }

    #[tokio::test(start_paused = true)]
    async fn zero_switches_it_off() {
        let breaker = Breaker::new(0, RECOVERY);
        for _ in 0..100 {
            fail(&breaker);
        }
        assert!(breaker.enter().is_ok());
    }
}
