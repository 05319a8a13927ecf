//! Several processes over one store: showing that this one lives, and taking over from those that do not.
//!
//! Invariant: a run is taken from a process that is gone, or that has not moved for the time of a lease as measured
//! here. No clock that can be set is asked, so none can take a run from anybody.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use hart_types::{CancelAction, NodeId, RunId, RunStatus, ThreadId};
use tokio::time::Instant;

use super::worker::execute;
use super::{Adopt, Inner, Live, Stage, interrupted};
use crate::Run;
use crate::event::LogEvent;
use crate::failure::chain;
use crate::port::{Holding, Lease, RunEnd, Sign, StoreError};

/// How often a process that has something to do shows that it lives.
const BEAT: Duration = Duration::from_secs(1);
/// A run that is not in the store for so long will not be let in any more.
const LET_IN: Duration = Duration::from_secs(60);
/// How long one may be silent of which nothing else is seen.
const LEASE: Duration = Duration::from_secs(5);
/// How long one may be silent whose process is there: it may be short of time, or stopped for good.
const PATIENCE: Duration = Duration::from_secs(30);
/// From this many attempts without a step a run may be what its processes died of.
const SUSPECT: u32 = 2;
/// How long such a run is watched.
const SUSPENSE: Duration = Duration::from_secs(10);
/// How often a thread is looked at whose next run is another process's.
const TURN: Duration = Duration::from_millis(200);

/// The last beat of each other process, and since when there was no other.
#[derive(Debug, Default)]
pub(super) struct Signs(HashMap<NodeId, Seen>);

#[derive(Debug)]
struct Seen {
    beat: u64,
    since: Instant,
    last: Instant,
}

impl Signs {
    /// Whether whoever holds the run has left it.
    fn has_left(&mut self, holding: &Holding) -> bool {
        let silence = match holding.sign {
            Sign::Gone => return true,
            Sign::There => PATIENCE,
            Sign::None => LEASE,
        };
        let now = Instant::now();
        let seen = self.0.entry(holding.lease.node.clone()).or_insert(Seen {
            beat: holding.beat,
            since: now,
            last: now,
        });
        // Who has nothing to do is silent: silence counts only while somebody watches.
        if seen.beat != holding.beat || now.duration_since(seen.last) > 3 * BEAT {
            (seen.beat, seen.since) = (holding.beat, now);
        }
        seen.last = now;
        now.duration_since(seen.since) >= silence
    }

    /// Forgets those that nobody has asked about for long.
    fn tidy(&mut self) {
        let now = Instant::now();
        self.0.retain(|_, seen| now.duration_since(seen.last) < PATIENCE);
    }
}

/// Beats and looks around as long as the runtime is there.
pub(super) async fn keep_alive(runtime: Weak<Inner>) {
    loop {
        tokio::time::sleep(BEAT).await;
        let Some(inner) = runtime.upgrade() else { return };
        // Of a full disk the store tells.
        if let Err(error) = inner.beat().await
            && !matches!(error, StoreError::Full)
        {
            let error = chain(&error);
            tracing::warn!(error, "this process could not show that it lives; its runs may be taken over");
        }
        if let Err(error) = inner.leave_to_others().await {
            let error = chain(&error);
            tracing::warn!(
                error,
                "it could not be seen whether runs that wait here are still this process's"
            );
        }
        if inner.settings.adopt == Adopt::Everything
            && !inner.closing.is_cancelled()
            && let Err(error) = inner.adopt_all().await
        {
            let error = chain(&error);
            tracing::warn!(error, "runs that other processes left behind could not be looked for");
        }
    }
}

impl Inner {
    /// Shows that this process lives if it has something to do, and hears what became of its runs.
    async fn beat(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let is_active = |live: &&Arc<Live>| *live.stage.borrow() == Stage::Here && live.start_at <= now;
        let active: Vec<Arc<Live>> = self.lock_live().values().filter(is_active).cloned().collect();
        if active.is_empty() {
            return Ok(());
        }
        // Before the store is asked: of what is claimed meanwhile its answer knows nothing. One that is not claimed yet
        // cannot be lost, only late.
        let claimed: Vec<(Arc<Live>, Lease)> = active
            .into_iter()
            .filter_map(|live| live.lease.get().cloned().map(|lease| (live, lease)))
            .collect();
        let held = self.store.beat(&self.node).await?;
        for (live, lease) in claimed {
            match held.iter().find(|held| held.lease == lease) {
                Some(held) => {
                    if let Some(action) = held.stop {
                        live.stop(action);
                    }
                }
                // It may have ended since it was looked at; then nobody listens.
                None => live.lost.cancel(),
            }
        }
        Ok(())
    }

    /// Runs that wait here and that another process has ended or taken meanwhile.
    async fn leave_to_others(&self) -> Result<(), StoreError> {
        let waits = |live: &Live| *live.stage.borrow() == Stage::Here && live.lease.get().is_none();
        let waiting: Vec<(RunId, Arc<Live>)> = {
            let all = self.lock_live();
            let waiting = all.iter().filter(|(_, live)| waits(live));
            waiting.map(|(run, live)| (run.clone(), Arc::clone(live))).collect()
        };
        if waiting.is_empty() {
            return Ok(());
        }
        let holdings = self.store.holdings(None).await?;
        for (run, live) in waiting {
            let elsewhere = match holdings.iter().find(|holding| holding.lease.run == run) {
                Some(holding) => holding.lease.node != self.node,
                None => match self.store.run(&run).await? {
                    Some(run) => !run.status.is_active(),
                    // Undone, unless it is still to be let in.
                    None => live.known_since.elapsed() > LET_IN,
                },
            };
            if elsewhere && waits(&live) {
                self.step_aside(&run, &live);
            }
        }
        Ok(())
    }

