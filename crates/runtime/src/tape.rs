//! One run's log while it is being written: fanned out from memory, made durable behind the readers' backs.
//!
//! Invariant: numbers rise under one lock; an event leaves memory only when it is on the disk; a slow disk slows the
//! run, a slow reader slows nobody.

mod hold;
mod reading;
mod recorder;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hart_kernel::{Clock, Reached};
use hart_types::{EventId, RunId, ThreadId};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::event::{LogEvent, Logged};
use crate::failure::chain;
use crate::port::{Lease, NUMBERS, Store, StoreError, StoredEvent};

pub(crate) use self::hold::Hold;
pub(crate) use self::reading::Reading;
pub(crate) use self::recorder::Turn;

/// How many events stay at hand for readers that are a little behind, and how long; others read from the store.
const KEPT: usize = 8192;
const YOUNG: Duration = Duration::from_secs(5);
/// How many may wait for the disk before the run does.
const WAITING: usize = 8192;
/// How much a reader takes at once. One that stands still keeps from leaving memory what it has taken.
const TAKEN: usize = 8 << 10;

/// How many events may follow the one that asks. So many stay in any case.
const LAST_WORDS: usize = 16;

/// An event becomes at most this many frames of one reader, each with a number of its own.
pub(crate) const FRAMES: u64 = 8;

/// An event in its place.
#[derive(Debug)]
pub struct Entry {
    pub id: EventId,
    pub logged: Logged,
    /// The state itself, while it is at hand.
    pub(crate) reached: Option<Reached>,
    /// About how many bytes it is in memory.
    size: usize,
}

impl Entry {
    /// Whether the state that it is of need not be read.
    pub fn is_at_hand(&self) -> bool {
        self.reached.is_some()
    }

    pub(crate) fn stored(event: StoredEvent) -> Result<Self, StoreError> {
        let logged = serde_json::from_slice(&event.payload)
            .map_err(|error| StoreError::failed(format!("event {} cannot be read", event.id), error))?;
        Ok(Self { id: event.id, logged, reached: None, size: event.payload.len() })
    }
}

pub(crate) struct Tape {
    run: RunId,
    thread: ThreadId,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Held for a push or a look, never across an await.
    reel: Mutex<Reel>,
    /// Bumped at every change, so that nobody has to poll.
    changed: watch::Sender<u64>,
    /// Held by whoever writes events to the store: they get there in order.
    writing: tokio::sync::Mutex<()>,
    /// Tells the recorder not to wait for more.
    hurry: Notify,
    readers: AtomicUsize,
    /// Whether anybody has read it.
    was_read: AtomicBool,
    /// Nothing follows here.
    over: CancellationToken,
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
    /// Whoever writes on does it in another process.
    left: bool,
    /// The next number, and the first that is not ours.
    next: u64,
    end: u64,
    /// Where those who wait for the disk have begun to hold back, oldest first.
    holds: VecDeque<u64>,
    /// The number of the newest state of the run's own agent.
    last_state: Option<u64>,
    /// The states are nowhere else until the run ends, so age is no reason to let go of them.
    keeps_states: bool,
}

impl Reel {
    /// Lets go of what is on the disk and more than readers need who are not far behind.
    fn let_go(&mut self) {
        let young = self.last_ms.saturating_sub(u64::try_from(YOUNG.as_millis()).unwrap_or(u64::MAX));
        while let Some(oldest) = self.entries.front() {
            let is_old = !self.keeps_states && self.entries.len() > LAST_WORDS && oldest.id.ms < young;
            let is_surplus = self.entries.len() > KEPT || is_old;
            if !is_surplus || oldest.id.seq > self.durable {
                return;
            }
            self.dropped = oldest.id.seq;
            self.entries.pop_front();
        }
    }

    /// How many of the entries readers may see.
    fn shown(&self) -> usize {
        match self.holds.front() {
            Some(from) => self.entries.partition_point(|entry| entry.id.seq < *from),
            None => self.entries.len(),
        }
    }
}

/// What a reader finds behind its cursor.
pub(crate) enum Look {
    Entries(Vec<Arc<Entry>>),
    /// Some of it has left memory: read the store.
    Behind,
    Wait,
    End,
    /// The store has the rest, as another process writes it.
    Elsewhere,
}

