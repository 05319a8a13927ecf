//! Runs: one at a time on a thread, in order, and undone without a trace.

use hart_runtime::port::{Admission, AtOnce, Claimed, Deleted, RunEnd, RunQuery, StoreError, Used};
use hart_runtime::{Failure, ModelTotals, Run, StartRun, Totals};
use hart_types::{MultitaskStrategy, RunStatus, ThreadStatus};
use serde_json::json;

use super::{admit, at, claim, make, run, step, steps_alone, stores};

fn ended(status: RunStatus) -> RunEnd {
    RunEnd {
        status,
        error: None,
        totals: Totals { model_calls: 3, ..Totals::default() },
        at: at(9),
        base: None,
        values: None,
        events: Vec::new(),
    }
}

fn ids(runs: &[Run]) -> Vec<&str> {
    runs.iter().map(|run| run.id.as_str()).collect()
}

#[tokio::test]
async fn admission_follows_the_strategy() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let first = run("r1", &thread, MultitaskStrategy::Reject);
        let admitted = admit(store.as_ref(), first.clone()).await.unwrap();
        assert_eq!(admitted, Admission::Admitted { run: first.clone(), others: vec![] }, "{name}");
        assert_eq!(store.thread(&thread).await.unwrap().unwrap().status, ThreadStatus::Busy, "{name}");
        let rejected = admit(store.as_ref(), run("r2", &thread, MultitaskStrategy::Reject)).await.unwrap();
        assert_eq!(rejected, Admission::Rejected { active: first }, "{name}");
        assert!(store.run(&"r2".into()).await.unwrap().is_none(), "{name}");
        for (id, strategy) in [("r3", MultitaskStrategy::Enqueue), ("r4", MultitaskStrategy::Interrupt)] {
            let Admission::Admitted { others, .. } =
                admit(store.as_ref(), run(id, &thread, strategy)).await.unwrap()
            else {
                panic!("{name}: {id} was not admitted");
            };
            assert_eq!(others.len(), if id == "r3" { 1 } else { 2 }, "{name}");
        }
        let strange = admit(store.as_ref(), run("r5", &"nowhere".into(), MultitaskStrategy::Enqueue)).await;
        assert!(matches!(strange, Err(StoreError::NoThread(_))), "{name}");
    }
}

#[tokio::test]
async fn a_run_that_nothing_is_before_begins_with_its_admission() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let take_in = async |run: Run| {
            let request = StartRun { thread: Some(run.thread.clone()), ..StartRun::default() };
            let AtOnce { admission, claimed, written } =
                store.admit_at_once(run, request, &"n".into()).await.unwrap();
            written.await.unwrap();
            (admission, claimed)
        };
        let later = Run { start_at: at(60), ..run("later", &thread, MultitaskStrategy::Enqueue) };
        assert!(take_in(later).await.1.is_none(), "{name}: it is not due");

        let other = make(store.as_ref(), "other").await;
        store.append_steps(&other, vec![step("s", None, "r0", &[])]).await.unwrap();
        let (admission, begun) = take_in(run("r1", &other, MultitaskStrategy::Reject)).await;
        let pending = run("r1", &other, MultitaskStrategy::Reject);
        assert_eq!(admission, Admission::Admitted { run: pending, others: vec![] }, "{name}");
        let begun = begun.unwrap();
        assert_eq!((begun.run.status, begun.attempt, begun.tries), (RunStatus::Running, 1, 1), "{name}");
        assert_eq!(begun.run.base, Some("s".into()), "{name}");
        assert_eq!(store.run(&"r1".into()).await.unwrap().unwrap(), begun.run, "{name}");
        assert!(claim(store.as_ref(), &other, 2).await.is_none(), "{name}: it is given once");
        store
            .append_progress(steps_alone(vec![step("a", Some("s"), "r1", &[])]), &begun.lease)
            .await
            .unwrap();

        assert!(take_in(run("r2", &other, MultitaskStrategy::Enqueue)).await.1.is_none(), "{name}: it waits");
        let (rejected, begun) = take_in(run("r3", &other, MultitaskStrategy::Reject)).await;
        assert!(matches!(rejected, Admission::Rejected { .. }) && begun.is_none(), "{name}");
    }
}

#[tokio::test]
async fn one_key_is_one_run() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let keyed = |id: &str| Run {
            idempotency_key: Some("k".into()),
            ..run(id, &thread, MultitaskStrategy::Reject)
        };
        admit(store.as_ref(), keyed("r1")).await.unwrap();
        assert_eq!(
            admit(store.as_ref(), keyed("r2")).await.unwrap(),
            Admission::Repeated(keyed("r1")),
            "{name}"
        );
    }
}

