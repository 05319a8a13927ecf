//! Tokens: how many pass through one stream, and how much later each arrives.
//!
//! Invariant: hart's side counts at the event sink, after the whole path through client, loop and hooks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hart_agent::SuperAgent;
use hart_kernel::{AgentEvent, EventSink, RunContext, Update, async_trait};
use hart_testkit::BenchScript;
use hart_testkit::script::unix_nanos;
use hart_types::{Message, ThreadId};

use crate::model::ModelProcess;
use crate::{Row, floor, median, percentile};

const RUNS: usize = 5;

pub async fn throughput() -> anyhow::Result<Vec<Row>> {
    const TOKENS: u32 = 300_000;
    let http = hart_models::http::client()?;
    let model = ModelProcess::start(&BenchScript { tokens: TOKENS, ..BenchScript::default() })?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let ears = Arc::new(Counter::default());
        let start = Instant::now();
        run(&model, &http, ears.clone()).await?;
        anyhow::ensure!(ears.0.load(Ordering::Relaxed) >= u64::from(TOKENS), "tokens were lost");
        ours.push(f64::from(TOKENS) / start.elapsed().as_secs_f64());
        let start = Instant::now();
        floor::exchange(&http, &model.base_url, body()).await?;
        theirs.push(f64::from(TOKENS) / start.elapsed().as_secs_f64());
    }
    Ok(vec![Row {
        measure: "tokens per second through one stream".into(),
        hart: format!("{:.0}", median(ours)),
        floor: format!("{:.0}", median(theirs)),
        target: "≥ 100 000",
    }])
}

pub async fn added_delay() -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let script = BenchScript {
        tokens: 1000,
        timestamps: true,
        flush_each_token: true,
        token_interval: Some(Duration::from_millis(5)),
        ..BenchScript::default()
    };
    let model = ModelProcess::start(&script)?;
    let ears = Arc::new(Delays::default());
    run(&model, &http, ears.clone()).await?;
    let ours = ears.0.lock().unwrap().clone();
    let mut theirs = Vec::new();
    floor::stream(&http, &model.base_url, body(), |piece| theirs.extend(delays_in(piece))).await?;
    let (p50, p99) = (percentile(ours.clone(), 0.5), percentile(ours, 0.99));
    let (floor50, floor99) = (percentile(theirs.clone(), 0.5), percentile(theirs, 0.99));
    Ok(vec![Row {
        measure: "delay per token at 200 tokens/s, p50 / p99, of that added".into(),
        hart: format!("{p50:.0} / {p99:.0} µs, {:.0} / {:.0} µs", p50 - floor50, p99 - floor99),
        floor: format!("{floor50:.0} / {floor99:.0} µs"),
        target: "≤ 50 µs added",
    }])
}

async fn run(model: &ModelProcess, http: &reqwest::Client, ears: Arc<dyn EventSink>) -> anyhow::Result<()> {
    let agent = SuperAgent::builder(model.client(http)?).build()?;
    let cx = RunContext::new(ThreadId::generate()).with_events(ears);
    agent.run(Update::none().messages(Message::human("go")), &cx).await.outcome?;
    Ok(())
}

fn body() -> Bytes {
    Bytes::from_static(br#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}"#)
}

#[derive(Default)]
struct Counter(AtomicU64);

#[async_trait]
impl EventSink for Counter {
    async fn emit(&self, event: AgentEvent) {
        if matches!(event, AgentEvent::MessageChunk(_)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
struct Delays(Mutex<Vec<f64>>);

#[async_trait]
impl EventSink for Delays {
    async fn emit(&self, event: AgentEvent) {
        if let AgentEvent::MessageChunk(chunk) = event
            && let Ok(sent) = chunk.text().trim().parse::<u64>()
        {
            self.0.lock().unwrap().push(micros_since(sent));
        }
    }
}

/// Each token is the time it was sent: 19 digits after `"content":"`.
fn delays_in(piece: &[u8]) -> Vec<f64> {
    let text = String::from_utf8_lossy(piece);
    let stamps = text.split("\"content\":\"").skip(1);
    stamps.filter_map(|rest| rest.get(..19)?.parse::<u64>().ok()).map(micros_since).collect()
}

fn micros_since(sent: u64) -> f64 {
    unix_nanos().saturating_sub(sent) as f64 / 1e3
}
