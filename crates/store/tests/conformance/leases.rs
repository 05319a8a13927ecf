//! Leases: one holder, fenced writes, numbers that are given once.

use std::collections::HashSet;

use hart_runtime::port::{Lease, NUMBERS, RunEnd, Sign, Store, StoreError, StoredEvent};
use hart_runtime::{Input, StartRun, Totals};
use hart_types::{CancelAction, EventId, MultitaskStrategy, NodeId, RunStatus, ThreadId};
use serde_json::json;

use super::{admit, at, claim, make, map, run, step, steps_alone, stores};

fn node(name: &str) -> NodeId {
    name.into()
}

fn end() -> RunEnd {
    RunEnd {
        status: RunStatus::Success,
        error: None,
        totals: Totals::default(),
        at: at(9),
        base: None,
        values: None,
        events: Vec::new(),
    }
}

fn event(lease: &Lease, nth: u64) -> StoredEvent {
    let id = EventId { ms: 1000, seq: lease.token + nth };
    StoredEvent { id, run: lease.run.clone(), thread: "t".into(), payload: "{}".into() }
}

async fn holders(store: &dyn Store, thread: &ThreadId) -> Vec<(String, String, RunStatus)> {
    let holdings = store.holdings(Some(thread)).await.unwrap();
    let told = |holding: hart_runtime::port::Holding| {
        (holding.lease.run.to_string(), holding.lease.node.to_string(), holding.status)
    };
    holdings.into_iter().map(told).collect()
}

#[tokio::test]
async fn a_run_is_its_nodes_until_another_takes_it_over() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        let request = StartRun {
            agent: "lead_agent".into(),
            options: map(json!({"model": "m"})),
            ..StartRun::new("lead_agent", "a".into(), Input::Values(map(json!({"messages": []}))))
        };
        for id in ["r1", "r2"] {
            let run = run(id, &thread, MultitaskStrategy::Enqueue);
            store.admit(run, request.clone(), &node("one")).await.unwrap();
        }
        assert!(claim(store.as_ref(), &thread, 5).await.is_none(), "{name}: it is not that node's");
        let first = store.claim(&thread, &node("one"), at(5)).await.unwrap().unwrap();
        assert_eq!(first.request, Some(request.clone()), "{name}");
        assert_eq!((first.attempt, first.tries), (1, 1), "{name}");
        let own = |text: &str| text.to_owned();
        assert_eq!(
            holders(store.as_ref(), &thread).await,
            [(own("r1"), own("one"), RunStatus::Running), (own("r2"), own("one"), RunStatus::Pending)],
            "{name}"
        );

        let taken = store.take_over(&first.lease, &node("two"), at(6)).await.unwrap().unwrap();
        assert!(taken.lease.token >= first.lease.token + NUMBERS, "{name}: numbers are given once");
        assert_eq!((taken.attempt, taken.tries), (2, 2), "{name}");
        assert_eq!(taken.request, Some(request), "{name}");
        assert!(store.take_over(&first.lease, &node("three"), at(6)).await.unwrap().is_none(), "{name}");

        let waiting = Lease { run: "r2".into(), node: node("one"), token: 0 };
        let adopted = store.take_over(&waiting, &node("two"), at(6)).await.unwrap().unwrap();
        assert_eq!((adopted.run.status, adopted.lease.token), (RunStatus::Pending, 0), "{name}");
        assert!(store.claim(&thread, &node("two"), at(6)).await.unwrap().is_none(), "{name}: r1 runs");
        store.end_run(&"r1".into(), end(), Some(&taken.lease)).await.unwrap().unwrap();
        let second = store.claim(&thread, &node("two"), at(6)).await.unwrap().unwrap();
        assert_eq!(second.run.id.as_str(), "r2", "{name}");
        assert!(second.lease.token > taken.lease.token, "{name}");
        let ended = store.take_over(&taken.lease, &node("three"), at(7)).await.unwrap();
        assert!(ended.is_none(), "{name}: it has ended");
    }
}

#[tokio::test]
async fn whoever_lost_a_run_writes_nothing_more() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        super::admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let stale = claim(store.as_ref(), &thread, 5).await.unwrap().lease;
        store.append_events(vec![event(&stale, 0)], &stale).await.unwrap();
        store.append_progress(steps_alone(vec![step("a", None, "r", &[])]), &stale).await.unwrap();
        let lease = store.take_over(&stale, &node("two"), at(6)).await.unwrap().unwrap().lease;

        let lost = |error: StoreError| assert!(matches!(error, StoreError::Lost(_)), "{name}: {error}");
        lost(store.append_events(vec![event(&stale, 4)], &stale).await.unwrap_err());
        let late = vec![step("b", Some("a"), "r", &[])];
        lost(store.append_progress(steps_alone(late.clone()), &stale).await.unwrap_err());
        assert!(store.end_run(&"r".into(), end(), Some(&stale)).await.unwrap().is_none(), "{name}");
        assert!(store.end_run(&"r".into(), end(), None).await.unwrap().is_none(), "{name}");
        assert!(!store.undo_run(&"r".into(), at(7), Some(&stale)).await.unwrap(), "{name}");
        assert!(store.beat(&stale.node).await.unwrap().is_empty(), "{name}");
        assert_eq!(store.steps(&thread, None).await.unwrap().len(), 1, "{name}");

        store.append_progress(steps_alone(late), &lease).await.unwrap();
        store.append_events(vec![event(&lease, 0)], &lease).await.unwrap();
        assert_eq!(store.beat(&lease.node).await.unwrap()[0].lease, lease, "{name}");
        store.end_run(&"r".into(), end(), Some(&lease)).await.unwrap().unwrap();
        // Nor does anybody once it has ended.
        lost(store.append_events(vec![event(&lease, 4)], &lease).await.unwrap_err());
    }
}

