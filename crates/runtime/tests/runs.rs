//! Runs: how they start, wait for each other, are stopped, and end.

use hart_runtime::port::HistoryQuery;
use hart_runtime::{After, CancelError, Input, StartError, StartRun};
use hart_types::{
    CancelAction, CheckpointId, Durability, MultitaskStrategy, RunStatus, StreamMode, ThreadStatus,
};
use serde_json::json;

use crate::support::{World, says};

#[tokio::test]
async fn a_run_ends_and_the_thread_remembers() {
    let world = World::new().await;
    let run = world.run(says("t", "SAY hello big world")).await;
    assert_eq!(run.status, RunStatus::Success);
    assert_eq!((run.totals.model_calls, run.totals.usage.output_tokens), (1, 3));
    world.run(says("t", "SAY again")).await;
    assert_eq!(world.texts("t").await, ["SAY hello big world", "hello big world", "SAY again", "again"]);
    let thread = world.runtime.store().thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!(thread.status, ThreadStatus::Idle);
    assert_eq!(thread.metadata["graph_id"], "agent");
}

#[tokio::test]
async fn every_durability_ends_with_the_same_thread() {
    for durability in Durability::ALL.iter().copied() {
        let world = World::new().await;
        world.run(StartRun { durability, ..says("t", "CALL nothing {}") }).await;
        let texts = world.texts("t").await;
        assert_eq!(texts.len(), 4, "{durability}: {texts:?}");
        assert!(texts[3].starts_with("Tool said: Error: there is no tool"), "{durability}");
    }
}

#[tokio::test]
async fn a_thread_must_exist_unless_it_may_be_made() {
    let world = World::new().await;
    let request = StartRun { create_thread: false, ..says("nowhere", "SAY x") };
    assert!(matches!(world.runtime.start(request).await, Err(StartError::NoThread(_))));
}

#[tokio::test]
async fn a_run_without_a_thread_leaves_none() {
    let world = World::new().await;
    let run = world.runtime.start(StartRun { thread: None, ..says("", "SAY x") }).await.unwrap();
    world.frames(&run, &[StreamMode::Values], After::Start).await;
    world.runtime.close(std::time::Duration::from_secs(5)).await;
    assert!(world.runtime.store().thread(&run.thread).await.unwrap().is_none());
    assert!(world.runtime.kept(&run.id).await.unwrap().is_none(), "its log is still at hand");
}

#[tokio::test]
async fn strategies_decide_what_a_second_run_does() {
    let world = World::new().await;
    let first = world.start("reject", "SLOW 3 100").await;
    let second = StartRun { multitask: MultitaskStrategy::Reject, ..says("reject", "SAY no") };
    assert!(matches!(world.runtime.start(second).await, Err(StartError::Busy)));
    world.ended(&first.id).await;

    let first = world.start("enqueue", "SLOW 3 50").await;
    let second = world.run(says("enqueue", "SAY after")).await;
    assert_eq!(world.ended(&first.id).await.status, RunStatus::Success);
    assert_eq!(second.status, RunStatus::Success);
    assert_eq!(world.texts("enqueue").await, ["SLOW 3 50", "tick1 tick2 tick3", "SAY after", "after"]);

    let first = world.start("interrupt", "SLOW 100 50").await;
    let second = StartRun { multitask: MultitaskStrategy::Interrupt, ..says("interrupt", "SAY now") };
    assert_eq!(world.run(second).await.status, RunStatus::Success);
    assert_eq!(world.ended(&first.id).await.status, RunStatus::Interrupted);
    let texts = world.texts("interrupt").await;
    assert_eq!(texts[0], "SLOW 100 50");
    assert_eq!(texts[texts.len() - 2..], ["SAY now", "now"]);

    world.run(says("rollback", "SAY before")).await;
    let first = world.start("rollback", "SLOW 100 50").await;
    let second = StartRun { multitask: MultitaskStrategy::Rollback, ..says("rollback", "SAY instead") };
    assert_eq!(world.run(second).await.status, RunStatus::Success);
    assert!(world.runtime.store().run(&first.id).await.unwrap().is_none());
    assert_eq!(world.texts("rollback").await, ["SAY before", "before", "SAY instead", "instead"]);
}

#[tokio::test]
async fn a_cancelled_run_is_interrupted_and_its_thread_usable() {
    let world = World::new().await;
    let run = world.start("t", "SLOW 100 50").await;
    world.runtime.cancel(&run.id, CancelAction::Interrupt).await.unwrap();
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Interrupted);
    let again = world.runtime.cancel(&run.id, CancelAction::Interrupt).await;
    assert!(matches!(again, Err(CancelError::Ended { status: RunStatus::Interrupted, .. })));
    assert_eq!(world.run(says("t", "SAY fine")).await.status, RunStatus::Success);
    assert!(matches!(
        world.runtime.cancel(&"none".into(), CancelAction::Interrupt).await,
        Err(CancelError::NoRun(_))
    ));
}

#[tokio::test]
async fn a_failing_model_ends_the_run_with_its_reason() {
    let world = World::new().await;
    let run = world.run(says("t", "FAIL it is broken")).await;
    assert_eq!(run.status, RunStatus::Error);
    assert!(run.error.unwrap().message.contains("it is broken"));
    let thread = world.runtime.store().thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!(thread.status, ThreadStatus::Error);
    assert_eq!(world.run(says("t", "SAY fine")).await.status, RunStatus::Success);
    let thread = world.runtime.store().thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.status, thread.error), (ThreadStatus::Idle, None));
}

