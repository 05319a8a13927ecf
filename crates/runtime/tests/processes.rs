//! Several processes over one file: real ones, killed for real.
#![allow(
    clippy::disallowed_methods,
    reason = "a test is a process of its own, and told so by its environment"
)]

use std::collections::HashSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hart_runtime::port::EventScope;
use hart_runtime::{After, LogEvent, Run, StartRun};
use hart_testkit::{eventually, in_time};
use hart_types::{CancelAction, RunStatus};

use crate::support::{World, says};

/// Tells the test below that it is to be a process of its own.
const ROLE: &str = "HART_TEST_PROCESS";

/// A process that runs `count` runs on each thread, one after the other.
fn process(path: &Path, threads: &[&str], count: usize, words: &str) -> Child {
    let role = format!("{}\n{}\n{count}\n{words}", path.display(), threads.join(","));
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::in_a_process_of_its_own", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What [`process`] does; by itself it does nothing.
#[tokio::test]
async fn in_a_process_of_its_own() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let [path, threads, count, words] = role.lines().collect::<Vec<_>>()[..] else { panic!("{role}") };
    let world = World::over(Path::new(path)).await;
    for _ in 0..count.parse().unwrap() {
        for thread in threads.split(',') {
            let run = world.run(says(thread, words)).await;
            assert_eq!(run.status, RunStatus::Success, "{:?}", run.error);
        }
    }
}

async fn runs(world: &World, thread: &str) -> Vec<Run> {
    let query =
        hart_runtime::port::RunQuery { thread: Some(thread.into()), limit: 1000, ..Default::default() };
    world.runtime.store().runs(&query).await.unwrap()
}

/// The first run of a thread, once it is being executed.
async fn running(world: &World, thread: &str) -> Run {
    let executed = async || {
        let found = runs(world, thread).await;
        found.into_iter().find(|run| run.status == RunStatus::Running)
    };
    eventually("a run is executed", executed).await
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_side_by_side_leave_each_others_runs_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    // Both also make the file, at the same time.
    let mut others = [
        process(&path, &["a", "shared"], 8, "SAY from a"),
        process(&path, &["b", "shared"], 8, "SAY from b"),
    ];
    let world = World::over(&path).await;
    for _ in 0..8 {
        assert_eq!(world.run(says("shared", "SAY from here")).await.status, RunStatus::Success);
    }
    for other in &mut others {
        let status = tokio::task::block_in_place(|| other.wait().unwrap());
        assert!(status.success());
    }
    let shared = runs(&world, "shared").await;
    assert_eq!(shared.len(), 24);
    assert!(shared.iter().chain(&runs(&world, "a").await).all(|run| run.status == RunStatus::Success));
    assert_eq!(world.texts("shared").await.len(), 48);

    // Every run's events are together and in order, and runs follow each other.
    let store = world.runtime.store();
    let events = store.events(&EventScope::Thread("shared".into()), 0, 10_000).await.unwrap();
    let mut seen = HashSet::new();
    let mut previous = None;
    for event in &events {
        if previous.as_ref() != Some(&event.run) {
            assert!(seen.insert(event.run.clone()), "events of {} are torn apart", event.run);
            previous = Some(event.run.clone());
        }
    }
    assert_eq!(seen.len(), 24);
    let times: Vec<u64> = events.iter().map(|event| event.id.ms).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_process_is_followed_and_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let world = World::over(&path).await;
    let mut other = process(&path, &["t"], 1, "SLOW 1000 50");
    let run = running(&world, "t").await;
    let mut follower = world.runtime.follow(&run.id, After::Start);
    for _ in 0..5 {
        follower.next().await.unwrap().unwrap();
    }
    world.runtime.cancel(&run.id, CancelAction::Interrupt).await.unwrap();
    while follower.next().await.unwrap().is_some() {}
    world.runtime.wait(&run.id).await;
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Interrupted);
    let status = tokio::task::block_in_place(|| other.wait().unwrap());
    assert!(!status.success(), "its run did not succeed");
    assert_eq!(world.run(says("t", "SAY on")).await.status, RunStatus::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_another_process_stops_before_it_begins_is_over_for_whoever_follows_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let (here, there) = (World::over(&path).await, World::over(&path).await);
    let mut running = here.runtime.follow(&here.start("t", "SLOW 1000 50").await.id, After::Start);
    running.next().await.unwrap().unwrap();
    let waiting = here.start("t", "SAY later").await;
    let delayed = StartRun { after_seconds: 3600.0, ..says("u", "SAY much later") };
    let delayed = here.runtime.start(delayed).await.unwrap();
    for run in [&waiting, &delayed] {
        let mut follower = here.runtime.follow(&run.id, After::Start);
        there.runtime.cancel(&run.id, CancelAction::Interrupt).await.unwrap();
        in_time("the stream ends", async { while follower.next().await.unwrap().is_some() {} }).await;
        in_time("nobody waits for it", here.runtime.wait(&run.id)).await;
        assert_eq!(here.ended(&run.id).await.status, RunStatus::Interrupted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_in_another_process_when_its_own_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let world = World::over(&path).await;
    let mut other = process(&path, &["t"], 1, "SLOW 20 60");
    let run = running(&world, "t").await;
    // Read from its log, as nothing else connects the two.
    let mut follower = world.runtime.follow(&run.id, After::Start);
    let mut told = Vec::new();
    while !told.iter().any(|event| matches!(event, LogEvent::Chunk { .. })) {
        told.push(follower.next().await.unwrap().unwrap().logged.event.clone());
    }
    // SIGKILL.
    other.kill().unwrap();
    tokio::task::block_in_place(|| other.wait().unwrap());
    let mut last = 0;
    while let Some(entry) = follower.next().await.unwrap() {
        assert!(entry.id.seq > last, "events come in order");
        last = entry.id.seq;
        told.push(entry.logged.event.clone());
    }
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    let attempts: Vec<u32> = told
        .iter()
        .filter_map(|event| match event {
            LogEvent::Started { attempt } => Some(*attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2]);
    let text: Vec<String> = (1..=20).map(|n| format!("tick{n}")).collect();
    assert_eq!(world.texts("t").await, ["SLOW 20 60", &text.join(" ")]);
    assert_eq!(spoken(&told), text.join(" "), "what was said twice is taken back once");
    let next = StartRun { after_seconds: 0.1, ..says("t", "SAY on") };
    assert_eq!(world.run(next).await.status, RunStatus::Success);
}

/// What a client that puts fragments together by their ids ends up with.
fn spoken(told: &[LogEvent]) -> String {
    let mut messages: Vec<(String, String)> = Vec::new();
    for event in told {
        let (LogEvent::Chunk { message, .. } | LogEvent::Message { message, .. }) = event else { continue };
        let message: serde_json::Value = serde_json::from_str(message.get()).unwrap();
        let id = message["id"].as_str().unwrap().to_owned();
        match (message["type"].as_str().unwrap(), messages.iter_mut().find(|(known, _)| *known == id)) {
            ("remove", _) => messages.retain(|(known, _)| *known != id),
            (_, Some((_, text))) => text.push_str(message["content"].as_str().unwrap()),
            (_, None) => messages.push((id, message["content"].as_str().unwrap().to_owned())),
        }
    }
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0).1
}
