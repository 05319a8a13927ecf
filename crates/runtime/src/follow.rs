//! A reader's way through a run's log: from memory while it is there, from the store where it is not.
//!
//! Invariant: a reader gets every event behind its cursor once and in order, or is told of the gap.

use std::collections::VecDeque;
use std::sync::Arc;

use hart_types::{EventId, RunId};

use crate::port::{EventScope, Store, StoreError};
use crate::tape::{Entry, FRAMES, Look, Tape};

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// With the first event that is kept.
    Start,
    /// With what comes from now on.
    Now,
    /// Behind the frame of this id.
    Frame(EventId),
}

/// Reads one run.
#[derive(Debug)]
pub struct Follower {
    run: RunId,
    store: Arc<dyn Store>,
    tape: Option<Arc<Tape>>,
    cursor: u64,
    ahead: VecDeque<Arc<Entry>>,
}

/// How many events are read from the store at once.
const PAGE: u64 = 512;

impl Follower {
    pub(crate) fn new(run: RunId, store: Arc<dyn Store>, tape: Option<Arc<Tape>>, after: After) -> Self {
        let cursor = match after {
            After::Start => 0,
            After::Now => tape.as_ref().map_or(u64::MAX, |tape| tape.newest()),
            // Frames of one event share its number's place; the event is rendered again and its first frames dropped.
            After::Frame(id) => (id.seq / FRAMES * FRAMES).saturating_sub(1),
        };
        Self { run, store, tape, cursor, ahead: VecDeque::new() }
    }

    /// The next event; `None` when the run has ended and all was read.
    pub async fn next(&mut self) -> Result<Option<Arc<Entry>>, StoreError> {
        loop {
            if let Some(entry) = self.ahead.pop_front() {
                self.cursor = entry.id.seq;
                return Ok(Some(entry));
            }
            let Some(tape) = self.tape.clone() else { return self.read_on().await };
            let mut changes = tape.changes();
            match tape.look(self.cursor) {
                Look::Entries(entries) => self.ahead.extend(entries),
                Look::Behind => {
                    if let Some(entry) = self.read_on().await? {
                        return Ok(Some(entry));
                    }
                }
                Look::Wait => {
                    let _ = changes.changed().await;
                }
                Look::End => return Ok(None),
            }
        }
    }

    async fn read_on(&mut self) -> Result<Option<Arc<Entry>>, StoreError> {
        if self.cursor == u64::MAX {
            return Ok(None);
        }
        let page = self.store.events(&EventScope::Run(self.run.clone()), self.cursor, PAGE).await?;
        for event in page {
            self.ahead.push_back(Arc::new(Entry::stored(event)?));
        }
        let entry = self.ahead.pop_front();
        if let Some(entry) = &entry {
            self.cursor = entry.id.seq;
        }
        Ok(entry)
    }
}
