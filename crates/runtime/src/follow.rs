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

/// What there is to read at once.
#[derive(Debug)]
pub(crate) enum AtHand {
    Entry(Arc<Entry>),
    /// There will be more.
    Later,
    Never,
}

/// Frames of one event share its number's place: the event is rendered again, and those that were seen are dropped.
pub(crate) fn before_event_of(frame: EventId) -> u64 {
    (frame.seq / FRAMES * FRAMES).saturating_sub(1)
}

/// Whether a frame's id is not behind that of the last event.
pub fn reaches(last: EventId, frame: EventId) -> bool {
    frame.seq < last.seq + FRAMES
}

/// How many events are read from the store at once.
const PAGE: u64 = 512;

impl Follower {
    pub(crate) fn new(run: RunId, store: Arc<dyn Store>, tape: Option<Arc<Tape>>, after: After) -> Self {
        let cursor = match after {
            After::Start => 0,
            After::Now => tape.as_ref().map_or(u64::MAX, |tape| tape.newest()),
            After::Frame(id) => before_event_of(id),
        };
        Self::behind(run, store, tape, cursor)
    }

    pub(crate) fn behind(run: RunId, store: Arc<dyn Store>, tape: Option<Arc<Tape>>, cursor: u64) -> Self {
        Self { run, store, tape, cursor, ahead: VecDeque::new() }
    }

    /// The next event; `None` when the run has ended and all was read.
    pub async fn next(&mut self) -> Result<Option<Arc<Entry>>, StoreError> {
        loop {
            let tape = self.tape.clone();
            let mut changes = tape.as_ref().map(|tape| tape.changes());
            match (self.at_hand().await?, &mut changes) {
                (AtHand::Entry(entry), _) => return Ok(Some(entry)),
                (AtHand::Later, Some(changes)) => {
                    let _ = changes.changed().await;
                }
                (AtHand::Never | AtHand::Later, _) => return Ok(None),
            }
        }
    }

    /// The next event, if nothing has to be waited for.
    pub(crate) async fn at_hand(&mut self) -> Result<AtHand, StoreError> {
        loop {
            if let Some(entry) = self.ahead.pop_front() {
                self.cursor = entry.id.seq;
                return Ok(AtHand::Entry(entry));
            }
            let Some(tape) = self.tape.clone() else {
                return Ok(self.read_on().await?.map_or(AtHand::Never, AtHand::Entry));
            };
            match tape.look(self.cursor) {
                Look::Entries(entries) => self.ahead.extend(entries),
                Look::Behind => {
                    if let Some(entry) = self.read_on().await? {
                        return Ok(AtHand::Entry(entry));
                    }
                    // The store has forgotten them: the run was undone.
                    self.cursor = self.cursor.max(tape.dropped());
                }
                Look::Wait => return Ok(AtHand::Later),
                Look::End => return Ok(AtHand::Never),
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
