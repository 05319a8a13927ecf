//! What a chain costs by itself: middlewares that pass everything on, and the default chain, around a model and a tool
//! that do nothing.
//!
//! Invariant: there is no network, no disk and no other thread; what is measured is this thread's CPU time.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use hart_agent::middleware::{LoopDetection, Sandbox};
use hart_agent::{Features, LoopDetectionConfig, SuperAgent};
use hart_kernel::{
    Agent, AgentEvent, ChatChunk, ChatModel, ChatRequest, ChatStream, Command, EventSink, HookError,
    HookResult, Middleware, ModelError, ModelNext, ModelProfile, ModelRequest, ModelResponse, RunContext,
    State, ToolContext, ToolError, ToolNext, ToolOutcome, ToolOutput, ToolRequest, Typed, TypedTool, Update,
    async_trait,
};
use hart_models::tokens::{Family, TokenCounter};
use hart_sandbox::{LocalSandboxProvider, SandboxConfig};
use hart_types::{Body, Message, ThreadId, ToolCall};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use crate::{Row, median};

const LINKS: usize = 35;
const TURNS: usize = 1020;
const AT: [usize; 3] = [10, 200, 1000];
/// Turns on either side that are looked at together with the one asked for.
const WINDOW: usize = 8;
const RUNS: usize = 15;
const ASSEMBLIES: usize = 200;

/// What a tool turn costs the peers, in CPU time, with their own chains (see `docs/benchmarks.md`).
const PEERS: &str =
    "≤ 60 µs, flat (create_agent 24 ms, deepagents 30 ms, DeerFlow 53 ms at 50 turns; 3 times that at 200)";

const PEERS_WHOLE: &str = "≤ 500 µs, flat (the same turns of the same peers)";

pub fn measure() -> anyhow::Result<Vec<Row>> {
    let (mut chained, mut whole, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    let home = tempfile::tempdir()?;
    for _ in 0..RUNS {
        chained.push(run(&links(LINKS)?)?);
        whole.push(run(&default_chain(home.path())?)?);
        bare.push(run(&links(0)?)?);
    }
    let mean = |turns: &[f64]| turns.iter().sum::<f64>() / turns.len() as f64;
    let over = |runs: &[Vec<f64>], from: usize, to: usize| {
        median(runs.iter().map(|turns| mean(&turns[from..to])).collect())
    };
    // The middle one of the window: on a busy machine some turns pay for what others did to the caches.
    let around = |runs: &[Vec<f64>], turn: usize| {
        median(runs.iter().map(|turns| median(turns[turn - WINDOW..turn + WINDOW].to_vec())).collect())
    };
    let mut rows: Vec<Row> = Vec::new();
    let passing = format!("{LINKS} middlewares");
    for (what, runs, target) in
        [(passing.as_str(), &chained, PEERS), ("the default chain", &whole, PEERS_WHOLE)]
    {
        rows.extend(AT.map(|turn| {
            let (hart, floor) = (around(runs, turn), around(&bare, turn));
            Row {
                measure: format!("turn {turn} through {what}, of that theirs"),
                hart: format!("{hart:.1} µs, {:.1} µs", hart - floor),
                floor: format!("{floor:.1} µs (no middleware)"),
                target,
            }
        }));
        let grown = |runs: &[Vec<f64>]| over(runs, 900, 1000) / over(runs, 0, 100);
        rows.push(Row {
            measure: format!("1 000 turns through {what}: the last hundred against the first"),
            hart: format!("{:.2} ×", grown(runs)),
            floor: format!("{:.2} ×", grown(&bare)),
            target: "flat, ≤ 1.3 × (the peers 4.5 to 9.8 × from turn 10 to turn 200)",
        });
    }
    rows.push(assembly()?);
    Ok(rows)
}

fn links(links: usize) -> anyhow::Result<Agent> {
    let chain = (0..links).map(|_| Arc::new(PassOn) as Arc<dyn Middleware>).collect();
    Ok(Agent::builder(Arc::new(Idle::default()))
        .middleware(chain)
        .tools([Typed::shared(Nothing)])
        .recursion_limit(10 * TURNS as u32)
        .build()?)
}

/// All that is on by default, but that a tool may be called a thousand times.
fn default_chain(home: &Path) -> anyhow::Result<Agent> {
    let provider = LocalSandboxProvider::new(SandboxConfig::default(), home.into(), None)?;
    let calm = LoopDetectionConfig { tool_freq_warn: 0, tool_freq_hard_limit: 0, ..Default::default() };
    let features = Features { loop_detection: LoopDetection::new(calm).into(), ..Features::default() };
    Ok(SuperAgent::builder(Arc::new(Idle::default()))
        .features(features)
        .sandbox(Sandbox::new(Arc::new(provider), SandboxConfig::default()))
        .tool(Typed::shared(Nothing))
        .recursion_limit(10 * TURNS as u32)
        .build()?)
}

/// Microseconds of CPU time of each turn.
fn run(agent: &Agent) -> anyhow::Result<Vec<f64>> {
    let watch = Arc::new(Stopwatch::default());
    let cx = RunContext::new(ThreadId::from("bench")).with_events(watch.clone());
    // A thread of its own: the runtime around us has others.
    let ran = std::thread::scope(|scope| {
        let work = scope.spawn(|| -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let report = runtime.block_on(agent.run(Update::none().messages(Message::human("go")), &cx));
            report.outcome?;
            Ok(())
        });
        work.join().unwrap_or_else(|_| anyhow::bail!("the run panicked"))
    });
    ran?;
    let times = watch.0.lock().unwrap();
    Ok(times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e6).collect())
}

