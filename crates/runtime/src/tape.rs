//! One run's log while it is being written: fanned out from memory, made durable behind the readers' backs.
//!
//! Invariant: numbers rise under one lock; an event leaves memory only when it is on the disk; a slow disk slows the
//! run, a slow reader slows nobody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hart_kernel::{Clock, Reached};
use hart_types::{EventId, RunId, ThreadId};
use tokio::sync::watch;

use crate::event::{LogEvent, Logged};
use crate::port::{Store, StoreError, StoredEvent};

/// How many events stay at hand for readers that are a little behind; others read from the store.
const KEPT: usize = 1024;
/// How many may wait for the disk before the run does.
const WAITING: usize = 8192;
/// How many go into one write.
const BATCH: usize = 1024;

/// How many events may follow the one that asks.
const LAST_WORDS: usize = 16;

/// Numbers for all events of a store.
#[derive(Debug)]
pub(crate) struct Sequence(AtomicU64);

impl Sequence {
    /// Numbers that a crash kept off the disk may have been seen: none of them is given again.
    const MARGIN: u64 = 1 << 20;

    pub(crate) fn after(last: u64) -> Self {
        let margin = if last == 0 { 0 } else { Self::MARGIN };
        Self(AtomicU64::new((last + margin).next_multiple_of(FRAMES)))
    }

    /// Every number that is still to come is higher.
    pub(crate) fn newest(&self) -> u64 {
        self.0.load(Ordering::Relaxed) + FRAMES - 1
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(FRAMES, Ordering::Relaxed) + FRAMES
    }
}

/// An event becomes at most this many frames of one reader, each with a number of its own.
pub(crate) const FRAMES: u64 = 8;

/// An event in its place.
#[derive(Debug)]
pub struct Entry {
    pub id: EventId,
    pub logged: Logged,
    /// The state itself, while it is at hand.
    pub(crate) reached: Option<Reached>,
    payload: Bytes,
}

impl Entry {
    pub(crate) fn stored(event: StoredEvent) -> Result<Self, StoreError> {
        let logged = serde_json::from_slice(&event.payload)
            .map_err(|error| StoreError::failed(format!("event {} cannot be read", event.id), error))?;
        Ok(Self { id: event.id, logged, reached: None, payload: event.payload })
    }
}

pub(crate) struct Tape {
    run: RunId,
    thread: ThreadId,
    sequence: Arc<Sequence>,
    clock: Arc<dyn Clock>,
    /// Held for a push or a look, never across an await.
    reel: Mutex<Reel>,
    /// Bumped at every change, so that nobody has to poll.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Reel {
    entries: VecDeque<Arc<Entry>>,
    last_ms: u64,
    /// All up to this number are on the disk.
    durable: u64,
    /// All up to this number are on the disk alone.
    dropped: u64,
    closed: bool,
}

/// What a reader finds behind its cursor.
pub(crate) enum Look {
    Entries(Vec<Arc<Entry>>),
    /// Some of it has left memory: read the store.
    Behind,
    Wait,
    End,
}

impl Tape {
    pub(crate) fn new(run: RunId, thread: ThreadId, sequence: Arc<Sequence>, clock: Arc<dyn Clock>) -> Self {
        Self { run, thread, sequence, clock, reel: Mutex::default(), changed: watch::Sender::new(0) }
    }

    /// Adds an event. Waits only when the disk is far behind.
    pub(crate) async fn push(&self, logged: Logged, reached: Option<Reached>) {
        let mut changes = self.changed.subscribe();
        while self.undurable() >= WAITING {
            // The recorder lives as long as the tape is open.
            let _ = changes.changed().await;
        }
        let payload = serde_json::to_vec(&logged).unwrap_or_default().into();
        let mut reel = self.reel();
        let now = u64::try_from(self.clock.now().as_millisecond()).unwrap_or(0);
        reel.last_ms = reel.last_ms.max(now);
        let id = EventId { ms: reel.last_ms, seq: self.sequence.next() };
        reel.entries.push_back(Arc::new(Entry { id, logged, reached, payload }));
        drop(reel);
        self.bump();
    }