#[tokio::test]
async fn runs_are_claimed_in_order_and_one_at_a_time() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        store.append_steps(&thread, vec![step("s", None, "r0", &[])]).await.unwrap();
        for id in ["r1", "r2"] {
            admit(store.as_ref(), run(id, &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        }
        admit(store.as_ref(), Run { start_at: at(100), ..run("later", &thread, MultitaskStrategy::Enqueue) })
            .await
            .unwrap();
        let Claimed { run: first, lease, .. } = claim(store.as_ref(), &thread, 5).await.unwrap();
        assert_eq!((first.id.as_str(), first.status), ("r1", RunStatus::Running), "{name}");
        assert_eq!(first.base.as_ref().unwrap().as_str(), "s", "{name}");
        assert_eq!(store.run(&"r1".into()).await.unwrap().unwrap(), first, "{name}");
        assert!(claim(store.as_ref(), &thread, 5).await.is_none(), "{name}");
        let done =
            store.end_run(&"r1".into(), ended(RunStatus::Success), Some(&lease)).await.unwrap().unwrap();
        assert_eq!(done.totals.model_calls, 3, "{name}");
        assert_eq!(store.thread(&thread).await.unwrap().unwrap().status, ThreadStatus::Busy, "{name}");
        assert_eq!(store.end_run(&"r1".into(), ended(RunStatus::Error), None).await.unwrap(), None, "{name}");
        let second = claim(store.as_ref(), &thread, 5).await.unwrap();
        assert_eq!(second.run.id.as_str(), "r2", "{name}");
        store.end_run(&"r2".into(), ended(RunStatus::Success), Some(&second.lease)).await.unwrap();
        assert!(claim(store.as_ref(), &thread, 5).await.is_none(), "{name}: not due");
        assert_eq!(claim(store.as_ref(), &thread, 100).await.unwrap().run.id.as_str(), "later", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_claims_at_once_start_one_run() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        for n in 0..10 {
            admit(store.as_ref(), run(&format!("r{n}"), &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        }
        let mut claims = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (store, thread) = (store.clone(), thread.clone());
            claims.spawn(async move { claim(store.as_ref(), &thread, 5).await });
        }
        let started = claims.join_all().await.into_iter().flatten().count();
        assert_eq!(started, 1, "{name}");
    }
}

#[tokio::test]
async fn how_a_run_ended_is_kept_and_told_of_its_thread() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        let failure = Failure { error: "ModelError".into(), message: "it said no".into() };
        let end = RunEnd { error: Some(failure.clone()), ..ended(RunStatus::Error) };
        let run = store.end_run(&"r".into(), end, Some(&lease)).await.unwrap().unwrap();
        assert_eq!(run.error, Some(failure.clone()), "{name}");
        let thread = store.thread(&thread).await.unwrap().unwrap();
        assert_eq!((thread.status, thread.error), (ThreadStatus::Error, Some(failure)), "{name}");
    }
}

#[tokio::test]
async fn an_undone_run_leaves_the_thread_as_it_found_it() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        store
            .append_steps(&thread, vec![step("a", None, "r0", &[("messages", json!(["before"]))])])
            .await
            .unwrap();
        admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        let large = vec![step("b", Some("a"), "r", &[("messages", json!(["y".repeat(9000)]))])];
        store.append_progress(steps_alone(large), &lease).await.unwrap();
        assert!(!store.undo_run(&"r".into(), at(3), None).await.unwrap(), "{name}: it is being executed");
        assert!(store.undo_run(&"r".into(), at(3), Some(&lease)).await.unwrap(), "{name}");
        assert!(!store.undo_run(&"r".into(), at(3), Some(&lease)).await.unwrap(), "{name}");
        let left = store.steps(&thread, None).await.unwrap();
        assert_eq!(left.len(), 1, "{name}");
        assert_eq!(left[0].id.as_str(), "a", "{name}");
        let thread = store.thread(&thread).await.unwrap().unwrap();
        assert_eq!(
            (thread.status, thread.head.unwrap().as_str()),
            (ThreadStatus::Interrupted, "a"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    for (name, store, _dir) in stores() {
        let (one, two) = (make(store.as_ref(), "t1").await, make(store.as_ref(), "t2").await);
        for (id, thread) in [("a", &one), ("b", &two), ("c", &one)] {
            admit(store.as_ref(), run(id, thread, MultitaskStrategy::Enqueue)).await.unwrap();
        }
        claim(store.as_ref(), &one, 2).await.unwrap();
        let all = RunQuery { limit: 10, ..RunQuery::default() };
        let of_one = RunQuery { thread: Some(one), ..all.clone() };
        assert_eq!(ids(&store.runs(&all).await.unwrap()), ["c", "b", "a"], "{name}");
        assert_eq!(ids(&store.runs(&of_one).await.unwrap()), ["c", "a"], "{name}");
        let running = RunQuery { status: vec![RunStatus::Running], ..all.clone() };
        assert_eq!(ids(&store.runs(&running).await.unwrap()), ["a"], "{name}");
        assert_eq!(
            ids(&store.runs(&RunQuery { limit: 1, offset: 1, ..all }).await.unwrap()),
            ["b"],
            "{name}"
        );
    }
}

#[tokio::test]
async fn only_the_last_run_of_a_thread_is_undone_when_it_is_deleted() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let mut parent: Option<String> = None;
        for id in ["r1", "r2", "r3"] {
            admit(store.as_ref(), run(id, &thread, MultitaskStrategy::Enqueue)).await.unwrap();
            assert_eq!(store.delete_run(&id.into(), at(3)).await.unwrap(), Deleted::Active, "{name}: {id}");
            let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
            let done = step(&format!("{id}-step"), parent.as_deref(), id, &[("messages", json!([id]))]);
            parent = Some(done.id.to_string());
            store.append_progress(steps_alone(vec![done]), &lease).await.unwrap();
            store.end_run(&id.into(), ended(RunStatus::Error), Some(&lease)).await.unwrap().unwrap();
        }
        for (id, deleted, steps) in [
            ("r2", Deleted::Forgotten, 3),
            ("r1", Deleted::Forgotten, 3),
            ("r1", Deleted::Missing, 3),
            ("r3", Deleted::Undone, 2),
        ] {
            assert_eq!(store.delete_run(&id.into(), at(10)).await.unwrap(), deleted, "{name}: {id}");
            assert_eq!(store.steps(&thread, None).await.unwrap().len(), steps, "{name}: {id}");
        }
        let thread = store.thread(&thread).await.unwrap().unwrap();
        assert_eq!(thread.head.unwrap().as_str(), "r2-step", "{name}");
        // Its newest step has something left to do.
        assert_eq!((thread.status, thread.error), (ThreadStatus::Interrupted, None), "{name}");
    }
}

