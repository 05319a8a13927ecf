//! Events: in order, after any number, per run and per thread, until they are forgotten.

use hart_runtime::Totals;
use hart_runtime::port::{EventScope, RunEnd, StoredEvent};
use hart_types::{EventId, MultitaskStrategy, RunStatus};

use super::{admit, at, claim, make, run, stores};

fn event(seq: u64, run: &str, thread: &str) -> StoredEvent {
    let payload = format!("{{\"n\":{seq}}}").into();
    StoredEvent { id: EventId { ms: 1000 + seq / 3, seq }, run: run.into(), thread: thread.into(), payload }
}

#[tokio::test]
async fn events_are_read_in_order_from_any_point() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("odd", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        let all: Vec<_> =
            (1..=20).map(|seq| event(seq, if seq % 2 == 0 { "even" } else { "odd" }, "t")).collect();
        for batch in all.chunks(6) {
            store.append_events(batch.to_vec(), &lease).await.unwrap();
        }
        let of = |scope, after, limit| {
            let store = store.clone();
            async move { store.events(&scope, after, limit).await.unwrap() }
        };
        assert_eq!(of(EventScope::Thread("t".into()), 0, 100).await, all, "{name}");
        let odd: Vec<_> =
            all.iter().filter(|event| event.id.seq % 2 == 1 && event.id.seq > 7).cloned().collect();
        assert_eq!(of(EventScope::Run("odd".into()), 7, 100).await, odd, "{name}");
        assert_eq!(of(EventScope::Run("odd".into()), 7, 2).await, odd[..2], "{name}");
        assert!(of(EventScope::Run("none".into()), 0, 100).await.is_empty(), "{name}");
        let bounds = store.event_bounds(&"even".into()).await.unwrap();
        assert_eq!(bounds, Some((all[1].id, all[19].id)), "{name}");
        // The same number again is refused whole.
        assert!(
            store.append_events(vec![event(21, "odd", "t"), event(5, "odd", "t")], &lease).await.is_err(),
            "{name}"
        );
        assert_eq!(of(EventScope::Thread("t".into()), 0, 100).await.len(), 20, "{name}");
    }
}

#[tokio::test]
async fn only_events_of_runs_that_ended_long_ago_are_forgotten() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        for id in ["old", "new"] {
            admit(store.as_ref(), run(id, &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        }
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        store.append_events(vec![event(1, "new", "t"), event(2, "old", "t")], &lease).await.unwrap();
        let end = RunEnd {
            status: RunStatus::Success,
            error: None,
            totals: Totals::default(),
            at: at(10),
            base: None,
            values: None,
            // The end of a run and the end of its log are one write.
            events: vec![event(3, "old", "t")],
        };
        store.end_run(&"old".into(), end, Some(&lease)).await.unwrap();
        assert_eq!(store.forget_events(at(10)).await.unwrap(), 0, "{name}");
        assert_eq!(store.forget_events(at(11)).await.unwrap(), 2, "{name}");
        assert_eq!(store.event_bounds(&"old".into()).await.unwrap(), None, "{name}");
        assert!(store.event_bounds(&"new".into()).await.unwrap().is_some(), "{name}");
    }
}
