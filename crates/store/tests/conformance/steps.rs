//! Steps: read back whole, in order, along the branch that was asked for.

use hart_kernel::Step;
use hart_runtime::port::{HistoryQuery, Lineage, RunEnd, StoreError};
use hart_runtime::{Thread, Totals};
use hart_types::{CheckpointId, MultitaskStrategy, RunStatus};
use serde_json::json;

use super::{admit, at, claim, make, run, step, steps_alone, steps_inside, stores};

fn names(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.id.as_str()).collect()
}

#[tokio::test]
async fn a_step_is_read_back_as_it_was_written() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let large = json!({"text": "ü".repeat(3000)});
        let written = vec![
            step(
                "1",
                None,
                "r",
                &[("messages", json!([1, null, "\u{0}\u{1F600}"])), ("_private", json!(null))],
            ),
            step(
                "2",
                Some("1"),
                "r",
                &[("messages", large.clone()), ("again", large), ("messages", json!([]))],
            ),
        ];
        store.append_steps(&thread, written.clone()).await.unwrap();
        assert_eq!(store.steps(&thread, None).await.unwrap(), written, "{name}");
        let lost = store.append_steps(&"nowhere".into(), written).await;
        assert!(matches!(lost, Err(StoreError::NoThread(_))), "{name}");
    }
}

#[tokio::test]
async fn each_branch_is_its_own_line() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        for (id, parent) in
            [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("a")), ("e", Some("d"))]
        {
            store.append_steps(&thread, vec![step(id, parent, "r", &[])]).await.unwrap();
        }
        let at = |id: &'static str| store.steps(&thread, Some(Box::leak(Box::new(id.into()))));
        assert_eq!(names(&store.steps(&thread, None).await.unwrap()), ["a", "d", "e"], "{name}");
        assert_eq!(names(&at("c").await.unwrap()), ["a", "b", "c"], "{name}");
        assert_eq!(names(&at("a").await.unwrap()), ["a"], "{name}");
        assert!(at("unknown").await.unwrap().is_empty(), "{name}");

        let history = |query| {
            let (store, thread) = (store.clone(), thread.clone());
            async move {
                let found = store.history(&thread, &query).await.unwrap();
                found.into_iter().map(|info| (info.id.to_string(), info.number)).collect::<Vec<_>>()
            }
        };
        let all = HistoryQuery { limit: 10, ..HistoryQuery::default() };
        let pairs =
            |list: &[(&str, i64)]| list.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(
            history(all.clone()).await,
            pairs(&[("e", 2), ("d", 1), ("c", 2), ("b", 1), ("a", 0)]),
            "{name}"
        );
        let before = HistoryQuery { before: Some("d".into()), limit: 2, ..all.clone() };
        assert_eq!(history(before).await, pairs(&[("c", 2), ("b", 1)]), "{name}");
        assert_eq!(
            history(HistoryQuery { only: Some("b".into()), ..all.clone() }).await,
            pairs(&[("b", 1)]),
            "{name}"
        );
        assert!(history(HistoryQuery { run: Some("other".into()), ..all }).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_copy_has_the_history_and_goes_its_own_way() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let large = json!(["z".repeat(4000)]);
        store.append_steps(&thread, vec![step("1", None, "r", &[("messages", large)])]).await.unwrap();
        let copy =
            store.copy_thread(&thread, Thread::new("copy".into(), "default".into(), at(5))).await.unwrap();
        assert_eq!(
            store.steps(&copy.id, None).await.unwrap(),
            store.steps(&thread, None).await.unwrap(),
            "{name}"
        );
        store.append_steps(&copy.id, vec![step("2", Some("1"), "r2", &[])]).await.unwrap();
        assert_eq!(store.steps(&thread, None).await.unwrap().len(), 1, "{name}");
        // What they share stays as long as one of them is there.
        store.delete_thread(&thread).await.unwrap();
        let left = store.steps(&copy.id, None).await.unwrap();
        assert_eq!(left[0].writes[0].value, json!(["z".repeat(4000)]), "{name}");
        let lost = store.copy_thread(&thread, Thread::new("x".into(), "default".into(), at(5))).await;
        assert!(matches!(lost, Err(StoreError::NoThread(_))), "{name}");
    }
}

