//! Reading logs: of a run, of a thread, and what is left of them.
//!
//! Invariant: a reader takes nothing away and holds nobody up.

use std::sync::Arc;

use hart_types::{EventId, RunId, ThreadId};

use super::{Runtime, Stage};
use crate::Run;
use crate::follow::{After, Follower, before_event_of};
use crate::follow_thread::ThreadFollower;
use crate::port::{EventScope, RunQuery, StoreError};
use crate::tape::Reading;

/// Of so many runs some may be still to come or have said nothing, not all.
const LAST_RUNS: u64 = 32;

impl Runtime {
    /// Reads a run's log.
    pub fn follow(&self, id: &RunId, after: After) -> Follower {
        Follower::new(id.clone(), self.clone(), after)
    }

    /// The log of a run that waits, is executed or just ended in this process.
    pub(crate) fn tape(&self, id: &RunId) -> Option<Reading> {
        let live = self.inner.lock_live().get(id).cloned()?;
        let elsewhere = *live.stage.borrow() == Stage::Elsewhere;
        (!elsewhere).then(|| Reading::of(Arc::clone(&live.tape)))
    }

    /// Reads all runs of a thread from the first on, also those that are still to come. It need not exist yet.
    pub fn follow_whole_thread(&self, thread: &ThreadId) -> ThreadFollower {
        ThreadFollower::new(self.clone(), thread.clone(), self.inner.doorbells.listen(thread), 0)
    }

    /// As [`Runtime::follow_whole_thread`], from some place on.
    pub async fn follow_thread(&self, thread: &ThreadId, after: After) -> Result<ThreadFollower, StoreError> {
        let listener = self.inner.doorbells.listen(thread);
        let cursor = match after {
            After::Start => 0,
            After::Now => self.newest_of_thread(thread).await?,
            After::Frame(id) => before_event_of(id),
        };
        Ok(ThreadFollower::new(self.clone(), thread.clone(), listener, cursor))
    }

    /// The number of the thread's newest event. Runs of a thread come one after the other, and their numbers rise.
    async fn newest_of_thread(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        let of_thread = RunQuery { thread: Some(thread.clone()), limit: LAST_RUNS, ..RunQuery::default() };
        let mut newest = 0;
        for run in self.inner.store.runs(&of_thread).await? {
            newest = newest.max(self.kept(&run.id).await?.map_or(0, |(_, last)| last.seq));
        }
        Ok(newest)
    }

    /// The run that has the first event of the thread behind the cursor, and its log from there on.
    pub(crate) async fn next_of_thread(
        &self,
        thread: &ThreadId,
        cursor: u64,
    ) -> Result<Option<(u64, Option<Run>, Follower)>, StoreError> {
        // Memory first: what leaves it in between is in the store by then.
        let live = {
            let live = self.inner.lock_live();
            let of_thread = live.iter().filter(|(_, live)| live.tape.is_of(thread));
            of_thread.filter_map(|(id, live)| Some((live.tape.first_after(cursor)?, id.clone()))).min()
        };
        let scope = EventScope::Thread(thread.clone());
        let stored = self.inner.store.events(&scope, cursor, 1).await?.pop();
        let stored = stored.map(|event| (event.id.seq, event.run));
        let Some((first, id)) = [live, stored].into_iter().flatten().min() else { return Ok(None) };
        let follower = Follower::behind(id.clone(), self.clone(), cursor);
        Ok(Some((first, self.inner.store.run(&id).await?, follower)))
    }

    /// The first and the last event of a run that can still be read.
    pub async fn kept(&self, id: &RunId) -> Result<Option<(EventId, EventId)>, StoreError> {
        // Memory first: what leaves it in between is in the store by then.
        let live = self.inner.lock_live().get(id).and_then(|live| live.tape.bounds());
        let stored = self.inner.store.event_bounds(id).await?;
        let earlier = |a: EventId, b: EventId| if b.seq < a.seq { b } else { a };
        let later = |a: EventId, b: EventId| if b.seq > a.seq { b } else { a };
        Ok(match (live, stored) {
            (Some(live), Some(stored)) => Some((earlier(live.0, stored.0), later(live.1, stored.1))),
            (live, stored) => live.or(stored),
        })
    }

    /// Returns when what a run of the thread has asked is in the thread's state: it is told a moment before.
    pub async fn until_asked(&self, thread: &ThreadId) {
        let asking: Vec<_> = self
            .inner
            .lock_live()
            .values()
            .filter(|live| live.tape.is_of(thread) && live.tape.is_asking())
            .map(|live| live.stage.subscribe())
            .collect();
        for mut stage in asking {
            let _ = stage.wait_for(|stage| *stage != Stage::Here).await;
        }
    }
}