    /// Takes over whatever is left behind.
    pub(super) async fn adopt_all(self: &Arc<Self>) -> Result<(), StoreError> {
        let now = self.clock.now();
        for holding in self.store.holdings(None).await? {
            if holding.lease.node == self.node {
                continue;
            }
            let due = holding.start_at <= now || holding.status == RunStatus::Running;
            if (due || holding.sign == Sign::Gone) && self.has_left(&holding) {
                self.adopt(&holding).await?;
            }
        }
        self.signs.lock().unwrap_or_else(PoisonError::into_inner).tidy();
        Ok(())
    }

    async fn adopt(self: &Arc<Self>, holding: &Holding) -> Result<(), StoreError> {
        let mut alone = None;
        if holding.status == RunStatus::Running && holding.tries >= SUSPECT {
            // Its processes may have died of it. One such run at a time: the others are not blamed for its doing.
            let Ok(permit) = Arc::clone(&self.suspect).try_acquire_owned() else { return Ok(()) };
            alone = Some(permit);
        }
        let Some(claimed) = self.store.take_over(&holding.lease, &self.node, self.clock.now()).await? else {
            return Ok(());
        };
        tracing::warn!(run = %claimed.run.id, thread = %claimed.run.thread, from = %holding.lease.node,
            attempt = claimed.attempt, "taken over from a process that is gone");
        let (inner, thread) = (Arc::clone(self), claimed.run.thread.clone());
        if claimed.run.status == RunStatus::Running {
            self.tasks.spawn(async move {
                let mut run = pin!(execute(&inner, claimed));
                if alone.is_none() || tokio::time::timeout(SUSPENSE, run.as_mut()).await.is_err() {
                    // Whoever survives this long with it did not die of it.
                    drop(alone);
                    run.await;
                }
                inner.spawn_lane(thread, None);
            });
        } else {
            self.spawn_lane(thread, None);
        }
        Ok(())
    }

    fn has_left(&self, holding: &Holding) -> bool {
        self.signs.lock().unwrap_or_else(PoisonError::into_inner).has_left(holding)
    }

    /// How long until there may be something to do for this process on the thread; none when there is nothing.
    pub(super) async fn until_next(
        self: &Arc<Self>,
        thread: &ThreadId,
    ) -> Result<Option<Duration>, StoreError> {
        let holdings = self.store.holdings(Some(thread)).await?;
        let ours = |holding: &&Holding| holding.lease.node == self.node;
        let now = self.clock.now();
        let Some(start_at) = holdings.iter().filter(ours).map(|holding| holding.start_at).min() else {
            return Ok(None);
        };
        let running = holdings.iter().find(|holding| holding.status == RunStatus::Running);
        let due = || holdings.iter().find(|holding| holding.start_at <= now);
        match running.or_else(due) {
            // Whoever runs it looks for the next one.
            Some(holding) if ours(&holding) && holding.status == RunStatus::Running => Ok(None),
            Some(holding) if ours(&holding) => Ok(Some(Duration::ZERO)),
            Some(holding) => {
                if self.has_left(holding) {
                    self.adopt(holding).await?;
                }
                Ok(Some(TURN))
            }
            None => {
                let wait = Duration::try_from(start_at.duration_since(now)).unwrap_or_default();
                Ok(Some(wait.max(Duration::from_millis(1))))
            }
        }
    }

    /// Ends a run that nobody executes yet; false when somebody does by now.
    pub(super) async fn end_waiting(
        &self,
        run: &Run,
        live: &Live,
        action: CancelAction,
    ) -> Result<bool, StoreError> {
        let ended = LogEvent::Ended { status: RunStatus::Interrupted };
        let Some(last) = live.tape.last(vec![ended]).await else { return Ok(false) };
        let stopped = match action {
            CancelAction::Interrupt => {
                let events = live.tape.stored(&last);
                let end = RunEnd { events, ..interrupted(self.clock.now()) };
                self.store.end_run(&run.id, end, None).await?.is_some()
            }
            CancelAction::Rollback => self.store.undo_run(&run.id, self.clock.now(), None).await?,
        };
        if stopped {
            self.finish(&run.id, live, last);
            // No request is at hand for a run of another process: its thread knows.
            let thread = self.store.thread(&run.thread).await?;
            if thread.is_some_and(|thread| thread.temporary) {
                self.store.delete_thread(&run.thread).await?;
            }
        }
        Ok(stopped)
    }

    /// Stops a run that is not of this process.
    pub(super) async fn stop_elsewhere(
        self: &Arc<Self>,
        run: &Run,
        action: CancelAction,
    ) -> Result<(), StoreError> {
        let live = self.live(run, crate::StartRun::default());
        if run.status == RunStatus::Pending && self.end_waiting(run, &live, action).await? {
            return Ok(());
        }
        self.store.ask_to_stop(&run.id, action).await?;
        let holdings = self.store.holdings(Some(&run.thread)).await?;
        if let Some(holding) = holdings.iter().find(|holding| holding.lease.run == run.id)
            && self.has_left(holding)
        {
            // Nobody is there to hear it: it is stopped by whoever executes it next, which is us.
            self.adopt(holding).await?;
        }
        Ok(())
    }
}

/// The right to write of a run that is executed here.
pub(super) fn begin(live: &Live, lease: &Lease, attempt: u32) {
    let _ = live.lease.set(lease.clone());
    live.tape.begin(lease, attempt);
}
