//! Files of older versions, brought up to date with all they hold.

use std::path::Path;

use hart_runtime::port::{EventScope, Events, RunQuery, Runs, Steps, ThreadQuery, Threads};
use hart_store::SqliteStore;

/// What each version of the file was made with. A new migration is added here and never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_threads_and_runs.sql"),
    include_str!("../migrations/0002_items.sql"),
    include_str!("../migrations/0003_assistants.sql"),
    include_str!("../migrations/0004_leases.sql"),
    include_str!("../migrations/0005_crons.sql"),
    include_str!("../migrations/0006_effects.sql"),
    include_str!("../migrations/0007_outbox.sql"),
    include_str!("../migrations/0008_records.sql"),
    include_str!("../migrations/0009_child_steps.sql"),
    include_str!("../migrations/0010_sums.sql"),
    include_str!("../migrations/0011_feedback.sql"),
    include_str!("../migrations/0012_keys_of_requests.sql"),
    include_str!("../migrations/0013_more_sums.sql"),
    include_str!("../migrations/0014_leaner_indexes.sql"),
    include_str!("../migrations/0015_events_in_rows.sql"),
    include_str!("../migrations/0016_lifetimes.sql"),
    include_str!("../migrations/0017_states_of_deleted_runs.sql"),
];

/// A thread with a run and an event, as the first version wrote them.
const ROWS: &str = "
    INSERT INTO threads (n, id, user, created_at, updated_at, state_updated_at, metadata, config, status, temporary)
        VALUES (1, 't', 'default', 1, 2, 3, '{\"k\":1}', '{}', 'idle', 0);
    INSERT INTO thread_tags VALUES ('k', '1', 1);
    INSERT INTO runs (id, thread, assistant, user, status, metadata, kwargs, multitask, created_at, updated_at,
                      start_at, totals)
        VALUES ('r', 1, 'agent', 'default', 'success', '{}', '{}', 'enqueue', 1, 2, 1, '{\"model_calls\":3}');
";
const EVENT: &str = "INSERT INTO events (seq, ms, run, thread, payload) VALUES (4, 1, 'r', 't', x'7b7d')";
/// As it is since version 15.
const ROW: &str = "INSERT INTO events (first, last, run, thread, text) VALUES (4, 4, 1, 1, CAST('1-4 {}' || char(10) AS BLOB))";

fn file_of(version: usize, path: &Path) {
    let db = rusqlite::Connection::open(path).unwrap();
    for migration in &MIGRATIONS[..version] {
        db.execute_batch(migration).unwrap();
    }
    db.execute_batch(ROWS).unwrap();
    db.execute_batch(if version < 15 { EVENT } else { ROW }).unwrap();
    db.pragma_update(None, "user_version", u32::try_from(version).unwrap()).unwrap();
}

#[tokio::test]
async fn a_file_of_every_version_opens_and_keeps_its_rows() {
    for version in 1..=MIGRATIONS.len() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hart.db");
        file_of(version, &path);
        let store = SqliteStore::open(&path).unwrap();
        let found: ThreadQuery = ThreadQuery {
            metadata: serde_json::from_str(r#"{"k": 1}"#).unwrap(),
            limit: 9,
            ..ThreadQuery::default()
        };
        assert_eq!(store.search_threads(&found).await.unwrap().len(), 1, "from {version}");
        let runs = store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap();
        assert_eq!(runs[0].totals.model_calls, 3, "from {version}");
        for scope in [EventScope::Run("r".into()), EventScope::Thread("t".into())] {
            let told = store.events(&scope, 3, 9).await.unwrap();
            assert_eq!(told.len(), 1, "from {version}");
            assert_eq!((told[0].id.to_string().as_str(), &told[0].payload[..]), ("1-4", &b"{}"[..]));
        }
        drop(store);
        let db = rusqlite::Connection::open(&path).unwrap();
        let now: u32 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(now as usize, MIGRATIONS.len(), "a migration is missing here");
    }
}

/// What the file of a version was in the end, beside the migrations that led there: one that is changed later would
/// give new files another shape than those that exist.
const FROZEN: &str = include_str!("fixtures/version12.sql");

fn frozen(path: &Path) {
    rusqlite::Connection::open(path).unwrap().execute_batch(FROZEN).unwrap();
}

/// Tables, indexes and triggers, however they are laid out.
fn shape(db: &rusqlite::Connection) -> Vec<String> {
    let mut statement =
        db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name").unwrap();
    let all = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    all.map(|sql| sql.unwrap().split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "")).collect()
}

#[tokio::test]
async fn a_file_that_was_made_then_has_the_shape_of_one_that_is_made_now() {
    let dir = tempfile::tempdir().unwrap();
    let (then, now) = (dir.path().join("then.db"), dir.path().join("now.db"));
    frozen(&then);
    for path in [&then, &now] {
        drop(SqliteStore::open(path).unwrap());
    }
    let open = |path: &Path| rusqlite::Connection::open(path).unwrap();
    assert_eq!(shape(&open(&then)), shape(&open(&now)), "a migration that was handed out was changed");
}

#[tokio::test]
async fn nothing_of_a_frozen_file_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    frozen(&path);
    let count = |db: &rusqlite::Connection| -> Vec<(String, i64)> {
        let mut tables =
            db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name").unwrap();
        let names: Vec<String> =
            tables.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        let rows = |name: &str| {
            db.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0)).unwrap()
        };
        names.into_iter().map(|name| (name.clone(), rows(&name))).collect()
    };
    let before = count(&rusqlite::Connection::open(&path).unwrap());
    assert!(before.iter().all(|(_, rows)| *rows > 0), "an empty table shows nothing: {before:?}");
    let store = SqliteStore::open(&path).unwrap();
    let steps = store.steps(&"t".into(), None).await.unwrap();
    assert_eq!(steps[1].writes[1].value, serde_json::json!({"large": true}));
    let run = store.run(&"r".into()).await.unwrap().unwrap();
    assert_eq!((run.idempotency_key.as_deref(), run.totals.model_calls), (Some("key"), 3));
    drop(store);
    let after = count(&rusqlite::Connection::open(&path).unwrap());
    for (table, rows) in before {
        let kept = after.iter().any(|(name, now)| *name == table && *now >= rows);
        assert!(kept, "{table} had {rows} rows: {after:?}");
    }
}
