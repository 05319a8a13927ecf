//! What a thread is when a run has left it: its log says whether it waits, however the run ended.

use hart_kernel::Step;
use hart_runtime::port::{Deleted, Lease, RunEnd, Store};
use hart_runtime::{Failure, Totals};
use hart_types::{MultitaskStrategy, RunStatus, ThreadId, ThreadStatus};

use super::{admit, at, claim, make, run, step, steps_alone, steps_inside, stores};

fn end(status: RunStatus) -> RunEnd {
    let failure = || Failure { error: "ResumeError".into(), message: "no open question has the id".into() };
    RunEnd {
        status,
        error: (status == RunStatus::Error).then(failure),
        totals: Totals::default(),
        at: at(9),
        base: None,
        values: None,
        events: Vec::new(),
    }
}

fn inside(id: &str, run: &str) -> Step {
    step(id, None, run, &[])
}

/// A thread on which an agent inside a call has asked something.
async fn waits(store: &dyn Store) -> ThreadId {
    let thread = make(store, "t").await;
    let lease = next(store, &thread, "asks").await;
    store.append_progress(steps_inside("call", vec![inside("1", "child")]), &lease).await.unwrap();
    store.append_progress(steps_alone(vec![step("asked", None, "asks", &[])]), &lease).await.unwrap();
    store.end_run(&"asks".into(), end(RunStatus::Success), Some(&lease)).await.unwrap().unwrap();
    thread
}

async fn next(store: &dyn Store, thread: &ThreadId, id: &str) -> Lease {
    admit(store, run(id, thread, MultitaskStrategy::Enqueue)).await.unwrap();
    claim(store, thread, 2).await.unwrap().lease
}

async fn assert_waits(name: &str, store: &dyn Store, thread: &ThreadId, status: ThreadStatus) {
    assert_eq!(store.thread(thread).await.unwrap().unwrap().status, status, "{name}");
    let kept = store.child_steps(thread, "call").await.unwrap();
    assert_eq!(kept, [inside("1", "child")], "{name}: the next answer goes on behind it");
}

#[tokio::test]
async fn an_answer_that_is_not_taken_leaves_the_question_open() {
    for (name, store, _dir) in stores() {
        let (store, thread) = (store.as_ref(), waits(store.as_ref()).await);
        assert_waits(name, store, &thread, ThreadStatus::Interrupted).await;
        // A wrong one, and one whose process is gone for good.
        for id in ["wrong", "orphaned"] {
            let lease = next(store, &thread, id).await;
            store.end_run(&id.into(), end(RunStatus::Error), Some(&lease)).await.unwrap().unwrap();
            assert_waits(name, store, &thread, ThreadStatus::Error).await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_stopped_leaves_the_question_open() {
    for (name, store, _dir) in stores() {
        let (store, thread) = (store.as_ref(), waits(store.as_ref()).await);
        let stopped = || end(RunStatus::Interrupted);
        let lease = next(store, &thread, "executed").await;
        store.end_run(&"executed".into(), stopped(), Some(&lease)).await.unwrap().unwrap();
        assert_waits(name, store, &thread, ThreadStatus::Interrupted).await;
        admit(store, run("waiting", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        store.end_run(&"waiting".into(), stopped(), None).await.unwrap().unwrap();
        assert_waits(name, store, &thread, ThreadStatus::Interrupted).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_taken_back_leaves_the_question_open() {
    for (name, store, _dir) in stores() {
        let (store, thread) = (store.as_ref(), waits(store.as_ref()).await);
        admit(store, run("waiting", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        assert!(store.undo_run(&"waiting".into(), at(3), None).await.unwrap(), "{name}");
        assert_waits(name, store, &thread, ThreadStatus::Interrupted).await;

        let lease = next(store, &thread, "executed").await;
        store.append_progress(steps_inside("call", vec![inside("2", "child")]), &lease).await.unwrap();
        let went_on = Step { next: None, ..step("went on", Some("asked"), "executed", &[]) };
        store.append_progress(steps_alone(vec![went_on]), &lease).await.unwrap();
        assert!(store.undo_run(&"executed".into(), at(4), Some(&lease)).await.unwrap(), "{name}");
        assert_waits(name, store, &thread, ThreadStatus::Interrupted).await;

        let lease = next(store, &thread, "deleted").await;
        store.end_run(&"deleted".into(), end(RunStatus::Error), Some(&lease)).await.unwrap().unwrap();
        assert_eq!(store.delete_run(&"deleted".into(), at(5)).await.unwrap(), Deleted::Undone, "{name}");
        assert_waits(name, store, &thread, ThreadStatus::Interrupted).await;
    }
}

#[tokio::test]
async fn a_thread_that_has_nothing_left_to_do_is_idle_and_keeps_nothing() {
    for (name, store, _dir) in stores() {
        let (store, thread) = (store.as_ref(), waits(store.as_ref()).await);
        let lease = next(store, &thread, "answers").await;
        let last = Step { next: None, ..step("done", Some("asked"), "answers", &[]) };
        store.append_progress(steps_alone(vec![last]), &lease).await.unwrap();
        store.end_run(&"answers".into(), end(RunStatus::Success), Some(&lease)).await.unwrap().unwrap();
        assert_eq!(store.thread(&thread).await.unwrap().unwrap().status, ThreadStatus::Idle, "{name}");
        assert!(store.child_steps(&thread, "call").await.unwrap().is_empty(), "{name}");
    }
}
