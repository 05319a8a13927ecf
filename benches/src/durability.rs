//! What it costs that a crash is a pause: a step that is on the disk before the next one, and runs that go on.
//!
//! Invariant: the store is the one `hart serve` uses, on the disk; the model and the tool do nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use hart_kernel::*;
use hart_runtime::{
    AgentFactory, AgentInfo, AgentRequest, FactoryError, Input, NoWorkspaces, Parts, Runtime, StartRun,
};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig, SandboxProvider, VPath, WriteMode};
use hart_store::SqliteStore;
use hart_types::{Ai, Body, Durability, Message, RunStatus, ThreadId, ToolCall, UserId};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{Row, median};

pub async fn measure(quick: bool) -> anyhow::Result<Vec<Row>> {
    let (steps, repeats, interrupted) = if quick { (10, 3, 10) } else { (200, 15, 200) };
    let mut rows = vec![per_step(steps, repeats).await?, per_file(steps).await?];
    rows.push(tokio::task::spawn_blocking(move || resumed(interrupted)).await??);
    Ok(rows)
}

/// The same run with each step on the disk before the next one, and with all of them at the end.
async fn per_step(steps: usize, repeats: usize) -> anyhow::Result<Row> {
    let home = tempfile::tempdir()?;
    let asked = Arc::default();
    let runtime = open(home.path(), Agents { steps, hangs: false, asked }).await?;
    let mut added = Vec::new();
    let (mut synced, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        // In turns, so that a busy moment meets both.
        let sync = run(&runtime, Durability::Sync).await?.as_secs_f64() * 1e3 / steps as f64;
        let exit = run(&runtime, Durability::Exit).await?.as_secs_f64() * 1e3 / steps as f64;
        added.push(sync - exit);
        synced.push(sync);
        kept.push(exit);
    }
    runtime.close(Duration::ZERO).await;
    Ok(Row {
        measure: format!("a step with `durability: sync`, of that added over `exit` ({steps} steps, median)"),
        hart: format!("{:.3} ms, {:.3} ms", median(synced), median(added)),
        floor: format!("{:.3} ms (`exit`)", median(kept)),
        target: "≤ 1 ms added",
    })
}

/// A file as tools write it, which is on the disk before they say so, and beside it one that is only put in its place.
async fn per_file(files: usize) -> anyhow::Result<Row> {
    let home = tempfile::tempdir()?;
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None)?;
    let sandbox = provider.acquire(&ThreadId::from("bench"), &UserId::from("u")).await?;
    let (path, content) = (VPath::parse("/mnt/user-data/workspace/file")?, [b'x'; 4096]);
    let (beside, new) = (home.path().join("file"), home.path().join("new"));
    let (mut kept, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..files {
        let begun = Instant::now();
        sandbox.write(&path, &content, WriteMode::Overwrite).await?;
        kept.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        std::fs::write(&new, content)?;
        std::fs::rename(&new, &beside)?;
        bare.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Row {
        measure: format!("a file of 4 KiB written by a tool, and on the disk ({files} files, median)"),
        hart: format!("{:.3} ms", median(kept)),
        floor: format!("{:.3} ms (written and renamed, not synced)", median(bare)),
        target: "≤ 1 ms added",
    })
}

async fn run(runtime: &Runtime, durability: Durability) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let run = runtime.start(StartRun { durability, ..asks() }).await?;
    runtime.wait(&run.id).await;
    let took = begun.elapsed();
    let ended = runtime.store().run(&run.id).await?;
    anyhow::ensure!(ended.is_some_and(|run| run.status == RunStatus::Success), "the run did not succeed");
    Ok(took)
}

/// From opening what a process left behind to the moment when all its runs ask their model again.
fn resumed(runs: usize) -> anyhow::Result<Row> {
    let home = tempfile::tempdir()?;
    let asked: Arc<AtomicUsize> = Arc::default();
    let before = tokio::runtime::Runtime::new()?;
    before.block_on(async {
        let runtime = open(home.path(), Agents { steps: 0, hangs: true, asked: Arc::clone(&asked) }).await?;
        for _ in 0..runs {
            runtime.start(asks()).await?;
        }
        until(&asked, runs).await;
        anyhow::Ok(())
    })?;
    // Its tasks are dropped where they are, and its locks with them.
    before.shutdown_timeout(Duration::from_secs(10));

    let asked: Arc<AtomicUsize> = Arc::default();
    let after = tokio::runtime::Runtime::new()?;
    let took = after.block_on(async {
        let begun = Instant::now();
        let agents = Agents { steps: 0, hangs: false, asked: Arc::clone(&asked) };
        let runtime = open(home.path(), agents).await?;
        until(&asked, runs).await;
        let took = begun.elapsed();
        runtime.close(Duration::from_secs(60)).await;
        anyhow::Ok(took)
    })?;
    Ok(Row {
        measure: format!("{runs} interrupted runs, from the restart until all of them go on"),
        hart: format!("{:.2} s", took.as_secs_f64()),
        floor: "–".into(),
        target: "≤ 2 s for 200",
    })
}

async fn until(asked: &AtomicUsize, runs: usize) {
    while asked.load(Ordering::Relaxed) < runs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn open(home: &Path, agents: Agents) -> anyhow::Result<Runtime> {
    let parts = Parts {
        store: Arc::new(SqliteStore::open(&home.join("hart.db"))?),
        agents: Arc::new(agents),
        workspaces: Arc::new(NoWorkspaces),
        clock: Arc::new(SystemClock),
    };
    Ok(Runtime::open(parts).await?)
}

fn asks() -> StartRun {
    let words = Map::from_iter([("messages".to_owned(), json!([{"role": "user", "content": "go on"}]))]);
    let request = StartRun::new("agent", "agent".into(), Input::Values(words));
    StartRun { keep_thread: true, ..request }
}

/// A model that asks for a tool so many times, and a tool that does nothing.
#[derive(Clone)]
struct Agents {
    steps: usize,
    /// Never answers.
    hangs: bool,
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl AgentFactory for Agents {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.reader(&request.agent, request.checkpointer.clone())
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let spec = ToolSpec {
            name: "nothing".into(),
            description: "Does nothing.".into(),
            input_schema: json!({"type": "object", "properties": {}}),
            effect: Effect::Pure,
        };
        let tools: [Arc<dyn Tool>; 1] = [Arc::new(Nothing(Arc::new(spec)))];
        let builder = Agent::builder(Arc::new(self.clone())).tools(tools).checkpointer(checkpointer);
        builder
            .recursion_limit(u32::MAX)
            .build()
            .map_err(|error| FactoryError { error: "BuildError".into(), message: error.to_string() })
    }
}

struct Nothing(Arc<ToolSpec>);

#[async_trait]
impl Tool for Nothing {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    async fn call(&self, _: &ToolContext<'_>, _: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        Ok("done".to_owned().into())
    }
}

#[async_trait]
impl ChatModel for Agents {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile { name: "bench".into(), ..ModelProfile::default() });
        &PROFILE
    }

    async fn stream(&self, request: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        // A step is an answer or its result: two of them per call.
        let done = request.messages.len() >= self.steps;
        let calls = if done {
            Vec::new()
        } else {
            vec![ToolCall::new(format!("call-{}", request.messages.len()), "nothing", Map::new())]
        };
        let message = Message::new(Body::Ai(Ai { tool_calls: calls, ..Ai::default() }), "said");
        Ok(Box::pin(stream::iter([Ok(ChatChunk::Done(Box::new(message)))])))
    }
}
