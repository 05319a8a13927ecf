//! How what was said gets to the disk: with the next step, or by itself when none comes for a while.
//!
//! Invariant: events reach the store in order, whoever brings them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::MutexGuard;

use super::{Entry, Tape, WAITING};
use crate::event::{LogEvent, Logged};
use crate::failure::chain;
use crate::port::{Lease, StoreError, StoredEvent};

/// How long an event waits for others to share a write with: words come in hundreds a second, and each write is a sync.
const GATHER: Duration = Duration::from_millis(25);
/// How many do not wait for more.
const ENOUGH: usize = 512;
/// How many the recorder puts into one write.
const BATCH: usize = 1024;

/// The right to write this tape's events.
pub(crate) struct Turn<'a> {
    tape: &'a Tape,
    _turn: MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// All that are not on the disk, in order.
    pub(crate) fn events(&self) -> Vec<StoredEvent> {
        self.tape.stored(&self.tape.unrecorded(usize::MAX))
    }

    /// All up to this number are on the disk.
    pub(crate) fn recorded(&self, last: u64) {
        self.tape.recorded(last);
    }
}

impl Tape {
    /// Waits for whoever writes now.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        Turn { tape: self, _turn: self.writing.lock().await }
    }

    /// Puts what no step takes along into the store, until the tape is closed and all of it is there. An error is the
    /// end of it: what was said by whoever no longer has the run is said by somebody else.
    pub(crate) async fn record(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut changes = self.changes();
        let mut told = false;
        loop {
            if self.unrecorded(1).is_empty() {
                if self.is_over() {
                    return Ok(());
                }
                let _ = changes.changed().await;
                continue;
            }
            if !self.is_over() {
                let _ = tokio::time::timeout(GATHER, self.hurry.notified()).await;
            }
            let turn = self.turn().await;
            let batch = self.stored(&self.unrecorded(BATCH));
            let Some(last) = batch.last().map(|event| event.id.seq) else { continue };
            let written = self.store.append_events(batch, lease).await;
            if written.is_ok() {
                turn.recorded(last);
            }
            // Whoever waits for room does not keep others from trying.
            drop(turn);
            match written {
                Ok(()) => told = false,
                Err(error @ StoreError::Lost(_)) => return Err(error),
                Err(StoreError::Full) => self.wait_for_room(&mut told).await,
                Err(error) => {
                    let error = chain(&error);
                    tracing::error!(run = %self.run, error, "events cannot be stored; trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Waits a moment for room on a full disk. Whoever follows the run is told once why it stands still.
    pub(crate) async fn wait_for_room(&self, told: &mut bool) {
        if !std::mem::replace(told, true) {
            tracing::error!(run = %self.run, "storage_full: the disk is full; the run waits");
            self.put(storage_full(), None).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    /// Whether the disk is too far behind for more to be said.
    pub(super) fn is_full(&self) -> bool {
        let waiting = {
            let reel = self.reel();
            if reel.left {
                return false;
            }
            reel.entries.len() - reel.entries.partition_point(|entry| entry.id.seq <= reel.durable)
        };
        if waiting >= ENOUGH {
            self.hurry.notify_one();
        }
        waiting >= WAITING
    }

    fn unrecorded(&self, most: usize) -> Vec<Arc<Entry>> {
        let reel = self.reel();
        let start = reel.entries.partition_point(|entry| entry.id.seq <= reel.durable);
        reel.entries.range(start..).take(most).cloned().collect()
    }

    fn recorded(&self, last: u64) {
        let mut reel = self.reel();
        reel.durable = reel.durable.max(last);
        reel.let_go();
        drop(reel);
        self.bump();
    }

    fn is_over(&self) -> bool {
        let reel = self.reel();
        reel.closed || reel.left
    }
}

/// Whoever follows a run that stands still is told why.
fn storage_full() -> Logged {
    let message = StoreError::Full.to_string();
    let data = serde_json::json!({"type": "storage_full", "message": message});
    Logged { namespace: Vec::new(), event: LogEvent::Custom { data } }
}
