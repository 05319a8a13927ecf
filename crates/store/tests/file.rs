//! The file itself: kept across restarts, refused when damaged or too new, copied while in use.

use std::path::Path;

use hart_runtime::Thread;
use hart_runtime::port::{Events, Leases, Runs, Sign, Steps, ThreadQuery, Threads};
use hart_store::{OpenError, SqliteStore};

fn thread(id: &str) -> Thread {
    Thread::new(id.into(), "default".into(), hart_kernel::Timestamp::UNIX_EPOCH)
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let store = SqliteStore::open(&path).unwrap();
    store.create_thread(thread("t")).await.unwrap();
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.thread(&"t".into()).await.unwrap(), Some(thread("t")));
}

#[tokio::test]
async fn a_file_of_a_newer_hart_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    drop(SqliteStore::open(&path).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 999, .. }), "{error}");
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE places (url TEXT)").unwrap();
    drop(db);
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    let db = rusqlite::Connection::open(&path).unwrap();
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

/// Runs of before there were leases have no holder and no request; whoever opens the file may have them.
#[tokio::test]
async fn a_file_of_an_older_hart_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(include_str!("fixtures/version2.sql")).unwrap();
    drop(db);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.steps(&"t".into(), None).await.unwrap().len(), 1);
    let holdings = store.holdings(None).await.unwrap();
    assert_eq!(holdings.len(), 2);
    assert!(holdings.iter().all(|holding| holding.sign == Sign::Gone));
    let now = hart_kernel::Timestamp::UNIX_EPOCH;
    let taken = store.take_over(&holdings[0].lease, &"n".into(), now).await.unwrap().unwrap();
    assert_eq!((taken.run.id.as_str(), taken.request), ("running", None));
    // A number that was given before is not given again.
    let (_, last) = store.event_bounds(&"ended".into()).await.unwrap().unwrap();
    assert!(taken.lease.token > last.seq);
    assert!(store.run(&"ended".into()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let garbage = dir.path().join("garbage.db");
    std::fs::write(&garbage, "this is no database, and long enough to look like a header of one".repeat(50))
        .unwrap();
    assert!(matches!(SqliteStore::open(&garbage).unwrap_err(), OpenError::Damaged { .. }));

    let path = dir.path().join("hart.db");
    let store = SqliteStore::open(&path).unwrap();
    for n in 0..500 {
        store.create_thread(thread(&format!("thread-{n}"))).await.unwrap();
    }
    drop(store);
    // The log is written back when the last connection closes; until then the damage would not be seen.
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    let page = bytes.len() / 4096 / 2 * 4096;
    bytes[page..page + 4096].fill(0xA5);
    std::fs::write(&path, bytes).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

/// Of a table, which nobody reads who opens the file.
fn root_page(path: &Path, table: &str) -> usize {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_URI;
    let untouched = format!("file:{}?immutable=1", path.display());
    let db = rusqlite::Connection::open_with_flags(untouched, flags).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    db.query_row(sql, [table], |row| row.get::<_, u32>(0)).unwrap() as usize
}

/// Looking through all of it takes time in proportion to its size.
#[tokio::test]
async fn a_file_that_was_closed_in_order_is_not_looked_through_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mark) = (dir.path().join("hart.db"), dir.path().join("hart.db-closed"));
    let store = SqliteStore::open(&path).unwrap();
    store.create_thread(thread("t")).await.unwrap();
    store.thread(&"t".into()).await.unwrap();
    assert!(!mark.exists(), "a crash would leave it unmarked");
    drop(store);
    assert!(mark.exists() && !dir.path().join("hart.db-wal").exists());
    // Damage that keeps the file's time, so that only a look at every page could find it.
    let written = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let page = root_page(&path, "crons") * 4096;
    bytes[page - 4096..page].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
    drop(SqliteStore::open(&path).unwrap());
    // Anybody's writing is seen, however soon it comes.
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(SqliteStore::open(&path).unwrap_err(), OpenError::Damaged { .. }));
}

#[tokio::test]
async fn a_file_in_which_damage_was_met_is_looked_through_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, closed) = (dir.path().join("hart.db"), dir.path().join("hart.db-closed"));
    let store = SqliteStore::open(&path).unwrap();
    store.create_thread(thread("t")).await.unwrap();
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE threads SET head = 'lost'", []).unwrap();
    drop(db);
    drop(SqliteStore::open(&path).unwrap());
    assert!(closed.exists(), "nobody has met it yet");
    let store = SqliteStore::open(&path).unwrap();
    store.steps(&"t".into(), None).await.unwrap_err();
    drop(store);
    assert!(!closed.exists());
}

#[tokio::test]
async fn a_file_that_was_only_read_keeps_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hart.db");
    let store = SqliteStore::open(&path).unwrap();
    store.create_thread(thread("t")).await.unwrap();
    drop(store);
    let time = || std::fs::metadata(&path).unwrap().modified().unwrap();
    let written = time();
    for _ in 0..3 {
        let store = SqliteStore::open(&path).unwrap();
        store.thread(&"t".into()).await.unwrap().unwrap();
        drop(store);
        assert_eq!(time(), written);
        assert!(dir.path().join("hart.db-closed").exists());
    }
}

#[tokio::test]
async fn a_backup_is_a_store_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
    store.create_thread(thread("t")).await.unwrap();
    let copy = dir.path().join("copy.db");
    store.backup(copy.clone()).await.unwrap();
    store.create_thread(thread("later")).await.unwrap();
    let copy = SqliteStore::open(&copy).unwrap();
    let all = ThreadQuery { limit: 10, ..ThreadQuery::default() };
    assert_eq!(copy.search_threads(&all).await.unwrap(), [thread("t")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_at_once_all_get_what_they_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..200 {
        let store = store.clone();
        writers.spawn(async move {
            let id = format!("t{n}");
            store.create_thread(thread(&id)).await.unwrap();
            // What was acknowledged is seen by every reader.
            store.thread(&id.as_str().into()).await.unwrap().unwrap();
        });
    }
    writers.join_all().await;
    assert_eq!(store.count_threads(&ThreadQuery::default()).await.unwrap(), 200);
}
