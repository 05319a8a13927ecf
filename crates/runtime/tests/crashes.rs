//! What a crash leaves is taken up by the next process, or said to be lost; here the crash is the end of a tokio runtime.

use std::path::Path;
use std::time::Duration;

use hart_kernel::{Clock as _, SystemClock};
use hart_runtime::port::Lease;
use hart_runtime::{Adopt, After, Input, LogEvent, Run, Settings, StartRun, Thread};
use hart_testkit::{eventually, in_time};
use hart_types::{CancelAction, Durability, RunStatus, StreamMode, ThreadStatus};
use serde_json::json;

use crate::support::{World, data, says};

/// Runs `work` in a process that then dies: its tasks are dropped where they are.
fn dies<T>(path: &Path, work: impl AsyncFnOnce(World) -> T) -> T {
    let process = tokio::runtime::Runtime::new().unwrap();
    let done = process.block_on(in_time("it dies", async { work(World::over(path).await).await }));
    process.shutdown_background();
    done
}

fn lives<T>(path: &Path, settings: Settings, work: impl AsyncFnOnce(World) -> T) -> T {
    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(in_time("it ends", async { work(World::with(path, settings).await).await }))
}

/// Starts a run and returns when its model has said something.
async fn speaking(world: &World, request: StartRun) -> Run {
    let run = world.runtime.start(request).await.unwrap();
    let mut follower = world.runtime.follow(&run.id, After::Start);
    while let Some(entry) = follower.next().await.unwrap() {
        if matches!(entry.logged.event, LogEvent::Chunk { .. }) {
            break;
        }
    }
    run
}

fn place() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    (dir, path)
}

#[test]
fn runs_go_on_in_the_order_they_were_in() {
    let (_dir, path) = place();
    let runs = dies(&path, async |world| {
        let running = speaking(&world, says("t", "SLOW 5 100")).await;
        let waiting = world.start("t", "SAY later").await;
        let delayed =
            world.runtime.start(StartRun { after_seconds: 1.0, ..says("t", "SAY at last") }).await.unwrap();
        [running.id, waiting.id, delayed.id]
    });
    lives(&path, Settings::default(), async |world| {
        for id in runs {
            assert_eq!(world.ended(&id).await.status, RunStatus::Success);
        }
        let texts = world.texts("t").await;
        let said: Vec<&str> = texts.iter().map(String::as_str).collect();
        let ticks = "tick1 tick2 tick3 tick4 tick5";
        assert_eq!(said, ["SLOW 5 100", ticks, "SAY later", "later", "SAY at last", "at last"]);
    });
}

#[test]
fn a_reader_that_comes_back_after_the_crash_is_told_what_no_longer_holds() {
    let (_dir, path) = place();
    let modes = [StreamMode::MessagesTuple, StreamMode::Custom, StreamMode::Values];
    let (run, seen) = dies(&path, async |world| {
        let run = speaking(&world, says("t", "SLOW 5 100")).await;
        let mut follower = world.runtime.follow(&run.id, After::Start);
        loop {
            let entry = follower.next().await.unwrap().unwrap();
            if matches!(entry.logged.event, LogEvent::Chunk { .. }) {
                // Long enough for the disk to have it, too.
                follower.next().await.unwrap().unwrap();
                return (run, entry.id);
            }
        }
    });
    lives(&path, Settings::default(), async |world| {
        let frames = world.frames(&run, &modes, After::Frame(seen)).await;
        // Some of the first attempt may have come to the disk behind what was seen.
        let again = frames.iter().position(|frame| frame.event == "metadata").unwrap();
        let frames = &frames[again..];
        let events: Vec<&str> = frames.iter().map(|frame| frame.event.as_ref()).collect();
        assert_eq!(events[..2], ["metadata", "custom"]);
        assert_eq!(data(&frames[0])["attempt"], 2);
        assert_eq!(data(&frames[1])["type"], "run_resumed");
        let messages: Vec<_> = frames.iter().filter(|frame| frame.event == "messages").map(data).collect();
        assert_eq!(messages[0][0]["type"], "remove");
        assert_eq!(messages[0][0]["id"], messages[1][0]["id"], "the same message, from its beginning");
        assert_eq!(messages[1][0]["content"], "tick1 ");
        assert_eq!(events.last(), Some(&"end"));
        let ids: Vec<_> = frames.iter().map(|frame| frame.id.seq).collect();
        assert!(ids.is_sorted() && ids[0] > seen.seq);
        let ended = world.ended(&run.id).await;
        assert_eq!(ended.totals.model_calls, 2, "the call that was cut off counts");
        assert_eq!(ended.totals.usage.output_tokens, 5);
    });
}

