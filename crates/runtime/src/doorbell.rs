//! Wakes those who follow a thread when something begins on it.
//!
//! Invariant: a thread that nobody listens to costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hart_types::ThreadId;
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(crate) struct Doorbells {
    bells: Mutex<HashMap<ThreadId, watch::Sender<Rings>>>,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rings {
    pub(crate) runs: u64,
    pub(crate) states: u64,
}

impl Doorbells {
    pub(crate) fn listen(self: &Arc<Self>, thread: &ThreadId) -> Listener {
        let rings = self.lock().entry(thread.clone()).or_default().subscribe();
        Listener { bells: Arc::clone(self), thread: thread.clone(), rings }
    }

    /// A run began to speak.
    pub(crate) fn run_began(&self, thread: &ThreadId) {
        self.ring(thread, |rings| rings.runs += 1);
    }

    /// The state was changed without a run.
    pub(crate) fn state_changed(&self, thread: &ThreadId) {
        self.ring(thread, |rings| rings.states += 1);
    }

    fn ring(&self, thread: &ThreadId, change: impl FnOnce(&mut Rings)) {
        if let Some(bell) = self.lock().get(thread) {
            bell.send_modify(change);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, watch::Sender<Rings>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who is woken.
#[derive(Debug)]
pub(crate) struct Listener {
    bells: Arc<Doorbells>,
    thread: ThreadId,
    pub(crate) rings: watch::Receiver<Rings>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut bells = self.bells.lock();
        // This one is still counted.
        if bells.get(&self.thread).is_some_and(|bell| bell.receiver_count() <= 1) {
            bells.remove(&self.thread);
        }
    }
}
