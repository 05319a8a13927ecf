//! Recordings: written by whoever holds the run, in order, and gone with it.

use bytes::Bytes;
use hart_runtime::Totals;
use hart_runtime::port::{RunEnd, Store, StoredRecord};
use hart_types::{MultitaskStrategy, RunStatus};

use super::{admit, at, claim, make, run, step, steps_alone, stores};

fn record(step: Option<&str>, text: &str) -> StoredRecord {
    StoredRecord { step: step.map(Into::into), payload: Bytes::from(text.to_owned()) }
}

fn ended(seconds: i64) -> RunEnd {
    RunEnd {
        status: RunStatus::Success,
        error: None,
        totals: Totals::default(),
        at: at(seconds),
        base: None,
        events: Vec::new(),
        values: None,
    }
}

async fn texts(store: &dyn Store, run: &str) -> Vec<String> {
    let records = store.records(&run.into()).await.unwrap();
    records.iter().map(|record| String::from_utf8(record.payload.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn records_go_with_the_next_write_in_order_and_by_the_lease_alone() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let stale = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        store.append_records(vec![record(Some("s"), "one"), record(Some("s"), "two")], &stale);
        store.append_progress(steps_alone(vec![step("s", None, "r", &[])]), &stale).await.unwrap();
        let kept = store.records(&"r".into()).await.unwrap();
        assert_eq!(kept, [record(Some("s"), "one"), record(Some("s"), "two")], "{name}");
        assert_eq!(store.recorded_bytes(&"r".into()).await.unwrap(), 6, "{name}");
        assert_eq!(store.recorded_bytes(&"other".into()).await.unwrap(), 0, "{name}");
        store.append_records(vec![record(None, "three")], &stale);

        let lease = store.take_over(&stale, &"two".into(), at(3)).await.unwrap().unwrap().lease;
        store.append_records(vec![record(None, "of a holder that is gone")], &stale);
        store.append_records(vec![record(None, "four")], &lease);
        store.end_run(&"r".into(), ended(9), Some(&lease)).await.unwrap().unwrap();
        assert_eq!(texts(store.as_ref(), "r").await, ["one", "two", "three", "four"], "{name}");
    }
}

#[tokio::test]
async fn records_are_forgotten_with_the_events_the_run_and_the_thread() {
    for (name, store, _dir) in stores() {
        for (id, end) in [("old", 10), ("new", 20), ("undone", 30), ("deleted", 40)] {
            let thread = make(store.as_ref(), id).await;
            admit(store.as_ref(), run(id, &thread, MultitaskStrategy::Enqueue)).await.unwrap();
            let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
            store.append_records(vec![record(None, id)], &lease);
            store.end_run(&id.into(), ended(end), Some(&lease)).await.unwrap().unwrap();
            assert_eq!(texts(store.as_ref(), id).await, [id], "{name}");
        }
        store.forget_events(at(15)).await.unwrap();
        store.undo_run(&"undone".into(), at(50), None).await.unwrap();
        assert!(store.delete_thread(&"deleted".into()).await.unwrap());
        for (id, left) in [("old", 0), ("new", 1), ("undone", 0), ("deleted", 0)] {
            assert_eq!(texts(store.as_ref(), id).await.len(), left, "{name}: {id}");
        }
    }
}
