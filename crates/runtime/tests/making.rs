//! Agents are made beside the admission of their runs, as things are when the run begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;
use hart_kernel::*;
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_testkit::in_time;
use hart_types::{Ai, Body, Message, MultitaskStrategy, RunStatus};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::support::{World, says};

/// Makes agents that say what the hand stood at when they were made, each when it is let to.
struct Clockmaker {
    hand: AtomicUsize,
    made: AtomicUsize,
    asked: Semaphore,
    answers: Semaphore,
}

struct Makers(Arc<Clockmaker>);

/// Where the hand must not stand.
const BROKEN: usize = 13;

#[async_trait]
impl AgentFactory for Makers {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        assert_ne!(self.0.hand.load(Ordering::SeqCst), BROKEN, "the spring is broken");
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let stood_at = self.0.hand.load(Ordering::SeqCst);
        let model = Stopped { stood_at, maker: Arc::clone(&self.0), profile: ModelProfile::default() };
        Ok(Agent::builder(Arc::new(model)).checkpointer(checkpointer).build().unwrap())
    }
}

struct Stopped {
    stood_at: usize,
    maker: Arc<Clockmaker>,
    profile: ModelProfile,
}

#[async_trait]
impl ChatModel for Stopped {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn stream(&self, _: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        self.maker.asked.add_permits(1);
        self.maker.answers.acquire().await.unwrap().forget();
        let whole = Message::new(Body::Ai(Ai::default()), self.stood_at.to_string());
        Ok(Box::pin(stream::iter([Ok(ChatChunk::Done(Box::new(whole)))])))
    }
}

async fn world(dir: &tempfile::TempDir, hand: usize) -> (World, Arc<Clockmaker>) {
    let maker = Arc::new(Clockmaker {
        hand: AtomicUsize::new(hand),
        made: AtomicUsize::new(0),
        asked: Semaphore::new(0),
        answers: Semaphore::new(0),
    });
    let parts = Parts {
        store: Arc::new(SqliteStore::open(&dir.path().join("hart.db")).unwrap()),
        agents: Arc::new(Makers(Arc::clone(&maker))),
        workspaces: Arc::new(NoWorkspaces),
        clock: Arc::new(SystemClock),
    };
    (World::of(Runtime::open(parts).await.unwrap()), maker)
}

#[tokio::test]
async fn a_run_whose_agent_panics_while_it_is_made_fails_and_the_thread_is_usable() {
    let dir = tempfile::tempdir().unwrap();
    let (world, maker) = world(&dir, BROKEN).await;
    let failed = world.start("t", "a").await;
    let failed = world.ended(&failed.id).await;
    assert_eq!(failed.status, RunStatus::Error);
    let why = failed.error.unwrap().message;
    assert!(why.contains("the spring is broken"), "{why}");

    maker.hand.store(1, Ordering::SeqCst);
    let run = world.start("t", "b").await;
    in_time("the model is asked", maker.asked.acquire()).await.unwrap().forget();
    // One that has to wait is made later, by somebody else.
    let request = StartRun { multitask: MultitaskStrategy::Enqueue, ..says("t", "c") };
    let waits = world.runtime.start(request).await.unwrap();
    maker.hand.store(BROKEN, Ordering::SeqCst);
    maker.answers.add_permits(1);
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    assert_eq!(world.ended(&waits.id).await.status, RunStatus::Error);
}

#[tokio::test]
async fn a_run_that_waits_has_an_agent_of_the_time_when_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let (world, maker) = world(&dir, 1).await;
    let first = world.start("t", "a").await;
    in_time("the model is asked", maker.asked.acquire()).await.unwrap().forget();
    assert_eq!(maker.made.load(Ordering::SeqCst), 1, "one agent for a run that begins at once");

    let mut request = says("t", "b");
    request.multitask = MultitaskStrategy::Enqueue;
    let second = world.runtime.start(request).await.unwrap();
    maker.hand.store(2, Ordering::SeqCst);
    maker.answers.add_permits(2);
    for run in [first, second] {
        assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    }
    assert_eq!(world.texts("t").await, ["a", "1", "b", "2"]);
}
