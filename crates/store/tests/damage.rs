//! Files with holes in them: what is lost is told and what is not can be used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{Agent, Begun, Checkpointer, Clock, EffectKey, SystemClock, async_trait};
use hart_runtime::port::{
    Effects, EventScope, Events, Leases, Runs, Steps, Store, StoreError, StoredEvent, Threads,
};
use hart_runtime::{AgentFactory, AgentInfo, AgentRequest, FactoryError, NoWorkspaces, Parts, Runtime};
use hart_store::SqliteStore;
use hart_types::{EventId, MultitaskStrategy};
use serde_json::json;

use crate::conformance::{admit, claim, make, run, step, steps_alone, steps_inside};

const SMALL: &str = "said in a few words";

/// Two threads with steps, messages and events, closed.
async fn file(dir: &Path) -> PathBuf {
    let path = dir.join("hart.db");
    let store = SqliteStore::open(&path).unwrap();
    for name in ["one", "other"] {
        let thread = make(&store, name).await;
        admit(&store, run(&format!("run-{name}"), &thread, MultitaskStrategy::Enqueue)).await.unwrap();
        let lease = claim(&store, &thread, 1).await.unwrap().lease;
        let id = |n: u32| format!("{name}-step-{n}");
        let large = format!("{name} {}", "at length ".repeat(500));
        let steps = vec![
            step(&id(1), None, "run", &[("messages", json!({"text": format!("{name}: {SMALL}")}))]),
            step(&id(2), Some(&id(1)), "run", &[("messages", json!({"text": large}))]),
            step(&id(3), Some(&id(2)), "run", &[]),
        ];
        store.append_progress(steps_alone(steps), &lease).await.unwrap();
        let events = (0..3).map(|n| StoredEvent {
            id: EventId { ms: 1, seq: lease.token + n },
            run: lease.run.clone(),
            thread: thread.clone(),
            payload: format!("{{\"event\":\"{name} was told {n}\"}}").into(),
        });
        store.append_events(events.collect(), &lease).await.unwrap();
        let inside = step(&format!("inside {name}"), None, "child", &[]);
        store.append_progress(steps_inside("call", vec![inside]), &lease).await.unwrap();
        let begun = Begun {
            key: EffectKey::from(format!("key-{name}")),
            tool: "send".into(),
            call: "c".into(),
            foreseen: Some(json!({"before": name})),
            outcome: None,
        };
        store.begin_effect(begun.clone(), &lease).await.unwrap();
        store.finish_effect(&begun.key, json!({"sent": name}), &lease).await.unwrap();
    }
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    path
}

/// One bit of the last byte of these words falls over, wherever they are in the file.
fn flip(path: &Path, words: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let found: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(words.as_bytes())).collect();
    assert!(!found.is_empty(), "{words}");
    found.into_iter().for_each(|at| bytes[at + words.len() - 1] ^= 1);
    std::fs::write(path, bytes).unwrap();
}

async fn read(store: &dyn Store, thread: &str) -> Result<(), StoreError> {
    store.steps(&thread.into(), None).await?;
    store.events(&EventScope::Thread(thread.into()), 0, 100).await?;
    store.child_steps(&thread.into(), "call").await?;
    store.effects(&format!("run-{thread}").as_str().into()).await.map(|_| ())
}

