//! SQLite over the simulated disk: what it says is committed is there after the power was gone, whatever chance does.

use std::path::Path;

use hart_testkit::sim::{Cut, Disk, Fault, Loss, Mount, Random};
use rusqlite::Connection;

fn open(dir: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open(dir.join("some.db"))?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    db.execute_batch("CREATE TABLE IF NOT EXISTS numbers (n INTEGER, pad TEXT)")?;
    Ok(db)
}

fn numbers(db: &Connection) -> Vec<i64> {
    let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
    let mut all = db.prepare("SELECT n FROM numbers ORDER BY n").unwrap();
    all.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

fn put(db: &Connection, n: i64) -> rusqlite::Result<usize> {
    db.execute("INSERT INTO numbers VALUES (?1, ?2)", (n, "x".repeat(6000)))
}

#[test]
fn what_was_committed_survives_the_power_and_what_was_not_is_gone_whole() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (disk, root) = (Disk::default(), tempfile::tempdir().unwrap());
        let mut committed = 0;
        for round in 0..4 {
            let dir = root.path().join(round.to_string());
            let mount = Mount::new(&disk, &dir);
            let db = open(&dir).unwrap();
            let found = numbers(&db);
            // The one whose commit nobody heard of may be there.
            assert!(found.len() as i64 == committed || found.len() as i64 == committed + 1, "seed {seed}");
            assert!(found.iter().copied().eq(0..found.len() as i64), "seed {seed}: {found:?}");
            committed = found.len() as i64;
            for _ in 0..random.within(0..=5) {
                put(&db, committed).unwrap();
                committed += 1;
            }
            if random.chance(30) {
                mount.checkpoint("some.db").unwrap();
            }
            disk.cut(match random.chance(30) {
                true => Cut::AfterSync,
                false => Cut::BeforeWrite(random.within(0..=6)),
            });
            put(&db, committed).unwrap_err();
            mount.kill();
            disk.power_on(random.pick(&[Loss::Nothing, Loss::Everything, Loss::Torn]), &mut random);
        }
    }
}

#[test]
fn a_disk_that_is_full_or_broken_says_so_and_loses_nothing() {
    let (disk, root) = (Disk::default(), tempfile::tempdir().unwrap());
    let _mount = Mount::new(&disk, root.path());
    let db = open(root.path()).unwrap();
    put(&db, 0).unwrap();
    disk.set_full(true);
    assert_eq!(put(&db, 1).unwrap_err().sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
    disk.set_full(false);
    for fault in [Fault::Write, Fault::Sync] {
        disk.break_once(fault);
        let error = put(&db, 1).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::SystemIoFailure), "{fault:?}");
    }
    put(&db, 1).unwrap();
    assert_eq!(numbers(&db), [0, 1]);
}

#[test]
fn a_process_that_was_killed_reaches_nothing_and_holds_nobody_up() {
    let (disk, root) = (Disk::default(), tempfile::tempdir().unwrap());
    let (one, other) = (root.path().join("one"), root.path().join("other"));
    let (mount, _other) = (Mount::new(&disk, &one), Mount::new(&disk, &other));
    let (db, beside) = (open(&one).unwrap(), open(&other).unwrap());
    put(&db, 0).unwrap();
    db.execute_batch("BEGIN IMMEDIATE; INSERT INTO numbers VALUES (1, '')").unwrap();
    assert!(put(&beside, 2).is_err(), "another one writes");
    mount.kill();
    put(&beside, 2).unwrap();
    db.execute_batch("COMMIT").unwrap_err();
    drop(db);
    assert_eq!(numbers(&beside), [0, 2]);
}
