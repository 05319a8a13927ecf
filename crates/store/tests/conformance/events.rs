//! Events: in order, after any number, per run and per thread, until they are forgotten.

use hart_runtime::Totals;
use hart_runtime::port::{EventScope, NUMBERS, Progress, RunEnd, StoredEvent};
use hart_types::{EventId, MultitaskStrategy, RunStatus};

use super::{admit, at, claim, make, run, step, steps_alone, stores};

fn event(seq: u64, run: &str, thread: &str) -> StoredEvent {
    let payload = format!("{{\"n\":{seq}}}").into();
    StoredEvent { id: EventId { ms: 1000 + seq / 3, seq }, run: run.into(), thread: thread.into(), payload }
}

#[tokio::test]
async fn events_are_read_in_order_from_any_point() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        for id in ["early", "late"] {
            admit(store.as_ref(), run(id, &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        }
        // In rows of several, one of which goes over into other numbers, and one of which is more than a row.
        let early: Vec<_> =
            [1, 2, 3, 4, 5, 6, NUMBERS - 8, NUMBERS, NUMBERS + 8].map(|seq| event(seq, "early", "t")).into();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        for batch in early.chunks(6) {
            store.append_events(batch.to_vec(), &lease).await.unwrap();
        }
        store.end_run(&"early".into(), ended(2), Some(&lease)).await.unwrap().unwrap();
        let mut late: Vec<_> = (0..9).map(|n| event(2 * NUMBERS + 8 * n, "late", "t")).collect();
        late[3].payload = vec![b'x'; 40_000].into();
        let lease = claim(store.as_ref(), &thread, 3).await.unwrap().lease;
        store.append_events(late.clone(), &lease).await.unwrap();
        let all = [early.clone(), late.clone()].concat();
        let of = |scope, after, limit| {
            let store = store.clone();
            async move { store.events(&scope, after, limit).await.unwrap() }
        };
        let (on_thread, of_late) = (EventScope::Thread("t".into()), EventScope::Run("late".into()));
        for cursor in [0].into_iter().chain(all.iter().map(|event| event.id.seq)) {
            let behind = |events: &[StoredEvent]| -> Vec<StoredEvent> {
                events.iter().filter(|event| event.id.seq > cursor).cloned().collect()
            };
            assert_eq!(of(on_thread.clone(), cursor, 100).await, behind(&all), "{name} {cursor}");
            let own = of(EventScope::Run("early".into()), cursor, 100).await;
            assert_eq!(own, behind(&early), "{name} {cursor}");
            assert_eq!(of(of_late.clone(), cursor, 100).await, behind(&late), "{name} {cursor}");
        }
        assert_eq!(of(on_thread.clone(), 3, 4).await, all[3..7], "{name}");
        assert!(of(EventScope::Run("none".into()), 0, 100).await.is_empty(), "{name}");
        // A page: as much as there is room for, and never nothing where there is something.
        let size = late[1].payload.len() + late[2].payload.len();
        for (room, many) in [(0, 1), (size - 1, 1), (size, 2), (99_999, 8)] {
            let page = store.page_of_events(&of_late, late[0].id.seq, room).await.unwrap();
            assert_eq!(page, late[1..=many], "{name} {room}");
        }
        assert!(store.page_of_events(&EventScope::Run("none".into()), 0, 99).await.unwrap().is_empty());
        let bounds = store.event_bounds(&"late".into()).await.unwrap();
        assert_eq!(bounds, Some((late[0].id, late[8].id)), "{name}");
        // What was written and is written again is refused whole, also when there is more of it.
        let more = event(3 * NUMBERS, "late", "t");
        let again = late.iter().cloned().chain([more]).collect();
        assert!(store.append_events(again, &lease).await.is_err(), "{name}");
        assert_eq!(of(on_thread, 0, 100).await.len(), all.len(), "{name}");
    }
}

fn ended(second: i64) -> RunEnd {
    RunEnd {
        status: RunStatus::Success,
        error: None,
        totals: Totals::default(),
        at: at(second),
        base: None,
        values: None,
        events: Vec::new(),
    }
}

#[tokio::test]
async fn steps_and_the_events_that_tell_of_them_are_written_together_or_not_at_all() {
    for (name, store, _dir) in stores() {
        let thread = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("r", &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 2).await.unwrap().lease;
        let told = |id: &str, events| Progress { events, ..steps_alone(vec![step(id, None, "r", &[])]) };
        store.append_progress(told("a", vec![event(1, "r", "t")]), &lease).await.unwrap();
        let again = told("b", vec![event(1, "r", "t"), event(2, "r", "t")]);
        assert!(store.append_progress(again, &lease).await.is_err(), "{name}: a number twice");
        let kept = store.events(&EventScope::Run("r".into()), 0, 100).await.unwrap();
        assert_eq!(kept, [event(1, "r", "t")], "{name}");
        let steps = store.steps(&thread, None).await.unwrap();
        assert_eq!(steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(), ["a"], "{name}");
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
        store.append_events(vec![event(1, "old", "t"), event(2, "old", "t")], &lease).await.unwrap();
        // The end of a run and the end of its log are one write.
        let end = RunEnd { events: vec![event(3, "old", "t")], ..ended(10) };
        store.end_run(&"old".into(), end, Some(&lease)).await.unwrap();
        let lease = claim(store.as_ref(), &thread, 10).await.unwrap().lease;
        store.append_events(vec![event(4, "new", "t")], &lease).await.unwrap();
        assert_eq!(
            store.event_bounds(&"old".into()).await.unwrap().map(|(_, last)| last.seq),
            Some(3),
            "{name}"
        );
        assert_eq!(store.forget_events(at(10)).await.unwrap(), 0, "{name}");
        assert!(store.forget_events(at(11)).await.unwrap() > 0, "{name}");
        assert_eq!(store.event_bounds(&"old".into()).await.unwrap(), None, "{name}");
        assert!(store.event_bounds(&"new".into()).await.unwrap().is_some(), "{name}");
    }
}
