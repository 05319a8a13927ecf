//! A reader's way through a run's log: from memory while it is there, from the store where it is not.
//!
//! Invariant: a reader gets every event behind its cursor once and in order, whichever process executes the run, or is
//! told of the gap.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hart_types::{EventId, RunId};

use crate::LogEvent;
use crate::port::{EventScope, StoreError};
use crate::runtime::Runtime;
use crate::tape::{Entry, FRAMES, Look, Reading, Tape};

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
    runtime: Runtime,
    /// While the run is executed in this process.
    tape: Option<Reading>,
    /// None until it is known what the newest event is.
    cursor: Option<u64>,
    ahead: VecDeque<Arc<Entry>>,
    ended: bool,
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

/// How much is read from the store at once. A reader that stands still keeps it, and each event as it is and as it was
/// written, so with what its connection holds it is to stay below the 64 KiB that one may cost.
const PAGE: usize = 8 << 10;
/// How often a run that another process executes is looked at.
const GLANCE: Duration = Duration::from_millis(100);

impl Follower {
    pub(crate) fn new(run: RunId, runtime: Runtime, after: After) -> Self {
        let tape = runtime.tape(&run);
        let cursor = match after {
            After::Start => Some(0),
            After::Now => tape.as_ref().map(|tape| tape.newest()),
            After::Frame(id) => Some(before_event_of(id)),
        };
        Self { run, runtime, tape, cursor, ahead: VecDeque::new(), ended: false }
    }

    pub(crate) fn behind(run: RunId, runtime: Runtime, cursor: u64) -> Self {
        let tape = runtime.tape(&run);
        Self { run, runtime, tape, cursor: Some(cursor), ahead: VecDeque::new(), ended: false }
    }

    /// The next event; `None` when the run has ended and all was read.
    pub async fn next(&mut self) -> Result<Option<Arc<Entry>>, StoreError> {
        loop {
            // Before the look, so that no change after it is missed.
            let changes = self.tape.as_ref().map(|tape| tape.changes());
            match self.at_hand().await? {
                AtHand::Entry(entry) => return Ok(Some(entry)),
                AtHand::Never => return Ok(None),
                AtHand::Later => match (changes, &self.tape) {
                    (Some(mut changes), Some(_)) => {
                        let _ = changes.changed().await;
                    }
                    (_, None) => tokio::time::sleep(GLANCE).await,
                    // It has come to this process meanwhile.
                    (None, Some(_)) => {}
                },
            }
        }
    }

    /// Waits for the end of a run of this process and goes to its last state. Whoever wants nothing else need not be
    /// woken by every event.
    pub async fn skip_to_last_state(&mut self) {
        let Some(tape) = &self.tape else { return };
        tape.over().await;
        self.cursor = self.cursor.max(tape.before_last_state());
    }

    /// The next event, if nothing has to be waited for.
    pub(crate) async fn at_hand(&mut self) -> Result<AtHand, StoreError> {
        loop {
            if let Some(entry) = self.ahead.pop_front() {
                self.cursor = Some(entry.id.seq);
                let last = matches!(entry.logged.event, LogEvent::Ended { .. });
                self.ended = last && entry.logged.namespace.is_empty();
                return Ok(AtHand::Entry(entry));
            }
            if self.ended {
                return Ok(AtHand::Never);
            }
            let nothing = match self.tape.clone() {
                Some(tape) => self.look(&tape).await?,
                None => self.glance().await?,
            };
            if let Some(nothing) = nothing {
                return Ok(nothing);
            }
        }
    }

    /// At a run of this process; `None` to look again.
    async fn look(&mut self, tape: &Tape) -> Result<Option<AtHand>, StoreError> {
        let cursor = self.cursor.unwrap_or_else(|| tape.newest());
        self.cursor = Some(cursor);
        match tape.look(cursor) {
            Look::Entries(entries) => self.ahead.extend(entries),
            Look::Behind => {
                if !self.read_on(cursor).await? {
                    // The store has forgotten them: the run was undone.
                    self.cursor = Some(cursor.max(tape.dropped()));
                }
            }
            Look::Wait => return Ok(Some(AtHand::Later)),
            Look::End => return Ok(Some(AtHand::Never)),
            Look::Elsewhere => self.tape = None,
        }
        Ok(None)
    }

    /// At a run of another process, or one that has ended; `None` to look again.
    async fn glance(&mut self) -> Result<Option<AtHand>, StoreError> {
        let store = self.runtime.store();
        // Before its events: the end of a run and the end of its log are one write.
        let active = store.run(&self.run).await?.is_some_and(|run| run.status.is_active());
        let cursor = match self.cursor {
            Some(cursor) => cursor,
            None => store.event_bounds(&self.run).await?.map_or(0, |(_, last)| last.seq),
        };
        self.cursor = Some(cursor);
        if self.read_on(cursor).await? {
            return Ok(None);
        }
        self.tape = self.runtime.tape(&self.run);
        Ok(match (active, &self.tape) {
            (false, _) => Some(AtHand::Never),
            (true, None) => Some(AtHand::Later),
            (true, Some(_)) => None,
        })
    }

    /// Whether the store has more.
    async fn read_on(&mut self, cursor: u64) -> Result<bool, StoreError> {
        let scope = EventScope::Run(self.run.clone());
        for event in self.runtime.store().page_of_events(&scope, cursor, PAGE).await? {
            self.ahead.push_back(Arc::new(Entry::stored(event)?));
        }
        Ok(!self.ahead.is_empty())
    }
}
