//! One suite for every store: what the ports promise, row by row.

mod assistants;
mod crons;
mod effects;
mod events;
mod feedback;
mod leases;
mod outbox;
mod recordings;
mod resting;
mod runs;
mod steps;
mod threads;

use std::sync::Arc;

use hart_kernel::{LoggedWrite, Step, StepSource, Timestamp};
use hart_runtime::port::{Admission, Claimed, Created, Progress, Store, StoreError};
use hart_runtime::{Run, StartRun, Thread};
use hart_store::SqliteStore;
use hart_types::{CheckpointId, MultitaskStrategy, RunId, RunStatus, ThreadId};
use serde_json::{Map, Value, json};

/// Every engine, each new and empty.
fn stores() -> Vec<(&'static str, Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let dir = tempfile::tempdir().unwrap();
    let file = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
    vec![("memory", Arc::new(SqliteStore::in_memory().unwrap()), None), ("file", Arc::new(file), Some(dir))]
}

/// Seconds since the tests' beginning of time.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn thread(id: &str, seconds: i64, metadata: Value) -> Thread {
    Thread { metadata: map(metadata), ..Thread::new(id.into(), "default".into(), at(seconds)) }
}

pub(crate) async fn make(store: &dyn Store, id: &str) -> ThreadId {
    match store.create_thread(thread(id, 0, json!({}))).await.unwrap() {
        Created::New(thread) | Created::Existing(thread) => thread.id,
    }
}

pub(crate) fn run(id: &str, thread: &ThreadId, multitask: MultitaskStrategy) -> Run {
    Run {
        id: id.into(),
        thread: thread.clone(),
        assistant: "agent".into(),
        user: "default".into(),
        status: RunStatus::Pending,
        metadata: Map::new(),
        kwargs: map(json!({"input": {"messages": []}})),
        multitask,
        created_at: at(1),
        updated_at: at(1),
        start_at: at(1),
        error: None,
        totals: hart_runtime::Totals::default(),
        base: None,
        idempotency_key: None,
        fingerprint: None,
    }
}

/// Takes a run in for the node `n`.
pub(crate) async fn admit(store: &dyn Store, run: Run) -> Result<Admission, StoreError> {
    let request = StartRun { thread: Some(run.thread.clone()), ..StartRun::default() };
    store.admit(run, request, &"n".into()).await
}

/// Starts the next run of a thread on the node `n`.
pub(crate) async fn claim(store: &dyn Store, thread: &ThreadId, seconds: i64) -> Option<Claimed> {
    store.claim(thread, &"n".into(), at(seconds)).await.unwrap()
}

pub(crate) fn step(id: &str, parent: Option<&str>, run: &str, writes: &[(&str, Value)]) -> Step {
    let logged = |(key, value): &(&str, Value)| LoggedWrite {
        key: (*key).to_owned(),
        value: value.clone(),
        private: key.starts_with('_'),
    };
    Step {
        id: CheckpointId::from(id),
        parent: parent.map(CheckpointId::from),
        run_id: RunId::from(run),
        source: StepSource::Model,
        created_at: at(2),
        writes: writes.iter().map(logged).collect(),
        next: Some("tools".to_owned()),
    }
}

pub(crate) fn steps_alone(steps: Vec<Step>) -> Progress {
    Progress { steps: steps.into(), ..Progress::default() }
}

pub(crate) fn steps_inside(call: &str, steps: Vec<Step>) -> Progress {
    Progress { call: Some(call.to_owned()), ..steps_alone(steps) }
}
