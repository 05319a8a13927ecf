//! Crons by a clock that the test moves.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hart_kernel::*;
use hart_runtime::port::{Cron, RunQuery};
use hart_runtime::*;
use hart_types::{CronId, RunStatus};
use serde_json::{Map, json};

use crate::support::{World, open_at, says};

/// Stands still until it is moved.
struct Manual(AtomicI64);

impl Manual {
    fn at(time: &str) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(moment(time).as_microsecond())))
    }

    fn set(&self, time: &str) {
        self.0.store(moment(time).as_microsecond(), Ordering::SeqCst);
    }
}

impl Clock for Manual {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

fn moment(time: &str) -> Timestamp {
    format!("2026-11-{time}Z").parse().unwrap()
}

/// Says the payload's words on the cron's thread.
struct Words;

#[async_trait]
impl CronRequests for Words {
    async fn request(&self, cron: &Cron) -> Result<StartRun, CronRequestError> {
        let words = cron.payload.get("words").and_then(|words| words.as_str());
        let words = words.ok_or_else(|| CronRequestError::Never("it has nothing to say".into()))?;
        Ok(StartRun { thread: cron.thread.clone(), create_thread: false, ..says("t", words) })
    }
}

fn hourly(thread: Option<&str>) -> Cron {
    Cron {
        id: CronId::generate(),
        assistant: "agent".into(),
        thread: thread.map(Into::into),
        user: "default".into(),
        schedule: "@hourly".into(),
        timezone: "UTC".into(),
        end_time: None,
        payload: json!({"words": "SAY hi"}).as_object().unwrap().clone(),
        metadata: Map::new(),
        keep_threads: false,
        enabled: true,
        next_run: None,
        created_at: moment("15T10:00:00"),
        updated_at: moment("15T10:00:00"),
    }
}

async fn world(path: &Path, clock: &Arc<Manual>) -> World {
    World::of(open_at(path, Arc::clone(clock) as Arc<dyn Clock>, Settings::default()).await)
}

/// Runs of the thread that ended well, after all that were started have ended.
async fn done(world: &World) -> usize {
    let query = RunQuery { thread: Some("t".into()), limit: 99, ..RunQuery::default() };
    let runs = world.runtime.store().runs(&query).await.unwrap();
    for run in &runs {
        world.ended(&run.id).await;
    }
    let runs = world.runtime.store().runs(&query).await.unwrap();
    runs.iter().filter(|run| run.status == RunStatus::Success).count()
}

#[tokio::test]
async fn every_due_time_starts_one_run_and_missed_ones_start_one_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let clock = Manual::at("15T10:20:00");
    let first = world(&path, &clock).await;
    first.run(says("t", "SAY made")).await;
    let cron = first.runtime.create_cron(hourly(Some("t"))).await.unwrap();
    assert_eq!(cron.next_run, Some(moment("15T11:00:00")));
    assert_eq!(first.runtime.run_due_crons(&Words).await.unwrap(), Some(moment("15T11:00:00")));
    assert_eq!(done(&first).await, 1);
    clock.set("15T11:00:00");
    for _ in 0..3 {
        assert_eq!(first.runtime.run_due_crons(&Words).await.unwrap(), Some(moment("15T12:00:00")));
    }
    assert_eq!(done(&first).await, 2);
    drop(first);
    // Nobody is there for two hours.
    clock.set("15T13:30:00");
    let second = world(&path, &clock).await;
    assert_eq!(second.runtime.run_due_crons(&Words).await.unwrap(), Some(moment("15T14:00:00")));
    assert_eq!(done(&second).await, 3);
}

/// The process ends between taking the run in and noting the next time.
#[tokio::test]
async fn a_due_time_that_a_crash_cut_short_is_not_started_twice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let clock = Manual::at("15T10:20:00");
    let first = world(&path, &clock).await;
    first.run(says("t", "SAY made")).await;
    let cron = first.runtime.create_cron(hourly(Some("t"))).await.unwrap();
    clock.set("15T11:00:00");
    let due = first.runtime.store().cron(&cron.id).await.unwrap().unwrap();
    first.runtime.run_due_crons(&Words).await.unwrap();
    assert_eq!(done(&first).await, 2);
    // As if the note had not been taken.
    let noted = first.runtime.store().cron(&cron.id).await.unwrap().unwrap();
    assert!(first.runtime.store().replace_cron(due, noted.updated_at).await.unwrap());
    assert_eq!(first.runtime.run_due_crons(&Words).await.unwrap(), Some(moment("15T12:00:00")));
    assert_eq!(done(&first).await, 2);
}

#[tokio::test]
async fn a_cron_ends_rests_and_gives_up() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Manual::at("15T10:20:00");
    let world = world(&dir.path().join("hart.db"), &clock).await;
    world.run(says("t", "SAY made")).await;
    let create = |cron: Cron| world.runtime.create_cron(cron);
    let ends = Cron { end_time: Some(moment("15T11:30:00")), ..hourly(Some("t")) };
    let ends = create(ends).await.unwrap();
    let rests = create(Cron { enabled: false, ..hourly(Some("t")) }).await.unwrap();
    let gone = create(hourly(Some("gone"))).await.unwrap();
    let mute = create(Cron { payload: Map::new(), ..hourly(Some("t")) }).await.unwrap();
    clock.set("15T11:00:00");
    assert_eq!(world.runtime.run_due_crons(&Words).await.unwrap(), None);
    assert_eq!(done(&world).await, 2);
    let found = async |cron: &Cron| world.runtime.store().cron(&cron.id).await.unwrap().unwrap();
    assert_eq!((found(&ends).await.next_run, found(&ends).await.enabled), (None, true));
    assert_eq!((found(&gone).await.enabled, found(&mute).await.enabled), (false, false));
    // What it would have done while it rested does not come again.
    clock.set("15T15:10:00");
    let rests = world.runtime.change_cron(&rests.id, |cron| cron.enabled = true).await.unwrap();
    assert_eq!(rests.next_run, Some(moment("15T16:00:00")));
    for (schedule, timezone) in [("nope", "UTC"), ("* * * * *", "Mars/Olympus")] {
        let bad = Cron { schedule: schedule.into(), timezone: timezone.into(), ..hourly(None) };
        assert!(world.runtime.create_cron(bad).await.is_err());
    }
}