#[tokio::test]
async fn a_question_is_answered_by_another_run() {
    let world = World::new().await;
    let run = world.run(says("t", r#"CALL ask_human {"question": "Deploy?"}"#)).await;
    assert_eq!(run.status, RunStatus::Success);
    let thread = world.runtime.store().thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!(thread.status, ThreadStatus::Interrupted);
    let state = world.runtime.state(&"t".into(), None).await.unwrap();
    assert_eq!(state.interrupts[0].value, json!({"question": "Deploy?"}));
    assert_eq!(state.step.unwrap().next.as_deref(), Some("tools"));
    let answer = Input::Resume { answer: json!("yes, go"), update: serde_json::Map::new() };
    let run = world.run(StartRun { input: answer, ..says("t", "") }).await;
    assert_eq!(run.status, RunStatus::Success);
    assert_eq!(world.texts("t").await.last().unwrap(), "Tool said: Human answered: yes, go");
    let state = world.runtime.state(&"t".into(), None).await.unwrap();
    assert!(state.interrupts.is_empty());
}

#[tokio::test]
async fn a_delayed_run_waits_and_others_go_first() {
    let world = World::new().await;
    let late = world.runtime.start(StartRun { after_seconds: 0.3, ..says("t", "SAY late") }).await.unwrap();
    world.run(says("t", "SAY early")).await;
    world.ended(&late.id).await;
    assert_eq!(world.texts("t").await, ["SAY early", "early", "SAY late", "late"]);
}

#[tokio::test]
async fn a_deleted_run_takes_nothing_of_what_came_before_or_after_it() {
    let world = World::new().await;
    let mut runs = Vec::new();
    for word in ["one", "two", "three"] {
        runs.push(world.run(says("t", &format!("SAY {word}"))).await.id);
    }
    let all = ["SAY one", "one", "SAY two", "two", "SAY three", "three"];
    for id in [&runs[1], &runs[0]] {
        world.runtime.delete_run(id).await.unwrap();
        assert_eq!(world.texts("t").await, all);
        let all = HistoryQuery { limit: 100, ..HistoryQuery::default() };
        let listed = world.runtime.history(&"t".into(), &all, |_| true).await.unwrap();
        assert!(
            listed.iter().all(|state| state.step.as_ref().unwrap().run != *id),
            "a state of it is listed"
        );
        let parents = listed.iter().map(|state| state.step.as_ref().unwrap().parent.as_ref());
        let seen = |id: &CheckpointId| listed.iter().any(|state| state.step.as_ref().unwrap().id == *id);
        assert!(parents.flatten().all(seen), "a state stands on one that is not listed");
        assert!(world.runtime.store().run(id).await.unwrap().is_none());
        assert_eq!(world.runtime.kept(id).await.unwrap(), None, "its stream is still there");
        assert!(matches!(world.runtime.delete_run(id).await, Err(CancelError::NoRun(_))));
    }
    // The last one is undone: nothing stands on it, for one that was stopped before it began has done nothing.
    let late = world.runtime.start(StartRun { after_seconds: 60.0, ..says("t", "SAY late") }).await.unwrap();
    world.runtime.cancel(&late.id, CancelAction::Interrupt).await.unwrap();
    world.ended(&late.id).await;
    world.runtime.delete_run(&runs[2]).await.unwrap();
    assert_eq!(world.texts("t").await, all[..4]);
    let newest = HistoryQuery { limit: 1, ..HistoryQuery::default() };
    let listed = world.runtime.history(&"t".into(), &newest, |_| true).await.unwrap();
    let state = world.runtime.state(&"t".into(), None).await.unwrap();
    assert_eq!(listed[0].step, state.step, "where the thread is, is listed");
    world.run(says("t", "SAY four")).await;
    assert_eq!(world.texts("t").await[4..], ["SAY four", "four"]);
}

#[tokio::test]
async fn a_run_that_others_wait_behind_or_wrote_on_is_forgotten_not_undone() {
    let world = World::new().await;
    let first = world.run(says("t", "SAY one")).await;
    let by_hand = json!({"messages": [{"role": "user", "content": "by hand"}]});
    let by_hand = by_hand.as_object().unwrap().clone();
    world.runtime.update_state(&"t".into(), by_hand, None, None).await.unwrap();
    world.runtime.delete_run(&first.id).await.unwrap();
    assert_eq!(world.texts("t").await, ["SAY one", "one", "by hand"]);

    let slow = world.start("t", "SLOW 100 50").await;
    world.runtime.delete_run(&slow.id).await.unwrap();
    assert_eq!(world.texts("t").await, ["SAY one", "one", "by hand"], "one that goes on is rolled back");
}

#[tokio::test]
async fn a_run_is_of_the_user_whose_thread_it_is_on() {
    let world = World::new().await;
    let thread = hart_runtime::Thread::new("t".into(), "ann".into(), world.runtime.now());
    world.runtime.store().create_thread(thread).await.unwrap();
    let run = world.run(StartRun { user: "somebody else".into(), ..says("t", "SAY hi") }).await;
    assert_eq!(run.user.as_str(), "ann");
}