/// The one thread says what is wrong with it, the other one is whole and can be written to.
async fn assert_told(path: &Path, words: &str) {
    let store = SqliteStore::open(path).unwrap();
    let error = read(&store, "one").await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
    assert!(error.to_string().contains(words) && error.to_string().contains("restore a backup"), "{error}");
    read(&store, "other").await.unwrap();
    make(&store, "new").await;
    admit(&store, run("new", &"new".into(), MultitaskStrategy::Enqueue)).await.unwrap();
    assert!(store.run(&"run-one".into()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_bit_that_fell_over_in_a_message_an_event_or_a_step_is_noticed() {
    for (words, told) in [
        ("one: said in", "`messages` in step one-step-1"),
        ("one at length at", "`messages` in step one-step-2"),
        ("one was told", "of run run-one"),
        ("one-step-3", "the newest step of thread one"),
        ("inside one", "a step inside call call of run run-one"),
        ("{\"before\":\"one", "call c of `send` in run run-one"),
        ("{\"sent\":\"one", "what came of call c of `send` in run run-one"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path()).await;
        read(&SqliteStore::open(&path).unwrap(), "one").await.unwrap();
        flip(&path, words);
        assert_told(&path, told).await;
    }
}

#[tokio::test]
async fn a_blob_or_a_step_that_is_missing_is_noticed() {
    for (damage, told) in [
        ("DELETE FROM blobs WHERE data LIKE '%one at%'", "its blob is missing"),
        ("DELETE FROM steps WHERE id = 'one-step-2'", "step one-step-2` cannot be read: it is missing"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path()).await;
        let db = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(db.execute(damage, []).unwrap(), 1);
        drop(db);
        assert_told(&path, told).await;
    }
}

/// Numbers have no words to look for in the file.
#[tokio::test]
async fn a_number_that_changed_is_noticed() {
    let row = "(SELECT min(first) FROM events)";
    for (damage, told) in [
        (format!("UPDATE events SET last = last - 1 WHERE first = {row}"), "of run run-one"),
        (format!("UPDATE events SET first = first + 1 WHERE first = {row}"), "of run run-one"),
        ("UPDATE steps SET number = 7 WHERE id = 'one-step-2'".to_owned(), "step one-step-2"),
        ("UPDATE steps SET created_at = 7 WHERE id = 'one-step-2'".to_owned(), "step one-step-2"),
        ("UPDATE steps SET source = '\"input\"' WHERE id = 'one-step-2'".to_owned(), "step one-step-2"),
        (
            "UPDATE writes SET private = 1 WHERE value LIKE '%one: said%'".to_owned(),
            "`messages` in step one-step-1",
        ),
        (
            "UPDATE writes SET place = 1 WHERE value LIKE '%one: said%'".to_owned(),
            "`messages` in step one-step-1",
        ),
        ("UPDATE threads SET head = NULL WHERE id = 'one'".to_owned(), "the newest step of thread one"),
        // As a hart left it that had no sum for it.
        (
            "UPDATE threads SET head = 'one-step-4', head_sum = NULL WHERE id = 'one'".to_owned(),
            "step one-step-4` cannot be read: it is missing",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path()).await;
        let db = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(db.execute(&damage, []).unwrap(), 1, "{damage}");
        drop(db);
        assert_told(&path, told).await;
    }
}

#[tokio::test]
async fn a_look_at_a_file_says_what_opening_it_would_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path()).await;
    let before = std::fs::read(&path).unwrap();
    SqliteStore::examine(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let newer = SqliteStore::examine(&path).unwrap_err().to_string();
    assert!(newer.contains("is of a newer hart"), "{newer}");
    std::fs::write(&path, &before[..before.len() / 2]).unwrap();
    let damaged = SqliteStore::examine(&path).unwrap_err().to_string();
    assert!(damaged.contains("is damaged"), "{damaged}");
}

#[tokio::test]
async fn a_damaged_thread_whose_time_is_over_keeps_no_other_from_going() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path()).await;
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "UPDATE threads SET lifetime = 1, remains = 'delete';
         UPDATE runs SET status = 'success';
         UPDATE threads SET metadata = '{' WHERE id = 'one';",
    )
    .unwrap();
    drop(db);
    let store = SqliteStore::open(&path).unwrap();
    let gone = store.expire_threads(SystemClock.now()).await.unwrap();
    assert_eq!(gone.into_iter().map(|thread| thread.id.to_string()).collect::<Vec<_>>(), ["other"]);
}

/// Sums of before covered less; they are still good for what they cover.
#[tokio::test]
async fn sums_of_before_are_read_and_hold_for_what_they_cover() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path()).await;
    let db = rusqlite::Connection::open(&path).unwrap();
    // CRC-32 of `messages` and the text, without anything between them.
    let (sum, text) = (0xc15ae7ed_i64, r#"{"text":"one: said in a few words"}"#);
    let changed = db.execute("UPDATE writes SET sum = ?1 WHERE value = ?2", rusqlite::params![sum, text]);
    assert_eq!(changed.unwrap(), 1);
    drop(db);
    read(&SqliteStore::open(&path).unwrap(), "one").await.unwrap();
    flip(&path, "one: said in");
    assert_told(&path, "`messages` in step one-step-1").await;
}

/// It is nobody's then, so that it is taken over at once.
fn change_request_of_run_one(path: &Path) {
    let db = rusqlite::Connection::open(path).unwrap();
    let damage = "UPDATE runs SET request = replace(request, '{', '{ '), owner = '' WHERE id = 'run-one'";
    assert_eq!(db.execute(damage, []).unwrap(), 1);
}

