//! Threads: made once, found by what they hold, forgotten whole.

use std::time::Duration;

use hart_runtime::port::{
    Created, EventScope, HistoryQuery, Order, RunQuery, StoredEvent, ThreadPatch, ThreadQuery, ThreadSort,
};
use hart_runtime::{Failure, Lifetime, Thread};
use hart_types::{EventId, MultitaskStrategy, PruneStrategy, ThreadStatus};
use serde_json::json;

use super::{admit, at, claim, make, map, run, step, steps_alone, stores, thread};

#[tokio::test]
async fn a_thread_is_read_back_as_it_was_made_and_made_once() {
    for (name, store, _dir) in stores() {
        let mut made = thread("t", 5, json!({"user": "u1", "deep": {"a": [1, "ü", null]}}));
        made.config = map(json!({"configurable": {}}));
        made.error = Some(Failure { error: "ValueError".into(), message: "boom".into() });
        assert_eq!(store.create_thread(made.clone()).await.unwrap(), Created::New(made.clone()), "{name}");
        let again = thread("t", 9, json!({}));
        assert_eq!(store.create_thread(again).await.unwrap(), Created::Existing(made.clone()), "{name}");
        assert_eq!(store.thread(&"t".into()).await.unwrap(), Some(made), "{name}");
        assert_eq!(store.thread(&"u".into()).await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn a_patch_merges_metadata_and_replaces_the_rest() {
    for (name, store, _dir) in stores() {
        store.create_thread(thread("t", 0, json!({"a": 1, "b": 2}))).await.unwrap();
        let patch = ThreadPatch {
            metadata: Some(map(json!({"b": 3, "c": {"d": 4}}))),
            status: Some(ThreadStatus::Error),
            error: Some(Some(Failure { error: "E".into(), message: "m".into() })),
            updated_at: Some(at(7)),
            ..ThreadPatch::default()
        };
        let patched = store.patch_thread(&"t".into(), patch).await.unwrap().unwrap();
        assert_eq!(patched.metadata, map(json!({"a": 1, "b": 3, "c": {"d": 4}})), "{name}");
        assert_eq!((patched.status, patched.updated_at), (ThreadStatus::Error, at(7)), "{name}");
        assert_eq!(store.thread(&"t".into()).await.unwrap(), Some(patched), "{name}");
        let clear = ThreadPatch { error: Some(None), ..ThreadPatch::default() };
        assert_eq!(store.patch_thread(&"t".into(), clear).await.unwrap().unwrap().error, None, "{name}");
        let found = |key: &str, value| ThreadQuery {
            metadata: map(json!({ key: value })),
            limit: 9,
            ..ThreadQuery::default()
        };
        assert_eq!(store.count_threads(&found("b", 2)).await.unwrap(), 0, "{name}");
        assert_eq!(store.count_threads(&found("b", 3)).await.unwrap(), 1, "{name}");
        assert!(store.patch_thread(&"u".into(), ThreadPatch::default()).await.unwrap().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_search_filters_sorts_and_pages() {
    for (name, store, _dir) in stores() {
        for (id, seconds, metadata) in [
            ("a", 3, json!({"kind": "x", "n": 1})),
            ("b", 1, json!({"kind": "x", "n": 2, "deep": {"k": ["v", "w"]}})),
            ("c", 2, json!({"kind": "y", "n": 1})),
        ] {
            store.create_thread(thread(id, seconds, metadata)).await.unwrap();
        }
        let all = ThreadQuery { limit: 10, ..ThreadQuery::default() };
        let table = [
            (all.clone(), vec!["a", "c", "b"]),
            (ThreadQuery { order: Order::Ascending, ..all.clone() }, vec!["b", "c", "a"]),
            (
                ThreadQuery { sort: ThreadSort::Id, order: Order::Ascending, ..all.clone() },
                vec!["a", "b", "c"],
            ),
            (ThreadQuery { limit: 1, offset: 1, ..all.clone() }, vec!["c"]),
            (ThreadQuery { metadata: map(json!({"kind": "x"})), ..all.clone() }, vec!["a", "b"]),
            (ThreadQuery { metadata: map(json!({"kind": "x", "n": 1})), ..all.clone() }, vec!["a"]),
            (ThreadQuery { metadata: map(json!({"kind": "z"})), ..all.clone() }, vec![]),
            (ThreadQuery { metadata: map(json!({"n": "1"})), ..all.clone() }, vec![]),
            (ThreadQuery { metadata: map(json!({"deep": {"k": ["w"]}})), ..all.clone() }, vec!["b"]),
            (ThreadQuery { metadata: map(json!({"deep": {"k": ["u"]}})), ..all.clone() }, vec![]),
            (
                ThreadQuery { ids: Some(vec!["c".into(), "b".into(), "z".into()]), ..all.clone() },
                vec!["c", "b"],
            ),
            (ThreadQuery { status: Some(ThreadStatus::Busy), ..all.clone() }, vec![]),
            (ThreadQuery { user: Some("somebody".into()), ..all.clone() }, vec![]),
        ];
        for (query, expected) in table {
            let found = store.search_threads(&query).await.unwrap();
            let ids: Vec<&str> = found.iter().map(|thread| thread.id.as_str()).collect();
            assert_eq!(ids, expected, "{name} {query:?}");
        }
        let mut many: serde_json::Map<_, _> = (0..2000).map(|n| (format!("k{n}"), json!(n))).collect();
        store.create_thread(thread("m", 9, many.clone().into())).await.unwrap();
        let found = ThreadQuery { metadata: many.clone(), ..all.clone() };
        assert_eq!(store.count_threads(&found).await.unwrap(), 1, "{name}");
        many.insert("k1999".to_owned(), json!("another"));
        let missed = ThreadQuery { metadata: many, ..all.clone() };
        assert_eq!(store.count_threads(&missed).await.unwrap(), 0, "{name}");
        assert_eq!(store.count_threads(&ThreadQuery { limit: 1, ..all }).await.unwrap(), 4, "{name}");
    }
}

#[tokio::test]
async fn a_common_tag_is_found_as_a_rare_one_is() {
    for (name, store, _dir) in stores() {
        for n in 0..2100 {
            store.create_thread(thread(&format!("t{n:04}"), n, json!({"all": true, "n": n}))).await.unwrap();
        }
        let query = |metadata| ThreadQuery { metadata: map(metadata), limit: 2, ..ThreadQuery::default() };
        let ids = |threads: Vec<hart_runtime::Thread>| {
            threads.into_iter().map(|t| t.id.to_string()).collect::<Vec<_>>()
        };
        let common = store.search_threads(&query(json!({"all": true}))).await.unwrap();
        assert_eq!(ids(common), ["t2099", "t2098"], "{name}");
        let both = store.search_threads(&query(json!({"all": true, "n": 7}))).await.unwrap();
        assert_eq!(ids(both), ["t0007"], "{name}");
    }
}

#[tokio::test]
async fn a_thread_that_nobody_uses_goes_when_its_time_is_over() {
    let minute = |remains| Some(Lifetime { unused: Duration::from_secs(60), remains });
    for (name, store, _dir) in stores() {
        for (id, lifetime) in [
            ("stays", None),
            ("goes", minute(PruneStrategy::Delete)),
            ("used", minute(PruneStrategy::Delete)),
            ("busy", minute(PruneStrategy::Delete)),
            ("folded", minute(PruneStrategy::KeepLatest)),
        ] {
            let made = Thread { lifetime, ..thread(id, 0, json!({})) };
            store.create_thread(made.clone()).await.unwrap();
            assert_eq!(store.thread(&id.into()).await.unwrap(), Some(made), "{name}");
        }
        let used = async |id: &str, seconds| {
            let patch = ThreadPatch { updated_at: Some(at(seconds)), ..ThreadPatch::default() };
            store.patch_thread(&id.into(), patch).await.unwrap();
        };
        used("used", 30).await;
        admit(store.as_ref(), run("r", &"busy".into(), MultitaskStrategy::Enqueue)).await.unwrap();
        let steps =
            ["1", "2"].map(|id| step(id, (id == "2").then_some("1"), "r", &[("messages", json!([id]))]));
        store.append_steps(&"folded".into(), steps.to_vec()).await.unwrap();
        let gone = async |seconds| -> Vec<String> {
            let gone = store.expire_threads(at(seconds)).await.unwrap();
            gone.into_iter().map(|thread| thread.id.to_string()).collect()
        };
        let kept = async || {
            let all = HistoryQuery { limit: 9, ..HistoryQuery::default() };
            store.history(&"folded".into(), &all).await.unwrap().len()
        };
        assert_eq!(gone(59).await, Vec::<String>::new(), "{name}");
        assert_eq!(kept().await, 2, "{name}");
        assert_eq!(gone(63).await, ["goes"], "{name}");
        assert_eq!(kept().await, 1, "{name}: its newest state");
        // That was seen to, until somebody uses it again.
        let newest = store.steps(&"folded".into(), None).await.unwrap();
        assert_eq!(gone(91).await, ["used"], "{name}");
        assert_eq!(store.steps(&"folded".into(), None).await.unwrap(), newest, "{name}");
        let more = step("3", Some(newest[0].id.as_str()), "r", &[("messages", json!(["3"]))]);
        store.append_steps(&"folded".into(), vec![more]).await.unwrap();
        used("folded", 100).await;
        assert_eq!((gone(161).await.len(), kept().await), (0, 1), "{name}");
        for id in ["stays", "busy", "folded"] {
            assert!(store.thread(&id.into()).await.unwrap().is_some(), "{name}: {id}");
        }
    }
}

#[tokio::test]
async fn a_forgotten_thread_leaves_nothing() {
    for (name, store, _dir) in stores() {
        let id = make(store.as_ref(), "t").await;
        admit(store.as_ref(), run("r", &id, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(store.as_ref(), &id, 2).await.unwrap().lease;
        let large = vec![step("1", None, "r", &[("messages", json!(["x".repeat(5000)]))])];
        store.append_progress(steps_alone(large), &lease).await.unwrap();
        let event = StoredEvent {
            id: EventId { ms: 1, seq: 1 },
            run: "r".into(),
            thread: id.clone(),
            payload: "{}".into(),
        };
        store.append_events(vec![event], &lease).await.unwrap();
        assert!(store.delete_thread(&id).await.unwrap(), "{name}");
        assert!(!store.delete_thread(&id).await.unwrap(), "{name}");
        assert!(store.run(&"r".into()).await.unwrap().is_none(), "{name}");
        assert!(store.steps(&id, None).await.unwrap().is_empty(), "{name}");
        assert!(
            store
                .history(&id, &HistoryQuery { limit: 9, ..HistoryQuery::default() })
                .await
                .unwrap()
                .is_empty()
        );
        assert!(store.events(&EventScope::Thread(id.clone()), 0, 9).await.unwrap().is_empty(), "{name}");
        assert!(
            store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap().is_empty(),
            "{name}"
        );
        // Its name is free again.
        assert!(
            matches!(store.create_thread(thread("t", 0, json!({}))).await.unwrap(), Created::New(_)),
            "{name}"
        );
    }
}
