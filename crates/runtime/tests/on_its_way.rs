//! The model is asked while the run it is asked for, and the step before it, are written; nobody is shown anything of
//! them before they would survive.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, stream};
use hart_kernel::*;
use hart_runtime::port::{Leases, RunQuery, Steps};
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_testkit::{eventually, in_time};
use hart_types::{Ai, Body, Message, RunStatus, StreamMode, ToolCall};
use serde_json::Map;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::support::{World, data};
use crate::surrounded::{Around, Surrounded};

/// More than are needed.
const ALL: usize = 1000;

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
        self.passes.acquire().await.unwrap().forget();
        let done = work.await;
        self.passed.fetch_add(1, Ordering::SeqCst);
        done
    }
}

/// An agent whose model tells when it is asked, and calls a tool first.
struct Announced(Arc<Semaphore>);

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
        Ok(Agent::builder(model)
            .tools([Arc::new(Typed::new(Look)) as Arc<dyn Tool>])
            .checkpointer(checkpointer)
            .build()
            .unwrap())
    }
}

struct Announcing(Arc<Semaphore>, ModelProfile);

#[async_trait]
impl ChatModel for Announcing {
    fn profile(&self) -> &ModelProfile {
        &self.1
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        self.0.add_permits(1);
        let looked = request.messages.iter().any(|message| matches!(message.body, Body::Tool(_)));
        let tool_calls = if looked { Vec::new() } else { vec![ToolCall::new("c1", "look", Map::new())] };
        let said = if looked { "answered" } else { "" };
        let whole = Message::new(Body::Ai(Ai { tool_calls, ..Ai::default() }), said);
        Ok(Box::pin(stream::iter([Ok(ChatChunk::Text(said.into())), Ok(ChatChunk::Done(Box::new(whole)))])))
    }
}

#[derive(Debug)]
struct Look;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait]
impl TypedTool for Look {
    type Args = Nothing;
    const NAME: &'static str = "look";
    const DESCRIPTION: &'static str = "looks";

    async fn run(&self, _: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        Ok("seen".into())
    }
}

struct Held {
    world: World,
    gate: Arc<Gate>,
    run: Run,
    dir: tempfile::TempDir,
}

/// A run whose model was asked so often while the step before that waits at the gate.
async fn held(asks: u32) -> Held {
    let (world, gate, asked, dir) = gated("append_steps").await;
    // Its input, what the model answered, what the tool gave.
    let steps = [0, 2];
    gate.passes.add_permits(steps[asks as usize - 1]);
    let run = world.start("t", "a question").await;
    in_time("the model is asked before its step is written", asked.acquire_many(asks))
        .await
        .unwrap()
        .forget();
    Held { world, gate, run, dir }
}

async fn gated(before: &'static str) -> (World, Arc<Gate>, Arc<Semaphore>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate { before, passes: Semaphore::new(0), passed: AtomicUsize::new(0) });
    let asked = Arc::new(Semaphore::new(0));
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
    let Held { world, gate, run, dir: _dir } = held(2).await;
    let mut reader = world.runtime.frames(run.clone(), vec![StreamMode::Values], false, After::Start);
    assert_eq!(shown(&mut reader), ["metadata", "values", "values"]);

    gate.passes.add_permits(ALL);
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    assert_eq!(world.texts("t").await, ["a question", "", "seen", "answered"]);
    let all = world.frames(&run, &[StreamMode::Values], After::Start).await;
    let all: Vec<_> = all.iter().map(|frame| frame.event.as_ref()).collect();
    assert_eq!(all, ["metadata", "values", "values", "values", "values", "end"]);
}

#[tokio::test]
async fn a_step_of_a_run_that_was_taken_away_is_shown_to_nobody() {
    let Held { world, gate, run, dir } = held(2).await;
    let mut reader = world.runtime.frames(run.clone(), vec![StreamMode::Values], false, After::Start);
    assert_eq!(shown(&mut reader), ["metadata", "values", "values"]);

    let other = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
    let holding = other.holdings(None).await.unwrap().remove(0);
    other.take_over(&holding.lease, &"other".into(), SystemClock.now()).await.unwrap().unwrap();
    let before = gate.passed.load(Ordering::SeqCst);
    gate.passes.add_permits(ALL);
    let passed = async || (gate.passed.load(Ordering::SeqCst) > before).then_some(());
    eventually("the step is refused", passed).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(shown(&mut reader), [""; 0]);
    }
}

/// What was shown of an input that a crash took before it was on the disk is there again, under the same names, and so is
/// the answer that was begun.
#[test]
fn an_input_is_shown_before_it_is_on_the_disk_and_taken_in_again_as_it_was() {
    const MODES: [StreamMode; 2] = [StreamMode::Values, StreamMode::MessagesTuple];
    let named = |frames: &[Frame]| {
        let first = |event: &str| frames.iter().find(|frame| frame.event == event).map(data).unwrap();
        [first("values")["messages"][0].clone(), first("messages")[0]["id"].clone()]
    };
    let process = tokio::runtime::Runtime::new().unwrap();
    let (run, dir, before) = process.block_on(async {
        let Held { world, run, dir, .. } = held(1).await;
        let mut reader = world.runtime.frames(run.clone(), MODES.to_vec(), false, After::Start);
        let mut seen = Vec::new();
        while !seen.iter().any(|frame: &Frame| frame.event == "messages") {
            seen.extend(in_time("a frame", reader.next()).await.unwrap().unwrap());
        }
        let store = SqliteStore::open(&dir.path().join("hart.db")).unwrap();
        assert_eq!(store.steps(&run.thread, None).await.unwrap(), [], "nothing of it is on the disk");
        (run, dir, named(&seen))
    });
    process.shutdown_background();

    let process = tokio::runtime::Runtime::new().unwrap();
    process.block_on(async {
        let parts = Parts {
            store: Arc::new(SqliteStore::open(&dir.path().join("hart.db")).unwrap()),
            agents: Arc::new(Announced(Arc::new(Semaphore::new(0)))),
            workspaces: Arc::new(NoWorkspaces),
            clock: Arc::new(SystemClock),
        };
        let world = World::of(Runtime::open(parts).await.unwrap());
        assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
        assert_eq!(named(&world.frames(&run, &MODES, After::Start).await), before);
    });
}

#[tokio::test]
async fn a_run_begins_before_its_admission_is_on_the_disk_and_nobody_hears_of_it_until_then() {
    let (world, gate, asked, _dir) = gated("admitted").await;
    let mut starting = std::pin::pin!(world.start("t", "a question"));
    let begun = async {
        tokio::select! {
            _ = &mut starting => panic!("it was told before it was written"),
            asked = asked.acquire() => asked.unwrap().forget(),
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

    gate.passes.add_permits(ALL);
    assert_eq!(starting.await.id, run.id);
    assert_eq!(world.ended(&run.id).await.status, RunStatus::Success);
    assert_eq!(world.texts("t").await, ["a question", "", "seen", "answered"]);
}
