//! Clocks that are set by a year, forwards and back, while runs are executed and watched.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hart_kernel::{Clock, SystemClock, Timestamp};
use hart_runtime::port::{EventScope, HistoryQuery, RunQuery};
use hart_runtime::{After, LogEvent, Logged, Settings, StartRun};
use hart_types::{Durability, RunStatus, StreamMode};

use crate::support::{World, open_at, says};

/// The system's, and what somebody has set it by, in seconds.
#[derive(Clone, Default)]
struct SetClock(Arc<AtomicI64>);

impl SetClock {
    fn set_by(&self, years: i64) {
        self.0.store(years * 365 * 24 * 3600, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + jiff::SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_a_year_takes_no_run_from_anybody_and_mixes_nothing_up() {
    for years in [1, -1] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hart.db");
        let clock = SetClock::default();
        let open = async || World::of(open_at(&path, Arc::new(clock.clone()), Settings::default()).await);
        let (world, watching) = (open().await, open().await);
        let long = world.start("t", "SLOW 30 100").await;
        let before = world.start("u", "SLOW 5 100").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        clock.set_by(years);
        // Who comes now knows no other time.
        let late = open().await;
        let after = world.start("u", "SAY after the jump").await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        clock.set_by(0);
        for run in [&long, &before, &after] {
            assert_eq!(world.ended(&run.id).await.status, RunStatus::Success, "{years}");
        }
        let store = world.runtime.store();
        for run in [&long, &before, &after] {
            let events = store.events(&EventScope::Run(run.id.clone()), 0, 1000).await.unwrap();
            let started: Vec<u32> = events
                .iter()
                .filter_map(|event| match serde_json::from_slice::<Logged>(&event.payload).unwrap().event {
                    LogEvent::Started { attempt } => Some(attempt),
                    _ => None,
                })
                .collect();
            assert_eq!(started, [1], "{years}: nobody else has taken it");
            assert!(events.is_sorted_by_key(|event| (event.id.seq, event.id.ms)), "{years}");
            assert!(
                events.is_sorted_by_key(|event| event.id.ms),
                "{years}: an id that sorts before earlier ones"
            );
        }
        let query = RunQuery { thread: Some("u".into()), limit: 9, ..RunQuery::default() };
        let order: Vec<_> = store.runs(&query).await.unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(
            order,
            [after.id.clone(), before.id.clone()],
            "{years}: newest first, as they were started"
        );
        let history =
            store.history(&"u".into(), &HistoryQuery { limit: 99, ..HistoryQuery::default() }).await.unwrap();
        assert!(history.is_sorted_by_key(|step| std::cmp::Reverse(step.number)), "{years}");
        assert_eq!(world.texts("u").await.last().unwrap(), "after the jump");
        // All of them go on to be of use.
        for other in [&watching, &late] {
            assert_eq!(other.run(says("u", "SAY fine")).await.status, RunStatus::Success);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_old_leaves_memory_and_a_late_reader_is_told_the_same() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let dir = tempfile::tempdir().unwrap();
        let clock = SetClock::default();
        let settings = Settings::default();
        let world = World::of(open_at(&dir.path().join("hart.db"), Arc::new(clock.clone()), settings).await);
        let request = StartRun { durability, ..says("t", "SLOW 40 20") };
        let run = world.runtime.start(request).await.unwrap();
        let modes = [StreamMode::Values, StreamMode::MessagesTuple];
        let early = world.frames(&run, &modes, After::Start);
        let late = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            clock.set_by(1);
            tokio::time::sleep(Duration::from_millis(300)).await;
            world.frames(&run, &modes, After::Start).await
        };
        let (early, late) = tokio::join!(early, late);
        assert_eq!(early, late, "{durability:?}");
    }
}
