use hart_kernel::{Clock, LoggedWrite, StepSource, SystemClock};
use hart_types::{CheckpointId, RunId};
use serde_json::json;

use super::*;

fn step(text: &str) -> Step {
    Step {
        id: CheckpointId::generate(),
        parent: None,
        run_id: RunId::generate(),
        source: StepSource::Input,
        created_at: SystemClock.now(),
        writes: vec![LoggedWrite { key: "messages".into(), value: json!(text), private: false }],
        next: None,
    }
}

fn log() -> (tempfile::TempDir, ThreadLog, ThreadId) {
    let home = tempfile::tempdir().unwrap();
    let log = ThreadLog::new(home.path().to_owned(), "u".into());
    (home, log, ThreadId::from("t1"))
}

#[tokio::test]
async fn steps_come_back_in_order() {
    let (_home, log, thread) = log();
    assert!(log.load(&thread, None).await.unwrap().is_empty());
    let _lock = log.lock(&thread).unwrap();
    let steps = [step("a"), step("b")];
    for step in &steps {
        log.append(&thread, vec![step.clone()]).await.unwrap();
    }
    assert_eq!(log.load(&thread, None).await.unwrap(), steps);
}

#[tokio::test]
async fn a_line_torn_by_a_crash_is_dropped_and_the_thread_goes_on() {
    for torn in [r#"{"id":"x","#.to_owned(), "x".repeat(200_000)] {
        let (_home, log, thread) = log();
        let lock = log.lock(&thread).unwrap();
        let first = step("a");
        log.append(&thread, vec![first.clone()]).await.unwrap();
        drop(lock);
        let mut file = OpenOptions::new().append(true).open(log.path(&thread)).unwrap();
        file.write_all(torn.as_bytes()).unwrap();
        let _lock = log.lock(&thread).unwrap();
        let second = step("b");
        log.append(&thread, vec![second.clone()]).await.unwrap();
        assert_eq!(log.load(&thread, None).await.unwrap(), [first, second]);
    }
}

#[tokio::test]
async fn a_damaged_line_in_the_middle_costs_only_itself() {
    let (_home, log, thread) = log();
    let _lock = log.lock(&thread).unwrap();
    let steps = [step("a"), step("b")];
    log.append(&thread, vec![steps[0].clone()]).await.unwrap();
    let mut file = OpenOptions::new().append(true).open(log.path(&thread)).unwrap();
    file.write_all(b"\x00\xff garbage\n").unwrap();
    log.append(&thread, vec![steps[1].clone()]).await.unwrap();
    assert_eq!(log.load(&thread, None).await.unwrap(), steps);
}

#[tokio::test]
async fn a_thread_belongs_to_one_run_at_a_time() {
    let (_home, log, thread) = log();
    let lock = log.lock(&thread).unwrap();
    assert!(matches!(log.lock(&thread), Err(LockError::Busy(_))));
    drop(lock);
    log.lock(&thread).unwrap();
}
