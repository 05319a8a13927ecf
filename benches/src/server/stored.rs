//! What is written and found again: bytes per turn of a long thread, threads among many.
//!
//! Invariant: the store is the one `hart serve` uses, on the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hart_kernel::{Clock, SystemClock};
use hart_runtime::Thread;
use hart_runtime::port::Threads;
use hart_store::SqliteStore;
use hart_testkit::BenchScript;
use hart_types::ThreadId;
use serde_json::{Value, json};

use super::Sizes;
use super::process::{Served, run};
use crate::model::ModelProcess;
use crate::{Row, median};

/// How many turns are looked at together.
const WINDOW: usize = 10;
/// How many such windows are taken together: every twenty turns or so SQLite writes its log back, all at once.
const WINDOWS: usize = 10;

pub async fn bytes_per_turn(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    // With a model that takes no time the parts of a short turn share their commits, and a longer thread's turns less so.
    let script = BenchScript { delay: Some(Duration::from_millis(20)), ..BenchScript::default() };
    let model = ModelProcess::start(&script)?;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    let made: Value = serde_json::from_slice(&served.post(&http, "/threads", &json!({})).await?)?;
    let path = format!("/threads/{}/runs", made.get("thread_id").and_then(Value::as_str).unwrap_or_default());
    let mut windows = Vec::new();
    let mut before = served.written()?;
    for turn in 1..=sizes.turns {
        let begun: Value = serde_json::from_slice(&served.post(&http, &path, &run(&["updates"])).await?)?;
        let id = begun.get("run_id").and_then(Value::as_str).unwrap_or_default();
        // Its end alone: a reader of the states would read, not write, and take its time.
        let end = http.get(format!("{}{path}/{id}/stream?stream_mode=updates", served.url)).send().await?;
        end.error_for_status()?.bytes().await?;
        if turn % WINDOW == 0 {
            let now = served.written()?;
            windows.push((now - before) / WINDOW as f64 / 1024.0);
            before = now;
        }
    }
    let last = windows.len().saturating_sub(WINDOWS);
    let (early, late) = (mean(windows.iter().skip(1).take(WINDOWS)), mean(windows.iter().skip(last)));
    let (first, all) = ((1 + WINDOWS) * WINDOW, windows.len() * WINDOW);
    Ok(vec![Row {
        measure: format!(
            "`hart serve`, written per turn, {} to {first} / {} to {all}, 20 ms model",
            WINDOW + 1,
            last * WINDOW + 1
        ),
        hart: format!("{early:.1} / {late:.1} KB"),
        floor: "–".into(),
        target: "constant",
    }])
}

fn mean<'a>(figures: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let count = figures.len().max(1) as f64;
    figures.sum::<f64>() / count
}

pub async fn search(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let model = ModelProcess::start(&BenchScript::default())?;
    let home = tempfile::tempdir()?;
    let data = home.path().join(".hart");
    std::fs::create_dir_all(&data)?;
    fill(&data, sizes.threads).await?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    let ask = async |body: &Value| -> anyhow::Result<f64> {
        let mut times = Vec::with_capacity(sizes.searches);
        for _ in 0..sizes.searches {
            let asked = Instant::now();
            let found: Value = serde_json::from_slice(&served.post(&http, "/threads/search", body).await?)?;
            times.push(asked.elapsed().as_secs_f64() * 1e3);
            anyhow::ensure!(found.as_array().is_some_and(|rows| rows.len() == 10), "ten were not found");
        }
        Ok(median(times))
    };
    let newest = ask(&json!({"limit": 10})).await?;
    let of_user = ask(&json!({"limit": 10, "metadata": {"user": "u7"}})).await?;
    Ok(vec![Row {
        measure: format!("`threads/search` over {} threads, the newest / by metadata", sizes.threads),
        hart: format!("{newest:.1} / {of_user:.1} ms"),
        floor: "–".into(),
        target: "≤ 20 ms over 100 000",
    }])
}

async fn fill(data: &Path, threads: usize) -> anyhow::Result<()> {
    let store = Arc::new(SqliteStore::open(&data.join("hart.db"))?);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..threads {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut thread = Thread::new(ThreadId::generate(), "default".into(), SystemClock.now());
            thread.metadata.insert("user".to_owned(), format!("u{}", number % 50).into());
            store.create_thread(thread).await.map(drop)
        });
        // Enough at once for the writer to take them in groups.
        while tasks.len() >= 512 {
            if let Some(made) = tasks.join_next().await {
                made??;
            }
        }
    }
    while let Some(made) = tasks.join_next().await {
        made??;
    }
    Ok(())
}
