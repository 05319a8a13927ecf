//! The loop's overhead per turn, early and late in a long run.
//!
//! Invariant: the floor sends the very bodies that hart sent.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hart_agent::{Features, SuperAgent};
use hart_kernel::{
    AgentEvent, EventSink, RunContext, Tool, ToolContext, ToolError, ToolOutput, Typed, TypedTool, Update,
    async_trait,
};
use hart_testkit::{BenchScript, ModelServer, RecordedRequest, Turn};
use hart_types::{Message, ThreadId};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::model::ModelProcess;
use crate::{Row, floor, median};

const TURNS: u32 = 510;
const AT: [usize; 4] = [10, 50, 200, 500];
/// Turns on either side that are averaged with the one asked for.
const WINDOW: usize = 4;
const RUNS: usize = 7;

pub async fn measure() -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let script = BenchScript {
        turns: TURNS,
        tool: "noop".into(),
        args: json!({}),
        tokens: 1,
        ..BenchScript::default()
    };
    let model = ModelProcess::start(&script)?;
    let bodies = record_bodies().await?;

    let (mut ours, mut theirs, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let before = cpu_time();
        ours.push(agent_run(&model, &http).await?);
        cpu.push((cpu_time() - before).as_secs_f64() * 1e3 / f64::from(TURNS));
        theirs.push(floor_run(&model, &http, &bodies).await?);
    }
    let mut rows: Vec<Row> = AT
        .iter()
        .map(|turn| {
            let at = |runs: &[Vec<f64>]| {
                median(runs.iter().map(|run| mean(&run[turn - WINDOW..=turn + WINDOW])).collect())
            };
            let (hart, floor) = (at(&ours), at(&theirs));
            Row {
                measure: format!("turn {turn}: wall time, of that overhead"),
                hart: format!("{hart:.3} ms, {:.3} ms", hart - floor),
                floor: format!("{floor:.3} ms"),
                target: "overhead ≤ 0.3 ms, flat",
            }
        })
        .collect();
    rows.push(Row {
        measure: format!("CPU per turn over {TURNS} turns"),
        hart: format!("{:.3} ms", median(cpu)),
        floor: "–".into(),
        target: "–",
    });
    Ok(rows)
}

struct Noop;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArgs {}

#[async_trait]
impl TypedTool for Noop {
    const NAME: &'static str = "noop";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = NoArgs;
    async fn run(&self, _: &ToolContext<'_>, _: NoArgs) -> Result<ToolOutput, ToolError> {
        Ok("ok".into())
    }
}

/// Notes when each turn's tool starts: from one to the next is a whole turn.
#[derive(Default)]
struct Stopwatch(Mutex<Vec<Instant>>);

#[async_trait]
impl EventSink for Stopwatch {
    async fn emit(&self, event: AgentEvent) {
        if matches!(event, AgentEvent::ToolStarted(_)) {
            self.0.lock().unwrap().push(Instant::now());
        }
    }
}

async fn agent_run(model: &ModelProcess, http: &reqwest::Client) -> anyhow::Result<Vec<f64>> {
    run_with(model.client(http)?).await
}

async fn run_with(model: Arc<dyn hart_kernel::ChatModel>) -> anyhow::Result<Vec<f64>> {
    let noop: Arc<dyn Tool> = Typed::shared(Noop);
    // A model that calls one tool a thousand times is what is measured here, not what is to be stopped.
    let features = Features { loop_detection: false.into(), ..Features::default() };
    let agent = SuperAgent::builder(model).features(features).tool(noop).recursion_limit(10_000).build()?;
    let watch = Arc::new(Stopwatch::default());
    let cx = RunContext::new(ThreadId::generate()).with_events(watch.clone());
    let report = agent.run(Update::none().messages(Message::human("go")), &cx).await;
    report.outcome?;
    let times = watch.0.lock().unwrap();
    Ok(times.windows(2).map(|pair| ms(pair[1] - pair[0])).collect())
}

async fn floor_run(
    model: &ModelProcess,
    http: &reqwest::Client,
    bodies: &[Bytes],
) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(bodies.len());
    for body in bodies {
        let start = Instant::now();
        floor::exchange(http, &model.base_url, body.clone()).await?;
        times.push(ms(start.elapsed()));
    }
    // The stopwatch starts at the first tool call, so turn n of hart is request n + 1 here.
    times.remove(0);
    Ok(times)
}

/// What hart sends, turn by turn.
async fn record_bodies() -> anyhow::Result<Vec<Bytes>> {
    let server = ModelServer::with(|request: &RecordedRequest| match request.tool_results().len() as u32 {
        round if round < TURNS => {
            Turn::new().tool_call(format!("call_{round}_0"), "noop", json!({})).usage(100, 20)
        }
        _ => Turn::new().text("tok0 ").usage(100, 1),
    })
    .await;
    let http = hart_models::http::client()?;
    let entry = hart_models::ModelEntry {
        name: "bench".into(),
        provider: "openai-compatible".into(),
        model: "bench".into(),
        base_url: Some(server.openai_base()),
        api_key: Some("none".into()),
        ..Default::default()
    };
    run_with(hart_models::build(&hart_models::ModelConfig::resolve(entry, &|_| None)?, &http)).await?;
    Ok(server.requests().iter().map(|request| request.raw.clone()).collect())
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
