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
    runtime: Runtime,
    /// While the run is executed in this process.
    tape: Option<Arc<Tape>>,
    /// None until it is known what the newest event is.
    cursor: Option<u64>,
    ahead: VecDeque<Arc<Entry>>,
    ended: bool,
}

/// How many events are read from the store at once.
const PAGE: u64 = 512;
/// How often a run that another process executes is looked at.
const GLANCE: Duration = Duration::from_millis(100);

impl Follower {
    pub(crate) fn new(run: RunId, runtime: Runtime, after: After) -> Self {
        let tape = runtime.tape(&run);
        let cursor = match after {
            After::Start => Some(0),
            After::Now => tape.as_ref().map(|tape| tape.newest()),
            // Frames of one event share its number's place; the event is rendered again and its first frames dropped.
            After::Frame(id) => Some((id.seq / FRAMES * FRAMES).saturating_sub(1)),
        };
        Self { run, runtime, tape, cursor, ahead: VecDeque::new(), ended: false }
    }

    /// The next event; `None` when the run has ended and all was read.
    pub async fn next(&mut self) -> Result<Option<Arc<Entry>>, StoreError> {
        loop {
            if let Some(entry) = self.ahead.pop_front() {
                self.cursor = Some(entry.id.seq);
                let last = matches!(entry.logged.event, LogEvent::Ended { .. });
                self.ended = last && entry.logged.namespace.is_empty();
                return Ok(Some(entry));
            }
            if self.ended {
                return Ok(None);
            }
            let more = match self.tape.clone() {
                Some(tape) => self.look(&tape).await?,
                None => self.glance().await?,
            };
            if !more {
                return Ok(None);
            }
        }
    }

    /// At a run of this process.
    async fn look(&mut self, tape: &Tape) -> Result<bool, StoreError> {
        let mut changes = tape.changes();
        let cursor = self.cursor.unwrap_or_else(|| tape.newest());
        self.cursor = Some(cursor);
        match tape.look(cursor) {
            Look::Entries(entries) => self.ahead.extend(entries),
            Look::Behind => {
                if !self.read_on(cursor).await? {
                    self.cursor = Some(tape.dropped());
                }
            }
            Look::Wait => {
                let _ = changes.changed().await;
            }
            Look::End => return Ok(false),
            Look::Elsewhere => self.tape = None,
        }
        Ok(true)
    }

    /// At a run of another process, or one that has ended.
    async fn glance(&mut self) -> Result<bool, StoreError> {
        let store = self.runtime.store();
        // Before its events: the end of a run and the end of its log are one write.
        let active = store.run(&self.run).await?.is_some_and(|run| run.status.is_active());
        let cursor = match self.cursor {
            Some(cursor) => cursor,
            None => store.event_bounds(&self.run).await?.map_or(0, |(_, last)| last.seq),
        };
        self.cursor = Some(cursor);
        if self.read_on(cursor).await? {
            return Ok(true);
        }
        self.tape = self.runtime.tape(&self.run);
        if active && self.tape.is_none() {
            tokio::time::sleep(GLANCE).await;
        }
        Ok(active)
    }

    /// Whether the store has more.
    async fn read_on(&mut self, cursor: u64) -> Result<bool, StoreError> {
        let scope = EventScope::Run(self.run.clone());
        for event in self.runtime.store().events(&scope, cursor, PAGE).await? {
            self.ahead.push_back(Arc::new(Entry::stored(event)?));
        }
        Ok(!self.ahead.is_empty())
    }
}
