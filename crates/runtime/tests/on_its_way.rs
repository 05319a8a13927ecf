//! The model is asked while the run it is asked for, and the step before it, are written; nobody is shown anything of
//! them before they would survive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, stream};
use hart_kernel::*;
use hart_runtime::port::{Leases, RunQuery};
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_testkit::{eventually, in_time};
use hart_types::{Ai, Body, Message, RunStatus, StreamMode};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::support::World;
use crate::surrounded::{Around, Surrounded};

/// What is written by these operations is written when it is let through.
#[derive(Debug)]
struct Gate {
    before: &'static str,
    passes: Semaphore,
    passed: AtomicUsize,
}

impl Around for Gate {
    const AHEAD: bool = true;

    async fn around<T: Send>(&self, operation: &'static str, work: impl Future<Output = T> + Send) -> T {
        if operation != self.before {
            return work.await;
        }
        let _pass = self.passes.acquire().await.unwrap();
        let done = work.await;
        self.passed.fetch_add(1, Ordering::SeqCst);
        done
    }
}

/// An agent whose model tells when it is asked.
struct Announced(Arc<Notify>);

#[async_trait]
impl AgentFactory for Announced {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let model = Arc::new(Announcing(Arc::clone(&self.0), ModelProfile::default()));
        Ok(Agent::builder(model).checkpointer(checkpointer).build().unwrap())
    }
}

struct Announcing(Arc<Notify>, ModelProfile);

#[async_trait]
impl ChatModel for Announcing {
    fn profile(&self) -> &ModelProfile {
        &self.1
    }

    async fn stream(&self, _: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        self.0.notify_one();
        let whole = Message::new(Body::Ai(Ai::default()), "answered");
        let chunks = [ChatChunk::Text("answered".into()), ChatChunk::Done(Box::new(whole))];
        Ok(Box::pin(stream::iter(chunks.map(Ok))))
    }
}

struct Held {
    world: World,
    gate: Arc<Gate>,
    run: Run,
    dir: tempfile::TempDir,
}

/// A run whose model was asked while its first step waits at the gate.
async fn held() -> Held {
    let (world, gate, asked, dir) = gated("append_steps").await;
    let run = world.start("t", "a question").await;
    in_time("the model is asked before its step is written", asked.notified()).await;
    Held { world, gate, run, dir }
}

async fn gated(before: &'static str) -> (World, Arc<Gate>, Arc<Notify>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate { before, passes: Semaphore::new(0), passed: AtomicUsize::new(0) });
    let asked = Arc::new(Notify::new());
    let inner = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
    let parts = Parts {
        store: Arc::new(Surrounded { inner, by: Arc::clone(&gate) }),
        agents: Arc::new(Announced(Arc::clone(&asked))),
        workspaces: Arc::new(NoWorkspaces),
        clock: Arc::new(SystemClock),
    };
    (World::of(Runtime::open(parts).await.unwrap()), gate, asked, dir)
}

/// What is there to be read now.
fn shown(reader: &mut RunFrames) -> Vec<String> {
    let mut shown = Vec::new();
    while let Some(Ok(Some(more))) = reader.next().now_or_never() {
        shown.extend(more.into_iter().map(|frame| frame.event.into_owned()));
    }
    shown
}

#[tokio::test]
async fn a_step_is_shown_when_it_is_on_the_disk_and_the_model_does_not_wait_for_that() {
    let Held { world, gate, run, dir: _dir } = held().await;
    let mut reader = world.runtime.frames(run.clone(), vec![StreamMode::Values], false, After::Start);
    assert_eq!(shown(&mut reader), ["metadata"]);

    gate.passes.add_permits(Semaphore::MAX_PERMITS);
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    assert_eq!(world.texts("t").await, ["a question", "answered"]);
    let all = world.frames(&run, &[StreamMode::Values], After::Start).await;
    let all: Vec<_> = all.iter().map(|frame| frame.event.as_ref()).collect();
    assert_eq!(all, ["metadata", "values", "values", "end"]);
}

#[tokio::test]
async fn a_step_of_a_run_that_was_taken_away_is_shown_to_nobody() {
    let Held { world, gate, run, dir } = held().await;
    let mut reader = world.runtime.frames(run.clone(), vec![StreamMode::Values], false, After::Start);
    assert_eq!(shown(&mut reader), ["metadata"]);

    let other = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
    let holding = other.holdings(None).await.unwrap().remove(0);
    other.take_over(&holding.lease, &"other".into(), SystemClock.now()).await.unwrap().unwrap();
    gate.passes.add_permits(Semaphore::MAX_PERMITS);
    let passed = async || (gate.passed.load(Ordering::SeqCst) > 0).then_some(());
    eventually("the step is refused", passed).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(shown(&mut reader), [""; 0]);
    }
}

#[tokio::test]
async fn a_run_begins_before_its_admission_is_on_the_disk_and_nobody_hears_of_it_until_then() {
    let (world, gate, asked, _dir) = gated("admitted").await;
    let mut starting = std::pin::pin!(world.start("t", "a question"));
    let begun = async {
        tokio::select! {
            _ = &mut starting => panic!("it was told before it was written"),
            () = asked.notified() => {}
        }
    };
    in_time("the model is asked", begun).await;
    let query = RunQuery { limit: 1, ..RunQuery::default() };
    let written = async || world.runtime.store().runs(&query).await.unwrap().pop();
    let run = eventually("the run is in the store", written).await;
    let mut reader = world.runtime.frames(run.clone(), vec![StreamMode::Values], false, After::Start);
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(shown(&mut reader), [""; 0], "nothing of it may be shown yet");
    }

    gate.passes.add_permits(Semaphore::MAX_PERMITS);
    assert_eq!(starting.await.id, run.id);
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    assert_eq!(world.texts("t").await, ["a question", "answered"]);
}