    pub(crate) fn is_of(&self, thread: &ThreadId) -> bool {
        self.thread == *thread
    }

    /// Nothing follows.
    pub(crate) fn close(&self) {
        self.reel().closed = true;
        self.bump();
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The number of the newest event.
    pub(crate) fn newest(&self) -> u64 {
        self.reel().entries.back().map_or(0, |entry| entry.id.seq)
    }

    /// The number of the first event at hand behind the cursor, of a run that has begun.
    pub(crate) fn first_after(&self, cursor: u64) -> Option<u64> {
        let reel = self.reel();
        let began = |entry: &Arc<Entry>| matches!(entry.logged.event, LogEvent::Started { .. });
        if reel.dropped == 0 && !reel.entries.front().is_some_and(began) {
            return None;
        }
        let at = reel.entries.partition_point(|entry| entry.id.seq <= cursor);
        reel.entries.get(at).map(|entry| entry.id.seq)
    }

    /// The first and the last event of the run that memory knows of.
    pub(crate) fn bounds(&self) -> Option<(EventId, EventId)> {
        let reel = self.reel();
        Some((reel.entries.front()?.id, reel.entries.back()?.id))
    }

    /// Whether the run has asked something and is about to end with it.
    pub(crate) fn is_asking(&self) -> bool {
        let reel = self.reel();
        let asks = |entry: &Arc<Entry>| {
            entry.logged.namespace.is_empty() && matches!(entry.logged.event, LogEvent::Paused { .. })
        };
        reel.entries.iter().rev().take(LAST_WORDS).any(asks)
    }

    /// All up to this number have left memory.
    pub(crate) fn dropped(&self) -> u64 {
        self.reel().dropped
    }

    pub(crate) fn look(&self, cursor: u64) -> Look {
        let reel = self.reel();
        if cursor < reel.dropped {
            return Look::Behind;
        }
        let start = reel.entries.partition_point(|entry| entry.id.seq <= cursor);
        let found: Vec<_> = reel.entries.iter().skip(start).take(BATCH).cloned().collect();
        match found.is_empty() {
            false => Look::Entries(found),
            true if reel.closed => Look::End,
            true => Look::Wait,
        }
    }

    /// Puts everything into the store until the tape is closed and all of it is there.
    pub(crate) async fn record(&self, store: &dyn Store) {
        let mut changes = self.changed.subscribe();
        loop {
            let (batch, closed) = self.to_record();
            if batch.is_empty() {
                if closed {
                    return;
                }
                let _ = changes.changed().await;
                continue;
            }
            let last = batch.last().map_or(0, |event| event.id.seq);
            match store.append_events(batch).await {
                Ok(()) => self.recorded(last),
                Err(error) => {
                    tracing::error!(run = %self.run, %error, "events cannot be stored; trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    fn to_record(&self) -> (Vec<StoredEvent>, bool) {
        let reel = self.reel();
        let start = reel.entries.partition_point(|entry| entry.id.seq <= reel.durable);
        let stored = |entry: &Arc<Entry>| StoredEvent {
            id: entry.id,
            run: self.run.clone(),
            thread: self.thread.clone(),
            payload: entry.payload.clone(),
        };
        (reel.entries.iter().skip(start).take(BATCH).map(stored).collect(), reel.closed)
    }

    fn recorded(&self, last: u64) {
        let mut reel = self.reel();
        reel.durable = last;
        while reel.entries.len() > KEPT && reel.entries.front().is_some_and(|entry| entry.id.seq <= last) {
            reel.dropped = reel.entries.pop_front().map_or(reel.dropped, |entry| entry.id.seq);
        }
        drop(reel);
        self.bump();
    }

    fn undurable(&self) -> usize {
        let reel = self.reel();
        reel.entries.len() - reel.entries.partition_point(|entry| entry.id.seq <= reel.durable)
    }

    fn bump(&self) {
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    fn reel(&self) -> MutexGuard<'_, Reel> {
        self.reel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tape").field("run", &self.run).finish_non_exhaustive()
    }
}