#[tokio::test]
async fn a_reader_that_knows_a_step_gets_what_came_since() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let steps = [("a", None), ("b", Some("a")), ("c", Some("b")), ("fork", Some("a")), ("d", Some("c"))];
        let steps = steps.map(|(id, parent)| step(id, parent, "r", &[("messages", json!([id]))]));
        store.append_steps(&thread, steps.to_vec()).await.unwrap();
        for (at, known, since, way) in [
            ("d", Some("b"), true, &["c", "d"][..]),
            ("d", Some("d"), true, &[]),
            ("d", None, false, &["a", "b", "c", "d"]),
            ("fork", Some("c"), false, &["a", "fork"]),
            ("b", Some("d"), false, &["a", "b"]),
            ("nowhere", Some("a"), false, &[]),
        ] {
            let (at, known) = (CheckpointId::from(at), known.map(CheckpointId::from));
            let lineage = store.steps_since(&thread, &at, known.as_ref()).await.unwrap();
            let (found, steps) = match lineage {
                Lineage::Since(steps) => (true, steps),
                Lineage::Whole(steps) => (false, steps),
            };
            let ids: Vec<&str> = steps.iter().map(|step| step.id.as_str()).collect();
            assert_eq!((found, ids.as_slice()), (since, way), "{name}: {at} from {known:?}");
        }
    }
}

#[tokio::test]
async fn steps_inside_a_call_are_kept_while_the_thread_waits_and_no_longer() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let end = || RunEnd {
            status: RunStatus::Success,
            error: None,
            totals: Totals::default(),
            at: at(9),
            base: None,
            events: Vec::new(),
            values: None,
        };
        let inside = vec![
            step("1", None, "child", &[("messages", json!(["ü".repeat(3000)]))]),
            step("2", Some("1"), "child", &[("__paused__", json!({"node": "tools"}))]),
        ];
        admit(store.as_ref(), run("r1", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        for step in inside.clone() {
            store.append_progress(steps_inside("call", vec![step]), &lease).await.unwrap();
        }
        assert_eq!(store.child_steps(&thread, "call").await.unwrap(), inside, "{name}");
        assert!(store.child_steps(&thread, "other").await.unwrap().is_empty(), "{name}");
        assert!(store.steps(&thread, None).await.unwrap().is_empty(), "{name}: they are not the thread's");

        store.append_progress(steps_alone(vec![step("asks", None, "r1", &[])]), &lease).await.unwrap();
        store.end_run(&"r1".into(), end(), Some(&lease)).await.unwrap().unwrap();
        let late = store.append_progress(steps_inside("call", inside.clone()), &lease).await;
        assert!(matches!(late, Err(StoreError::Lost(_))), "{name}");
        let copy = Thread::new("copy".into(), "default".into(), at(3));
        store.copy_thread(&thread, copy).await.unwrap();
        for of in [&thread, &"copy".into()] {
            assert_eq!(store.child_steps(of, "call").await.unwrap(), inside, "{name}: the thread waits");
        }

        // A run that goes on and is taken back leaves what the one before it had left.
        admit(store.as_ref(), run("r2", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 4).await.unwrap().lease;
        let more = step("3", Some("2"), "child", &[]);
        store.append_progress(steps_inside("call", vec![more]), &lease).await.unwrap();
        assert!(store.undo_run(&"r2".into(), at(5), Some(&lease)).await.unwrap(), "{name}");
        assert_eq!(store.child_steps(&thread, "call").await.unwrap(), inside, "{name}");

        admit(store.as_ref(), run("r3", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 6).await.unwrap().lease;
        let last = Step { next: None, ..step("ends", Some("asks"), "r3", &[]) };
        store.append_progress(steps_alone(vec![last]), &lease).await.unwrap();
        store.end_run(&"r3".into(), end(), Some(&lease)).await.unwrap().unwrap();
        assert!(store.child_steps(&thread, "call").await.unwrap().is_empty(), "{name}: nothing waits");
    }
}
