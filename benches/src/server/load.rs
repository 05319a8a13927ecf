//! Many runs at once, next to what the model alone delivers to as many clients.
//!
//! Invariant: both send the model the same bytes.

use std::path::Path;
use std::time::{Duration, Instant};

use hart_testkit::BenchScript;
use serde_json::json;

use super::process::{Served, run};
use super::{Sizes, asked};
use crate::model::ModelProcess;
use crate::{Row, floor, percentile};

const TURNS: u32 = 5;

pub async fn concurrent_runs(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let script = BenchScript {
        turns: TURNS,
        tool: "ls".into(),
        args: json!({"description": "look", "path": "/mnt/user-data/workspace"}),
        delay: Some(Duration::from_millis(20)),
        ..BenchScript::default()
    };
    let asked = asked::bodies(hart, &http, &script, &run(&["updates"])).await?;
    let model = ModelProcess::start(&script)?;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    let cpu = served.cpu()?;
    let (ours, times) = waited_for(&http, &served, sizes.concurrent).await?;
    let (cpu, resident) = (served.cpu()? - cpu, served.resident()?);
    let (theirs, _) = at_once(sizes.concurrent, || {
        let (http, base_url, asked) = (http.clone(), model.base_url.clone(), asked.clone());
        async move {
            for body in asked {
                floor::exchange(&http, &base_url, body).await?;
            }
            Ok(())
        }
    })
    .await?;
    let count = sizes.concurrent as f64;
    Ok(vec![Row {
        measure: format!("{} concurrent runs × {TURNS} tool turns × 20 ms model", sizes.concurrent),
        hart: format!(
            "{:.0} runs/s, p99 {:.2} s, {:.2} ms CPU a run, {resident:.0} MB",
            count / ours,
            percentile(times, 0.99),
            cpu / count * 1e3
        ),
        floor: format!("{:.0} runs/s (the model alone)", count / theirs),
        target: "half of the floor, no error, p99 ≤ 1 s, ≤ 120 MB",
    }])
}

/// So many runs without a thread at once: seconds for all of them, and for each.
pub async fn waited_for(
    http: &reqwest::Client,
    served: &Served,
    count: usize,
) -> anyhow::Result<(f64, Vec<f64>)> {
    let body = run(&["updates"]).to_string();
    at_once(count, || {
        let request = http.post(format!("{}/runs/wait", served.url)).body(body.clone());
        async move {
            let answer = request.send().await?.error_for_status()?.text().await?;
            anyhow::ensure!(!answer.contains("__error__"), "a run failed: {answer}");
            Ok(())
        }
    })
    .await
}

/// Seconds for all of them, and for each.
async fn at_once<F: Future<Output = anyhow::Result<()>> + Send + 'static>(
    count: usize,
    work: impl Fn() -> F,
) -> anyhow::Result<(f64, Vec<f64>)> {
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let work = work();
        tasks.spawn(async move {
            let begun = Instant::now();
            work.await.map(|()| begun.elapsed().as_secs_f64())
        });
    }
    let mut times = Vec::with_capacity(count);
    while let Some(done) = tasks.join_next().await {
        times.push(done??);
    }
    Ok((begun.elapsed().as_secs_f64(), times))
}