#[tokio::test]
async fn usage_is_added_up_by_day_and_thread() {
    for (name, store, _dir) in stores() {
        let day = 86_400;
        // The last hour of a day in UTC, which is the next one already an hour further east.
        let late = at(0).as_second().div_euclid(day) * day + day - 1800 - 1_700_000_000;
        let used = |tokens: u64| {
            let model =
                ModelTotals { calls: 1, total_tokens: tokens, cost: Some(0.5), ..ModelTotals::default() };
            let mut totals = Totals { cost: Some(0.5), ..Totals::default() };
            totals.usage.total_tokens = tokens;
            totals.by_model.insert("m".to_owned(), model);
            totals
        };
        for (id, thread, seconds, tokens) in [
            ("r1", "t", late, 3),
            ("r2", "t", late + 60, 4),
            ("r3", "u", late, 5),
            ("r4", "u", late + day, 6),
        ] {
            let thread = match store.thread(&thread.into()).await.unwrap() {
                Some(row) => row.id,
                None => make(store.as_ref(), thread).await,
            };
            let run = Run { created_at: at(seconds), ..run(id, &thread, MultitaskStrategy::Enqueue) };
            admit(store.as_ref(), run).await.unwrap();
            let lease = claim(store.as_ref(), &thread, 9).await.unwrap().lease;
            let end = RunEnd { totals: used(tokens), ..ended(RunStatus::Success) };
            store.end_run(&id.into(), end, Some(&lease)).await.unwrap().unwrap();
        }
        let thread = "t".into();
        let mut open = run("r5", &thread, MultitaskStrategy::Enqueue);
        open.created_at = at(late);
        admit(store.as_ref(), open).await.unwrap();
        let told = async |since: i64, east: i64| {
            let rows = store.usage(at(since), east).await.unwrap();
            let first = rows.first().map_or(0, |row| row.day);
            let told = |row: &Used| {
                let model = row.totals.by_model.get("m").map_or(0, |model| model.total_tokens);
                assert_eq!(model, row.totals.usage.total_tokens, "{name}");
                (row.day - first, row.thread.to_string(), row.runs, model)
            };
            rows.iter().map(told).collect::<Vec<_>>()
        };
        let row = |day: i64, thread: &str, runs: u64, tokens: u64| (day, thread.to_owned(), runs, tokens);
        let all = [row(0, "t", 2, 7), row(0, "u", 1, 5), row(1, "u", 1, 6)];
        assert_eq!(told(late, 0).await, all, "{name}");
        assert_eq!(told(late, 3600).await, all, "{name}");
        assert_eq!(told(late + 1, 0).await, [row(0, "t", 1, 4), row(1, "u", 1, 6)], "{name}");
        let (utc, east) =
            (store.usage(at(late), 0).await.unwrap(), store.usage(at(late), 3600).await.unwrap());
        assert_eq!(utc[0].day + 1, east[0].day, "{name}");
        assert_eq!(utc[0].totals.cost, Some(1.0), "{name}");
    }
}
