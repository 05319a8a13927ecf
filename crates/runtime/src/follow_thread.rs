//! A reader's way through all runs of a thread, one after the other, and on into those to come.
//!
//! Invariant: runs of a thread are told in the order they began, each whole; numbers only rise.

use std::sync::Arc;
use std::time::Duration;

use hart_types::ThreadId;

use crate::doorbell::{Listener, Rings};
use crate::follow::AtHand;
use crate::port::StoreError;
use crate::{Entry, Follower, Run, Runtime};

/// How often a thread is looked at that is quiet in this process.
const GLANCE: Duration = Duration::from_secs(1);

/// Reads a thread. It never ends by itself.
#[derive(Debug)]
pub struct ThreadFollower {
    runtime: Runtime,
    thread: ThreadId,
    listener: Listener,
    seen: Rings,
    cursor: u64,
    current: Option<Told>,
    /// What was waited for.
    ahead: Option<Arc<Entry>>,
}

/// The run that is being told.
#[derive(Debug)]
struct Told {
    /// None if it was undone: then it is passed over.
    run: Option<Arc<Run>>,
    follower: Follower,
    /// The number of the event that is known to be there.
    first: u64,
}

/// Something that happened on a thread.
#[derive(Clone, Debug)]
pub enum ThreadEvent {
    Logged {
        run: Arc<Run>,
        entry: Arc<Entry>,
    },
    /// Its state was changed without a run.
    StateChanged,
}

impl ThreadFollower {
    pub(crate) fn new(runtime: Runtime, thread: ThreadId, listener: Listener, cursor: u64) -> Self {
        let seen = *listener.rings.borrow();
        Self { runtime, thread, listener, seen, cursor, current: None, ahead: None }
    }

    /// The number behind which the next event is.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Waits for the next event. Nothing is lost when it is not waited for to the end.
    pub async fn next(&mut self) -> Result<ThreadEvent, StoreError> {
        loop {
            if let Some(event) = self.at_hand().await? {
                return Ok(event);
            }
            match &mut self.current {
                Some(told) => {
                    if let Some(entry) = told.follower.next().await? {
                        self.ahead = Some(entry);
                    }
                }
                // The bell is there as long as its listener; it does not ring for what another process does.
                None => {
                    let _ = tokio::time::timeout(GLANCE, self.listener.rings.changed()).await;
                }
            }
        }
    }

    /// The next event, if nothing has to be waited for but the store.
    pub async fn at_hand(&mut self) -> Result<Option<ThreadEvent>, StoreError> {
        loop {
            if let Some(told) = &mut self.current {
                let at_hand = match self.ahead.take() {
                    Some(entry) => AtHand::Entry(entry),
                    None => told.follower.at_hand().await?,
                };
                match at_hand {
                    AtHand::Entry(entry) => {
                        self.cursor = self.cursor.max(entry.id.seq);
                        if let Some(run) = &told.run {
                            return Ok(Some(ThreadEvent::Logged { run: Arc::clone(run), entry }));
                        }
                    }
                    AtHand::Later => return Ok(None),
                    AtHand::Never => {
                        // Also when it is gone by now: it is not looked for again.
                        self.cursor = self.cursor.max(told.first);
                        self.current = None;
                    }
                }
                continue;
            }
            let rings = *self.listener.rings.borrow_and_update();
            let next = self.runtime.next_of_thread(&self.thread, self.cursor).await?;
            if let Some((first, run, follower)) = next {
                self.current = Some(Told { run: run.map(Arc::new), follower, first });
            } else if rings.states != self.seen.states {
                self.seen = rings;
                return Ok(Some(ThreadEvent::StateChanged));
            } else {
                return Ok(None);
            }
        }
    }
}