#[test]
fn a_question_waits_through_a_crash_and_so_does_its_answer() {
    let (_dir, path) = place();
    dies(&path, async |world| {
        let run = world.run(says("t", r#"CALL ask_human {"question": "Deploy?"}"#)).await;
        assert_eq!(run.status, RunStatus::Success);
    });
    let answered = dies(&path, async |world| {
        let thread = world.runtime.store().thread(&"t".into()).await.unwrap().unwrap();
        assert_eq!(thread.status, ThreadStatus::Interrupted);
        let answer = Input::Resume { answer: json!("yes"), update: serde_json::Map::new() };
        let late = StartRun { input: answer, after_seconds: 0.3, ..says("t", "") };
        world.runtime.start(late).await.unwrap().id
    });
    lives(&path, Settings::default(), async |world| {
        assert_eq!(world.ended(&answered).await.status, RunStatus::Success);
        assert_eq!(world.texts("t").await.last().unwrap(), "Tool said: Human answered: yes");
    });
}

/// Whoever was told that a run stops need not say it again to the next process.
#[test]
fn a_run_that_was_told_to_stop_stays_stopped_through_a_crash() {
    for action in [CancelAction::Interrupt, CancelAction::Rollback] {
        let (_dir, path) = place();
        let run = dies(&path, async |world| {
            world.run(says("t", "SAY before")).await;
            let run = world.start("t", r#"CALL ask_human {"question": "is anybody there?"}"#).await;
            let mut follower = world.runtime.follow(&run.id, After::Start);
            while let Some(entry) = follower.next().await.unwrap() {
                if matches!(&entry.logged.event, LogEvent::TaskStarted { task, .. } if task.node == "tools") {
                    break;
                }
            }
            world.runtime.cancel(&run.id, action).await.unwrap();
            run
        });
        lives(&path, Settings::default(), async |world| {
            world.runtime.wait(&run.id).await;
            let ended = world.runtime.store().run(&run.id).await.unwrap();
            let expected = (action == CancelAction::Interrupt).then_some(RunStatus::Interrupted);
            assert_eq!(ended.map(|run| run.status), expected, "{action:?}");
        });
    }
}

#[test]
fn what_may_not_be_resumed_ends_with_a_reason() {
    let (_dir, path) = place();
    let kept = dies(&path, async |world| speaking(&world, says("kept", "SLOW 100 50")).await.id);
    let no_resume = Settings { resume: false, ..Settings::default() };
    lives(&path, no_resume, async |world| {
        let run = world.ended(&kept).await;
        assert_eq!(run.error.unwrap().error, "Orphaned");
        assert_eq!(world.run(says("kept", "SAY fine")).await.status, RunStatus::Success);
    });
    let exit = dies(&path, async |world| {
        let request = StartRun { durability: Durability::Exit, ..says("exit", "SLOW 100 50") };
        speaking(&world, request).await
    });
    lives(&path, Settings::default(), async |world| {
        let failure = world.ended(&exit.id).await.error.unwrap();
        assert_eq!(failure.error, "Orphaned");
        assert!(failure.message.contains("durability"), "{}", failure.message);
        let frames = world.frames(&exit, &[StreamMode::Values], After::Start).await;
        let told: Vec<_> = frames.iter().map(|frame| frame.event.as_ref()).collect();
        assert_eq!(told[told.len() - 2..], ["error", "end"]);
    });
}

#[test]
fn a_run_that_no_process_survives_is_given_up_and_no_other_is_blamed() {
    let (_dir, path) = place();
    let (poison, other) = dies(&path, async |world| {
        let poison = speaking(&world, says("poison", "SLOW 100 50")).await.id;
        (poison, speaking(&world, says("other", "SLOW 2 50")).await.id)
    });
    // Process after process takes the run over and dies before it gets anywhere.
    lives(&path, Settings { adopt: Adopt::InTheWay, ..Settings::default() }, async |world| {
        let store = world.runtime.store();
        let holdings = store.holdings(Some(&"poison".into())).await.unwrap();
        let mut lease: Lease = holdings[0].lease.clone();
        let now = world.runtime.now();
        for _ in 0..5 {
            lease = store.take_over(&lease, &"a-dead-process".into(), now).await.unwrap().unwrap().lease;
        }
        store.release(&lease).await.unwrap();
        // The last one did not count: it was let go of.
        lease = store.holdings(Some(&"poison".into())).await.unwrap()[0].lease.clone();
        lease = store.take_over(&lease, &"a-dead-process".into(), now).await.unwrap().unwrap().lease;
        store.release(&lease).await.unwrap();
        let lease = store.holdings(Some(&"poison".into())).await.unwrap()[0].lease.clone();
        let taken = store.take_over(&lease, &"".into(), now).await.unwrap().unwrap();
        assert_eq!(taken.tries, 5);
    });
    lives(&path, Settings::default(), async |world| {
        let run = world.ended(&poison).await;
        assert_eq!(run.status, RunStatus::Error);
        let failure = run.error.unwrap();
        assert_eq!(failure.error, "GivenUp");
        assert!(failure.message.starts_with("5 attempts"), "{}", failure.message);
        assert_eq!(world.ended(&other).await.status, RunStatus::Success);
        assert_eq!(world.run(says("poison", "SAY fine")).await.status, RunStatus::Success);
    });
}

#[test]
fn a_server_that_closes_leaves_its_runs_to_the_next_one() {
    let (_dir, path) = place();
    let run = lives(&path, Settings::default(), async |world| {
        let run = speaking(&world, says("t", "SLOW 10 100")).await;
        world.runtime.close(Duration::ZERO).await;
        let left = world.runtime.store().run(&run.id).await.unwrap().unwrap();
        assert_eq!(left.status, RunStatus::Running);
        run
    });
    lives(&path, Settings::default(), async |world| {
        assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
        assert_eq!(world.texts("t").await.len(), 2);
    });
    // One that is here for its own runs stops them: nobody may come after it.
    let own = Settings { adopt: Adopt::InTheWay, ..Settings::default() };
    lives(&path, own, async |world| {
        let run = speaking(&world, says("t", "SLOW 100 100")).await;
        world.runtime.close(Duration::ZERO).await;
        assert_eq!(world.ended(&run.id).await.status, RunStatus::Interrupted);
    });
}

#[test]
fn a_process_for_one_run_takes_over_what_stands_in_its_way_and_nothing_else() {
    let (_dir, path) = place();
    let (before, elsewhere) = dies(&path, async |world| {
        (speaking(&world, says("t", "SLOW 3 50")).await.id, speaking(&world, says("u", "SLOW 3 50")).await.id)
    });
    let own = Settings { adopt: Adopt::InTheWay, ..Settings::default() };
    lives(&path, own, async |world| {
        assert_eq!(world.run(says("t", "SAY mine")).await.status, RunStatus::Success);
        assert_eq!(world.ended(&before).await.status, RunStatus::Success);
        assert_eq!(world.texts("t").await.last().unwrap(), "mine");
        let left = world.runtime.store().run(&elsewhere).await.unwrap().unwrap();
        assert_eq!(left.status, RunStatus::Running);
        // Whoever wants it stopped does not have to wait for a process that executes it.
        world.runtime.cancel(&elsewhere, CancelAction::Interrupt).await.unwrap();
        assert_eq!(world.ended(&elsewhere).await.status, RunStatus::Interrupted);
    });
}

#[test]
fn a_thread_that_was_to_go_with_its_run_is_not_left_behind_by_a_crash() {
    let (_dir, path) = place();
    let long_ago = SystemClock.now() - Duration::from_secs(3600);
    dies(&path, async |world| {
        for (id, temporary, at) in
            [("left", true, long_ago), ("just now", true, SystemClock.now()), ("kept", false, long_ago)]
        {
            let thread = Thread { temporary, ..Thread::new(id.into(), "default".into(), at) };
            world.runtime.store().create_thread(thread).await.unwrap();
        }
    });
    lives(&path, Settings::default(), async |world| {
        let store = world.runtime.store();
        let is_there = async |id: &str| store.thread(&id.into()).await.unwrap().is_some();
        eventually("it is swept away", async || (!is_there("left").await).then_some(())).await;
        assert!(is_there("just now").await, "somebody may still read its stream");
        assert!(is_there("kept").await);
    });
}