fn assembly() -> anyhow::Result<Row> {
    let home = tempfile::tempdir()?;
    let provider = Arc::new(LocalSandboxProvider::new(SandboxConfig::default(), home.path().into(), None)?);
    let model: Arc<dyn ChatModel> = Arc::new(Idle::default());
    let mut times = Vec::with_capacity(ASSEMBLIES);
    for _ in 0..ASSEMBLIES {
        let start = cpu_time();
        let sandbox = Sandbox::new(provider.clone(), SandboxConfig::default());
        let agent =
            SuperAgent::builder(model.clone()).features(Features::default()).sandbox(sandbox).build()?;
        std::hint::black_box(&agent);
        times.push((cpu_time() - start).as_secs_f64() * 1e3);
    }
    Ok(Row {
        measure: "assembling the super agent".into(),
        hart: format!("{:.3} ms", median(times)),
        floor: "–".into(),
        target: "≤ 1 ms",
    })
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Notes the time of each turn's tool call.
#[derive(Default)]
struct Stopwatch(Mutex<Vec<Duration>>);

#[async_trait]
impl EventSink for Stopwatch {
    async fn emit(&self, event: AgentEvent) {
        if matches!(event, AgentEvent::ToolStarted(_)) {
            self.0.lock().unwrap().push(cpu_time());
        }
    }
}

/// Calls the tool until it has been asked often enough.
struct Idle {
    profile: ModelProfile,
    asked: Mutex<usize>,
    /// As real models count.
    counter: TokenCounter,
}

impl Default for Idle {
    fn default() -> Self {
        let counter = TokenCounter::new(Family::Other).estimating();
        Self { profile: ModelProfile::default(), asked: Mutex::default(), counter }
    }
}

#[async_trait]
impl ChatModel for Idle {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn count_text(&self, text: &str) -> u64 {
        self.counter.count_text(text)
    }

    fn count_request(&self, request: &ChatRequest) -> u64 {
        self.counter.count_request(request)
    }

    async fn stream(&self, _: ChatRequest, _: &CancellationToken) -> Result<ChatStream, ModelError> {
        let turn = {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        let mut message = Message::ai("");
        if let (Body::Ai(ai), true) = (&mut message.body, turn <= TURNS) {
            // Another argument each time: it is no loop.
            let args = Map::from_iter([("turn".to_owned(), turn.into())]);
            ai.tool_calls.push(ToolCall::new(format!("call_{turn}"), "nothing", args));
        }
        Ok(Box::pin(stream::iter([Ok(ChatChunk::Done(Box::new(message)))])))
    }
}

struct Nothing;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {
    #[serde(default, rename = "turn")]
    _turn: usize,
}

#[async_trait]
impl TypedTool for Nothing {
    const NAME: &'static str = "nothing";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = NoArgs;
    async fn run(&self, _: &ToolContext<'_>, _: NoArgs) -> Result<ToolOutput, ToolError> {
        Ok("ok".into())
    }
}

/// Has every hook, and does nothing in any.
struct PassOn;

#[async_trait]
impl Middleware for PassOn {
    async fn before_agent(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(Command::none())
    }
    async fn before_model(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(Command::none())
    }
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        next.run(request).await
    }
    async fn after_model(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(Command::none())
    }
    async fn wrap_tool_call(
        &self,
        _: &RunContext,
        request: ToolRequest,
        next: ToolNext<'_>,
    ) -> Result<ToolOutcome, HookError> {
        next.run(request).await
    }
    async fn after_agent(&self, _: &RunContext, _: &State) -> HookResult {
        Ok(Command::none())
    }
}
