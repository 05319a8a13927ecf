//! What must hold when all is over, whatever happened.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use hart_runtime::port::{EventScope, HistoryQuery, RunQuery, StoredEvent};
use hart_runtime::{LogEvent, Logged, Run, Runtime};
use hart_testkit::sim::{Machine, Random};
use hart_types::{Durability, RunStatus, ThreadId};
use serde_json::Value;

use super::Fate;
use super::plans::{Job, Planned};
use super::world::{self, World};
use crate::told::{Spoken, Told, assert_same_but_for_unknown, sort_batches, told, transcript};

/// What the plan's run leaves on a machine where nothing happens.
pub(super) fn undisturbed(plan: &'static str) -> Vec<Spoken> {
    static KNOWN: LazyLock<Mutex<HashMap<&'static str, Vec<Spoken>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap();
    known
        .entry(plan)
        .or_insert_with(|| std::thread::spawn(move || run_undisturbed(plan)).join().unwrap())
        .clone()
}

fn run_undisturbed(plan: &'static str) -> Vec<Spoken> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let machine = Machine::new(world::formatted(), Random::new(0), Vec::new(), false);
        let (world, job) = (World::new(machine), Job::undisturbed(plan));
        world.live(&Fate { nodes: 1, jobs: vec![job.clone()], troubles: Vec::new() }).await;
        messages(&world.left().await, &job.thread.as_str().into()).await
    })
}

/// Also the longest time in which nothing was told of a run that was accepted and had not ended.
pub(super) async fn judge(world: &World, fate: &Fate) -> Duration {
    let left = world.left().await;
    let store = left.store();
    let accepted = world.accepted.lock().unwrap().clone();
    for (_, id) in &accepted {
        let run = store.run(id).await.unwrap().expect("what was accepted is there");
        assert!(!run.status.is_active(), "{run:?}");
        assert!(store.effects(id).await.unwrap().is_empty(), "effects go with the run's end");
    }
    let mut longest = Duration::ZERO;
    for job in &fate.jobs {
        longest = longest.max(judge_thread(world, fate, &left, job).await);
    }
    let mut done: HashMap<String, Vec<String>> = HashMap::new();
    for (what, key) in world.book.lock().unwrap().iter() {
        let keys = done.entry(what.clone()).or_default();
        // What services know by its key happens once under one key.
        if !(what.starts_with("put ") && keys.contains(key)) {
            keys.push(key.clone());
        }
    }
    for (what, keys) in &done {
        assert!(what.starts_with("peek ") || keys.len() == 1, "{what} happened {} times", keys.len());
    }
    longest
}

async fn judge_thread(world: &World, fate: &Fate, left: &Runtime, job: &Job) -> Duration {
    let (store, thread): (_, ThreadId) = (left.store(), job.thread.as_str().into());
    let query = RunQuery { thread: Some(thread.clone()), limit: 9, ..RunQuery::default() };
    let mut runs = store.runs(&query).await.unwrap();
    runs.reverse();
    let failed = runs.iter().any(|run| run.status != RunStatus::Success);
    let spoken = messages(left, &thread).await;
    // A run that a broken disk ended and a crash kept from being told so goes on with what the model was told.
    let told_of_disk = spoken.iter().any(|(_, text)| text.starts_with("Error: the run ended here"));
    assert!(!told_of_disk || fate.breaks());
    runs.iter().for_each(|run| assert_ended_well(fate, job, run, told_of_disk));
    if !failed && !told_of_disk {
        let expected = job.runs.iter().flat_map(expected).collect::<Vec<_>>();
        assert_same_but_for_unknown(&job.thread, &spoken, &expected, |_| false);
        for what in spoken.iter().filter_map(|(_, text)| text.strip_suffix(": done")) {
            let what = what.trim_start_matches("much ");
            let happened = world.book.lock().unwrap().iter().any(|(done, _)| done == what);
            assert!(happened, "{what} did not happen, and nobody said so");
        }
    }
    let events = store.events(&EventScope::Thread(thread.clone()), 0, 100_000).await.unwrap();
    let Told { messages: mut streamed, ended } = told(&events);
    assert_eq!(ended, runs.len(), "every run's log ends once");
    for run in &runs {
        let of_run = events.iter().filter(|event| event.run == run.id);
        let last: Logged = serde_json::from_slice(&of_run.last().unwrap().payload).unwrap();
        assert!(matches!(last.event, LogEvent::Ended { status } if status == run.status), "{last:?}");
    }
    if !failed {
        let mut transcript = spoken;
        sort_batches(&mut transcript);
        sort_batches(&mut streamed);
        assert_eq!(streamed, transcript, "whoever followed knows what the thread holds");
    }
    let history =
        store.history(&thread, &HistoryQuery { limit: 1000, ..HistoryQuery::default() }).await.unwrap();
    let line = store.steps(&thread, None).await.unwrap();
    assert_eq!(history.len(), line.len(), "steps are in one line");
    let mut numbers: Vec<i64> = history.iter().rev().map(|step| step.number).collect();
    // A question comes no further.
    numbers.dedup();
    let first = numbers.first().copied().unwrap_or(0);
    assert!(
        numbers.iter().zip(first..).all(|(found, wanted)| *found == wanted),
        "a step is missing: {numbers:?}"
    );
    longest_pause(&runs, &events)
}

fn longest_pause(runs: &[Run], events: &[StoredEvent]) -> Duration {
    let mut longest = 0;
    for (nth, run) in runs.iter().enumerate() {
        let told = events.iter().filter(|event| event.run == run.id).map(|event| event.id.ms);
        // The first begins when it is accepted; the others wait for those before them.
        let accepted = (nth == 0).then(|| run.created_at.as_millisecond().unsigned_abs());
        let times: Vec<u64> = accepted.into_iter().chain(told).collect();
        longest = times.windows(2).map(|pair| pair[1] - pair[0]).fold(longest, u64::max);
    }
    Duration::from_millis(longest)
}

fn assert_ended_well(fate: &Fate, job: &Job, run: &Run, told_of_disk: bool) {
    if run.status == RunStatus::Success {
        return;
    }
    let failure = run.error.as_ref().unwrap_or_else(|| panic!("{run:?}"));
    let excused = match failure.error.as_str() {
        // Nothing of it was to be kept.
        "Orphaned" => job.runs.iter().any(|planned| planned.durability == Durability::Exit),
        // The disk said that it is broken; inside of a call that is the call's failure.
        "StorageError" | "InternalError" => fate.breaks(),
        // The call that was to ask has the disk's failure for its answer.
        "UnknownInterruptError" => told_of_disk,
        _ => false,
    };
    assert!(excused, "{failure:?}");
}

fn expected(planned: &Planned) -> Vec<Spoken> {
    let own = |(kind, text): &Spoken| (kind.clone(), text.replace("ID", &planned.id));
    undisturbed(planned.plan).iter().map(own).collect()
}

async fn messages(left: &Runtime, thread: &ThreadId) -> Vec<Spoken> {
    let state = left.state(thread, None).await.unwrap();
    let values: Value = serde_json::from_slice(&state.values).unwrap();
    transcript(&values)
}