impl Tape {
    pub(crate) fn new(run: RunId, thread: ThreadId, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            run,
            thread,
            store,
            clock,
            reel: Mutex::default(),
            changed: watch::Sender::new(0),
            writing: tokio::sync::Mutex::default(),
            hurry: Notify::new(),
            readers: AtomicUsize::new(0),
            was_read: AtomicBool::new(false),
            over: CancellationToken::new(),
        }
    }

    /// The run is executed from now on, with numbers of its own. Of a later attempt, what came before is in the store.
    pub(crate) fn begin(&self, lease: &Lease, attempt: u32) {
        let mut reel = self.reel();
        (reel.next, reel.end) = (lease.token, lease.token + NUMBERS);
        if attempt > 1 {
            reel.dropped = lease.token - 1;
            reel.durable = reel.dropped;
        }
        drop(reel);
        self.bump();
    }

    /// For a run that keeps its steps to itself until its end.
    pub(crate) fn keeping_states(self, keeps_states: bool) -> Self {
        self.reel().keeps_states = keeps_states;
        self
    }

    /// Adds an event. Waits only when the disk is far behind.
    pub(crate) async fn push(&self, logged: Logged, reached: Option<Reached>) {
        if self.is_full() {
            let mut changes = self.changed.subscribe();
            while self.is_full() {
                // The recorder lives as long as the tape is open.
                let _ = changes.changed().await;
            }
        }
        self.put(logged, reached).await;
    }

    async fn put(&self, logged: Logged, reached: Option<Reached>) {
        let size = logged.size();
        let is_state = logged.namespace.is_empty() && matches!(logged.event, LogEvent::Values { .. });
        let put = |reel: &mut Reel, id: EventId| {
            reel.last_state = if is_state { Some(id.seq) } else { reel.last_state };
            reel.entries.push_back(Arc::new(Entry { id, logged, reached, size }));
        };
        if self.numbered(put).await.is_some() {
            self.bump();
        }
    }

    /// The run's last events in their places, which nobody sees yet; see [`Tape::close`]. None when the run is not ours
    /// any more.
    pub(crate) async fn last(&self, events: Vec<LogEvent>) -> Option<Vec<Arc<Entry>>> {
        let mut last = Vec::with_capacity(events.len());
        for event in events {
            let logged = Logged { namespace: Vec::new(), event };
            let size = logged.size();
            let entry = |_: &mut Reel, id| Arc::new(Entry { id, logged, reached: None, size });
            last.push(self.numbered(entry).await?);
        }
        Some(last)
    }

    /// Gives the next number, under the lock under which `put` uses it.
    async fn numbered<T>(&self, put: impl FnOnce(&mut Reel, EventId) -> T) -> Option<T> {
        loop {
            {
                let mut reel = self.reel();
                if reel.left {
                    return None;
                }
                if reel.next < reel.end {
                    let now = u64::try_from(self.clock.now().as_millisecond()).unwrap_or(0);
                    reel.last_ms = reel.last_ms.max(now);
                    let id = EventId { ms: reel.last_ms, seq: reel.next };
                    reel.next += FRAMES;
                    return Some(put(&mut reel, id));
                }
            }
            match self.store.numbers().await {
                Ok(first) => {
                    let mut reel = self.reel();
                    (reel.next, reel.end) = (first, first + NUMBERS);
                }
                Err(error) => {
                    if !matches!(error, StoreError::Full) {
                        let error = chain(&error);
                        tracing::error!(run = %self.run, error, "events cannot be numbered; trying again");
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    pub(crate) fn is_of(&self, thread: &ThreadId) -> bool {
        self.thread == *thread
    }

    /// Nothing follows but these, which are on the disk already.
    pub(crate) fn close(&self, last: Vec<Arc<Entry>>) {
        let mut reel = self.reel();
        reel.durable = last.last().map_or(reel.durable, |last| last.id.seq);
        reel.entries.extend(last);
        reel.closed = true;
        drop(reel);
        self.bump();
        self.over.cancel();
        self.hurry.notify_one();
    }

    /// Nothing follows here.
    pub(crate) fn leave(&self) {
        self.reel().left = true;
        self.bump();
        self.over.cancel();
        self.hurry.notify_one();
    }

    /// As they are kept. Made when they are about to be: most of them are read from memory, and none is there twice.
    pub(crate) fn stored(&self, entries: &[Arc<Entry>]) -> Vec<StoredEvent> {
        let stored = |entry: &Arc<Entry>| StoredEvent {
            id: entry.id,
            run: self.run.clone(),
            thread: self.thread.clone(),
            payload: serde_json::to_vec(&entry.logged).unwrap_or_default().into(),
        };
        entries.iter().map(stored).collect()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The number of the newest event that readers may see.
    pub(crate) fn newest(&self) -> u64 {
        let reel = self.reel();
        let last = reel.shown().checked_sub(1).and_then(|last| reel.entries.get(last));
        last.map_or(reel.dropped, |entry| entry.id.seq)
    }

    /// Returns when nothing follows here.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// The number before the newest state of the run's own agent, of a run that ended here.
    pub(crate) fn before_last_state(&self) -> Option<u64> {
        let reel = self.reel();
        reel.last_state.filter(|_| reel.closed).map(|state| state - 1)
    }

    /// The number up to which the store alone has what there is.
    pub(crate) fn dropped(&self) -> u64 {
        self.reel().dropped
    }

    /// The number of the first event at hand behind the cursor, of a run that has begun.
    pub(crate) fn first_after(&self, cursor: u64) -> Option<u64> {
        let reel = self.reel();
        let began = |entry: &Arc<Entry>| matches!(entry.logged.event, LogEvent::Started { .. });
        if reel.dropped == 0 && !reel.entries.front().is_some_and(began) {
            return None;
        }
        let at = reel.entries.partition_point(|entry| entry.id.seq <= cursor);
        reel.entries.range(..reel.shown()).nth(at).map(|entry| entry.id.seq)
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

    pub(crate) fn look(&self, cursor: u64) -> Look {
        let reel = self.reel();
        if cursor < reel.dropped {
            return Look::Behind;
        }
        let start = reel.entries.partition_point(|entry| entry.id.seq <= cursor);
        let mut size = 0;
        let fits = |entry: &&Arc<Entry>| {
            let is_first = size == 0;
            size += entry.size;
            is_first || size <= TAKEN
        };
        let shown = reel.entries.range(..reel.shown()).skip(start);
        let found: Vec<_> = shown.take_while(fits).cloned().collect();
        match found.is_empty() {
            false => Look::Entries(found),
            true if reel.closed => Look::End,
            true if reel.left => Look::Elsewhere,
            true => Look::Wait,
        }
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
