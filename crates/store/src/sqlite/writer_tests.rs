use std::sync::mpsc::channel;

use hart_runtime::port::{Lease, StoreError, StoredRecord};
use rusqlite::Connection;

use super::Writer;
use crate::sqlite::connection;

/// A writer to a file that has room for a few pages, and the number of its rows as another connection sees them.
fn small(dir: &std::path::Path) -> (Writer, impl Fn() -> Vec<i64>) {
    let path = dir.join("small.db");
    let writer = connection::writer(&path, false).unwrap();
    writer.execute_batch("CREATE TABLE t (size INTEGER NOT NULL, data BLOB) STRICT").unwrap();
    let pages: i64 = writer.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    writer.pragma_update(None, "max_page_count", pages + 10).unwrap();
    let other = Connection::open(&path).unwrap();
    let rows = move || {
        let mut all = other.prepare("SELECT size FROM t ORDER BY rowid").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    (Writer::start(writer, None), rows)
}

fn insert(db: &Connection, size: i64) -> Result<(), StoreError> {
    let inserted = db.execute("INSERT INTO t (size, data) VALUES (?1, zeroblob(?1))", [size]);
    inserted.map(|_| ()).map_err(crate::sqlite::failure)
}

/// What each is told when three jobs are in one group behind one that waits for them.
async fn in_one_group(writer: &Writer, [a, b, c]: [i64; 3]) -> [Result<(), StoreError>; 4] {
    let (go, wait) = channel::<()>();
    let first = writer.submit(move |_| {
        wait.recv().unwrap();
        Ok(())
    });
    let job = |size| writer.submit(move |db| insert(db, size));
    let release = async {
        while writer.waiting() < 4 {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
    };
    // In this order they are handed in.
    let (first, a, b, c, ()) = tokio::join!(biased; first, job(a), job(b), job(c), release);
    [first, a, b, c]
}

#[tokio::test]
async fn a_disk_that_is_full_in_mid_statement_undoes_all_that_is_told_to_be_undone() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, rows) = small(dir.path());
    let [held_up, before, too_large, behind] = in_one_group(&writer, [1000, 1_000_000, 2000]).await;
    for lost in [held_up, before, too_large] {
        assert!(matches!(lost, Err(StoreError::Full)), "{lost:?}");
    }
    assert!(behind.is_ok(), "another transaction: {behind:?}");
    assert_eq!(rows(), [2000], "what was refused is not there, what was accepted is");
    writer.submit(|db| insert(db, 1000)).await.unwrap();
    assert_eq!(rows(), [2000, 1000], "it can be asked again");
}

/// A run that records.
async fn running(writer: &Writer) -> Lease {
    let setting = "INSERT INTO threads (id, user, created_at, updated_at, state_updated_at, metadata, config, status, \
                   temporary) VALUES ('t', 'u', 0, 0, 0, '{}', '{}', 'busy', 0);
                   INSERT INTO runs (id, thread, assistant, user, status, metadata, kwargs, multitask, created_at, \
                   updated_at, start_at, totals, owner, token) VALUES ('r', 1, 'a', 'u', 'running', '{}', '{}', \
                   'enqueue', 0, 0, 0, '{}', 'n', 7)";
    writer.submit(move |db| db.execute_batch(setting).map_err(crate::sqlite::failure)).await.unwrap();
    Lease { run: "r".into(), node: "n".into(), token: 7 }
}

/// Also where the job that was handed in behind them finds a transaction open.
#[tokio::test]
async fn records_are_committed_with_the_next_job_that_is_handed_in() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, rows) = small(dir.path());
    let lease = running(&writer).await;
    let ((begun, has_begun), (go, wait)) = (channel::<()>(), channel::<()>());
    let first = writer.submit(move |db| {
        begun.send(()).unwrap();
        wait.recv().unwrap();
        insert(db, 1)
    });
    let second = async {
        has_begun.recv().unwrap();
        writer.carry(vec![StoredRecord { step: None, payload: vec![0; 10].into() }], lease);
        let job = writer.submit(|db| insert(db, 2));
        let release = async { go.send(()).unwrap() };
        tokio::join!(biased; job, release).0
    };
    let (first, second) = tokio::join!(biased; first, second);
    first.and(second).unwrap();
    assert_eq!(rows(), [1, 2]);
    let other = Connection::open(dir.path().join("small.db")).unwrap();
    let count: i64 = other.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

#[tokio::test]
async fn records_that_find_no_room_go_with_a_later_commit_and_fail_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, rows) = small(dir.path());
    let lease = running(&writer).await;
    writer.carry(vec![StoredRecord { step: None, payload: vec![0; 1_000_000].into() }], lease);
    writer.submit(|db| insert(db, 1000)).await.unwrap();
    assert_eq!(rows(), [1000]);
    let room =
        |db: &Connection| db.pragma_update(None, "max_page_count", 10_000).map_err(crate::sqlite::failure);
    writer.submit(room).await.unwrap();
    let count = |db: &Connection| {
        let counted = db.query_row("SELECT count(*) FROM records", [], |row| row.get::<_, i64>(0));
        counted.map_err(crate::sqlite::failure)
    };
    assert_eq!(writer.submit(count).await.unwrap(), 1);
}
