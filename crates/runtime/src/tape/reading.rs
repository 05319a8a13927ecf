//! A tape in the hands of somebody who reads it.
//!
//! Invariant: a tape knows how many there are.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Tape;

#[derive(Debug)]
pub(crate) struct Reading(Arc<Tape>);

impl Reading {
    pub(crate) fn of(tape: Arc<Tape>) -> Self {
        tape.readers.fetch_add(1, Ordering::SeqCst);
        tape.was_read.store(true, Ordering::SeqCst);
        Self(tape)
    }
}

impl Clone for Reading {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.0))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.0.readers.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.bump();
        }
    }
}

impl Deref for Reading {
    type Target = Tape;

    fn deref(&self) -> &Tape {
        &self.0
    }
}

impl Tape {
    pub(crate) fn was_read(&self) -> bool {
        self.was_read.load(Ordering::SeqCst)
    }

    /// Returns when nobody reads it.
    pub(crate) async fn unread(&self) {
        let mut changes = self.changes();
        while self.readers.load(Ordering::SeqCst) > 0 {
            let _ = changes.changed().await;
        }
    }
}
