//! How many clients follow something.
//!
//! Invariant: whoever stops reading is no longer counted, however it stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A copy counts the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers(Arc<AtomicU64>);

/// One of them, as long as it is kept.
#[derive(Debug)]
pub(crate) struct Reading(Arc<AtomicU64>);

impl Readers {
    pub(crate) fn reading(&self) -> Reading {
        self.0.fetch_add(1, Ordering::Relaxed);
        Reading(Arc::clone(&self.0))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