#[tokio::test]
async fn tries_are_counted_from_the_last_step_that_was_made() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        super::admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let mut claimed = claim(store.as_ref(), &thread, 5).await.unwrap();
        let mut counted = Vec::new();
        for attempt in 0..5 {
            if attempt == 2 {
                let step = vec![step("s", None, "r", &[])];
                store.append_progress(steps_alone(step), &claimed.lease).await.unwrap();
            }
            claimed = store.take_over(&claimed.lease, &node("n"), at(6)).await.unwrap().unwrap();
            counted.push((claimed.attempt, claimed.tries));
        }
        assert_eq!(counted, [(2, 2), (3, 3), (4, 1), (5, 2), (6, 3)], "{name}");
        // One that was let go of is anybody's, and did not count.
        store.release(&claimed.lease).await.unwrap();
        let free = store.holdings(None).await.unwrap().remove(0);
        assert_eq!((free.sign, free.tries), (Sign::Gone, 2), "{name}");
        let again = store.take_over(&free.lease, &node("m"), at(7)).await.unwrap().unwrap();
        assert_eq!((again.attempt, again.tries), (7, 3), "{name}");
    }
}

#[tokio::test]
async fn a_beat_is_seen_by_others_and_tells_who_wants_a_run_stopped() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        assert!(!store.ask_to_stop(&"r".into(), CancelAction::Rollback).await.unwrap(), "{name}");
        super::admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        claim(store.as_ref(), &thread, 5).await.unwrap();
        let mut beats = Vec::new();
        for _ in 0..3 {
            assert_eq!(store.beat(&node("n")).await.unwrap()[0].stop, None, "{name}");
            beats.push(store.holdings(None).await.unwrap()[0].beat);
        }
        assert_eq!(beats.iter().collect::<HashSet<_>>().len(), 3, "{name}: {beats:?}");
        assert!(store.ask_to_stop(&"r".into(), CancelAction::Rollback).await.unwrap(), "{name}");
        let held = store.beat(&node("n")).await.unwrap();
        assert_eq!(held[0].stop, Some(CancelAction::Rollback), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_given_once() {
    for (name, store, _dir) in stores() {
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let store = store.clone();
            asked.spawn(async move { store.numbers().await.unwrap() });
        }
        let mut given = asked.join_all().await;
        given.sort_unstable();
        assert!(given.windows(2).all(|pair| pair[1] - pair[0] >= NUMBERS), "{name}: {given:?}");
        assert!(given[0] > 0, "{name}");
    }
}

/// The file alone knows: a lock that the kernel lets go of, whatever the process died of.
#[tokio::test]
async fn a_node_that_is_gone_is_seen_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let open = || std::sync::Arc::new(hart_store::SqliteStore::open(&path).unwrap());
    let (watcher, worker): (_, std::sync::Arc<dyn Store>) = (open(), open());
    worker.join(&node("worker")).await.unwrap();
    let thread = make(worker.as_ref(), "t").await;
    let waiting = run("r", &thread, MultitaskStrategy::Enqueue);
    worker.admit(waiting, StartRun::default(), &node("worker")).await.unwrap();
    let watcher: std::sync::Arc<dyn Store> = watcher;
    assert_eq!(watcher.holdings(None).await.unwrap()[0].sign, Sign::There);
    drop(worker);
    watcher.join(&node("watcher")).await.unwrap();
    assert_eq!(watcher.holdings(None).await.unwrap()[0].sign, Sign::Gone);
    // What cannot be seen proves nothing.
    std::fs::remove_file(dir.path().join("hart.db-nodes/worker")).unwrap();
    assert_eq!(watcher.holdings(None).await.unwrap()[0].sign, Sign::None);
}

#[tokio::test]
async fn a_run_that_began_its_thread_still_did_when_it_is_taken_over() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        store.append_progress(steps_alone(vec![step("s", None, "r", &[])]), &lease).await.unwrap();
        let taken = store.take_over(&lease, &"two".into(), at(3)).await.unwrap().unwrap();
        assert_eq!(taken.run.base, None, "{name}");
        assert!(store.undo_run(&"r".into(), at(4), Some(&taken.lease)).await.unwrap());
        let row = store.thread(&thread).await.unwrap().unwrap();
        assert_eq!(row.head, None, "{name}: it is where the run found it");
    }
}