struct NoAgents;

#[async_trait]
impl AgentFactory for NoAgents {
    fn agents(&self) -> Vec<AgentInfo> {
        Vec::new()
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, _: &str, _: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        Err(FactoryError { error: "NoAgent".into(), message: "there is none".into() })
    }
}

/// What a run was asked also says whether its thread is to go with it.
#[tokio::test]
async fn a_run_whose_request_cannot_be_read_ends_and_its_thread_stays() {
    // Whatever is left of what it told: nothing, what is no event of a run, what is not what was written.
    for left in ["DELETE FROM events", "SELECT 1", "UPDATE events SET text = CAST('1-1 {}' AS BLOB)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path()).await;
        change_request_of_run_one(&path);
        rusqlite::Connection::open(&path).unwrap().execute_batch(left).unwrap();
        let parts = Parts {
            store: Arc::new(SqliteStore::open(&path).unwrap()),
            agents: Arc::new(NoAgents),
            workspaces: Arc::new(NoWorkspaces),
            clock: Arc::new(SystemClock),
        };
        let runtime = Runtime::open(parts).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), runtime.wait(&"run-one".into())).await;
        ended.unwrap_or_else(|_| panic!("{left}: the run does not end"));
        runtime.close(Duration::from_secs(5)).await;
        let run = runtime.store().run(&"run-one".into()).await.unwrap().expect("the run is gone");
        assert_eq!(run.error.unwrap().error, "Orphaned", "{left}");
        assert!(runtime.store().thread(&"one".into()).await.unwrap().is_some(), "{left}: the thread is gone");
    }
}

#[tokio::test]
async fn a_run_whose_request_cannot_be_read_is_given_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path()).await;
    change_request_of_run_one(&path);
    let store = SqliteStore::open(&path).unwrap();
    for (holding, is_known) in store.holdings(None).await.unwrap().into_iter().zip([false, true]) {
        let now = hart_kernel::Timestamp::UNIX_EPOCH;
        let claimed = store.take_over(&holding.lease, &"other".into(), now).await.unwrap().unwrap();
        assert_eq!(claimed.request.is_some(), is_known, "{}", claimed.run.id);
    }
}

/// As after a crash: the log is there beside the file, and then it is shorter.
#[tokio::test]
async fn a_log_that_was_cut_is_used_as_far_as_it_goes_and_no_number_is_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let store = SqliteStore::open(&path).unwrap();
    make(&store, "t").await;
    admit(&store, run("r", &"t".into(), MultitaskStrategy::Enqueue)).await.unwrap();
    let lease = claim(&store, &"t".into(), 1).await.unwrap().lease;
    let event = |seq| StoredEvent {
        id: EventId { ms: 1, seq },
        run: "r".into(),
        thread: "t".into(),
        payload: "{}".into(),
    };
    store.append_events(vec![event(lease.token)], &lease).await.unwrap();
    let log = std::fs::read(dir.path().join("hart.db-wal")).unwrap();
    let later = store.numbers().await.unwrap();
    store.append_events(vec![event(later)], &lease).await.unwrap();

    let copy = tempfile::tempdir().unwrap();
    for name in ["hart.db", "hart.db-mark"] {
        std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    // In the middle of what came last of all.
    std::fs::write(copy.path().join("hart.db-wal"), &log[..log.len() - 100]).unwrap();
    let found = SqliteStore::open(&copy.path().join("hart.db")).unwrap();
    assert!(found.run(&"r".into()).await.unwrap().is_some());
    assert!(found.events(&EventScope::Run("r".into()), 0, 9).await.unwrap().is_empty());
    assert!(
        found.numbers().await.unwrap() > later,
        "whoever has seen a number must not be shown another event by it"
    );
}

/// How far the log was is what tells a database that lost its end from one whose threads are gone.
#[tokio::test]
async fn the_highest_number_outlives_its_event() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path()).await;
    let newest = |path: &Path| -> i64 {
        let db = rusqlite::Connection::open(path).unwrap();
        let sql = "SELECT max(next, coalesce((SELECT max(last) FROM events), 0)) FROM counters WHERE name = 'written'";
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = newest(&path);
    let store = SqliteStore::open(&path).unwrap();
    for thread in ["other", "one"] {
        assert!(store.delete_thread(&thread.into()).await.unwrap());
    }
    drop(store);
    assert!(before > 0);
    assert_eq!(newest(&path), before);
}
