//! Reading logs: of a run, of a thread, and what is left of them.
//!
//! Invariant: a reader takes nothing away and holds nobody up.

use std::sync::Arc;

use hart_types::{EventId, RunId, ThreadId};

use super::Runtime;
use crate::Run;
use crate::follow::{After, Follower, before_event_of};
use crate::follow_thread::ThreadFollower;
use crate::port::{EventScope, StoreError};

impl Runtime {
    /// Reads a run's log.
    pub fn follow(&self, id: &RunId, after: After) -> Follower {
        let tape = self.inner.lock_live().get(id).map(|live| Arc::clone(&live.tape));
        Follower::new(id.clone(), Arc::clone(&self.inner.store), tape, after)
    }

    /// Reads all runs of a thread, also those that are still to come. The thread need not exist yet.
    pub fn follow_thread(&self, thread: &ThreadId, after: After) -> ThreadFollower {
        let cursor = match after {
            After::Start => 0,
            After::Now => self.inner.sequence.newest(),
            After::Frame(id) => before_event_of(id),
        };
        ThreadFollower::new(self.clone(), thread.clone(), self.inner.doorbells.listen(thread), cursor)
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
        let tape = self.inner.lock_live().get(&id).map(|live| Arc::clone(&live.tape));
        let follower = Follower::behind(id.clone(), Arc::clone(&self.inner.store), tape, cursor);
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
            .map(|live| live.ended.subscribe())
            .collect();
        for mut ended in asking {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}
