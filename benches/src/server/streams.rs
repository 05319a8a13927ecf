//! Tokens through a server-sent stream, and connections on which nothing happens.
//!
//! Invariant: the same model is asked by hart and by a raw client, seconds apart.

use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt;
use hart_testkit::BenchScript;
use memchr::memmem;
use serde_json::{Value, json};

use super::process::{Served, run};
use super::{Sizes, asked};
use crate::model::ModelProcess;
use crate::{Row, floor, median};

pub async fn first_token(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let (script, body) = (BenchScript { tokens: 4, ..BenchScript::default() }, run(&["messages-tuple"]));
    let asked = asked::bodies(hart, &http, &script, &body).await?.swap_remove(0);
    let model = ModelProcess::start(&script)?;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    let alternate = async || {
        // Of this thread's own, as connections belong to the threads that made them.
        let http = hart_models::http::client()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..sizes.first_tokens {
            ours.push(until_token(&http, &served, &body).await?);
            let (begun, mut first) = (Instant::now(), None);
            floor::stream(&http, &model.base_url, asked.clone(), |piece| {
                if first.is_none() && memmem::find(piece, b"\"content\"").is_some() {
                    first = Some(begun.elapsed());
                }
            })
            .await?;
            theirs.push(first.ok_or_else(|| anyhow::anyhow!("the model said nothing"))?.as_secs_f64() * 1e3);
        }
        anyhow::Ok((median(ours), median(theirs)))
    };
    // A client of one thread: what several of them have to tell each other at every piece is not the server's.
    let measured = std::thread::scope(|scope| scope.spawn(|| on_this_thread(alternate())).join());
    let (ours, theirs) = measured.map_err(|_| anyhow::anyhow!("the measuring thread panicked"))??;
    Ok(vec![Row {
        measure: "`hart serve`, first token, and over the raw provider".into(),
        hart: format!("{ours:.2} ms, + {:.2} ms", ours - theirs),
        floor: format!("{theirs:.2} ms"),
        target: "+ ≤ 1 ms",
    }])
}

fn on_this_thread<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

async fn until_token(http: &reqwest::Client, served: &Served, body: &Value) -> anyhow::Result<f64> {
    let asked = Instant::now();
    let request = http.post(format!("{}/runs/stream", served.url)).body(body.to_string());
    let mut stream = request.send().await?.error_for_status()?.bytes_stream();
    let mut first = None;
    while let Some(piece) = stream.next().await {
        // The model's own words: what hart itself puts into the thread before them is a message, too.
        if first.is_none() && memmem::find(&piece?, b"AIMessageChunk").is_some() {
            first = Some(asked.elapsed());
        }
    }
    Ok(first.ok_or_else(|| anyhow::anyhow!("no token was streamed"))?.as_secs_f64() * 1e3)
}

fn question() -> Bytes {
    Bytes::from_static(br#"{"model":"bench","stream":true,"messages":[{"role":"user","content":"go"}]}"#)
}

pub async fn throughput(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let model = ModelProcess::start(&BenchScript { tokens: sizes.tokens, ..BenchScript::default() })?;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    let (cpu, asked) = (served.cpu()?, Instant::now());
    let request = http.post(format!("{}/runs/stream", served.url)).body(run(&["messages-tuple"]).to_string());
    let mut stream = request.send().await?.error_for_status()?.bytes_stream();
    let (mut frames, mut tail) = (0_usize, Vec::new());
    while let Some(piece) = stream.next().await {
        tail.extend_from_slice(&piece?);
        frames += memmem::find_iter(&tail, b"event: messages\r\n").count();
        // A name may be cut in two; what is kept cannot hold a whole one.
        tail.drain(..tail.len().saturating_sub(16));
    }
    let (wall, cpu) = (asked.elapsed().as_secs_f64(), served.cpu()? - cpu);
    anyhow::ensure!(frames >= sizes.tokens as usize, "tokens were lost: {frames} frames");
    let asked = Instant::now();
    floor::exchange(&http, &model.base_url, question()).await?;
    let floor = asked.elapsed().as_secs_f64();
    let tokens = f64::from(sizes.tokens);
    Ok(vec![
        Row {
            measure: "`hart serve`, token frames per second through one connection".into(),
            hart: format!("{:.0}", frames as f64 / wall),
            floor: format!("{:.0} (raw provider)", tokens / floor),
            target: "≥ 50 000",
        },
        Row {
            measure: "`hart serve`, CPU per token".into(),
            hart: format!("{:.1} µs", cpu / tokens * 1e6),
            floor: "–".into(),
            target: "≤ 50 µs, better ≤ 20 µs",
        },
    ])
}

pub async fn subscribers(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let model = ModelProcess::start(&BenchScript::default())?;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    let made: Value = serde_json::from_slice(&served.post(&http, "/threads", &json!({})).await?)?;
    let thread = made.get("thread_id").and_then(Value::as_str).unwrap_or_default();
    let before = served.resident()?;
    let mut open = Vec::with_capacity(sizes.subscribers);
    for _ in 0..sizes.subscribers {
        let request = http.get(format!("{}/threads/{thread}/stream", served.url));
        open.push(request.send().await?.error_for_status()?);
    }
    let after = served.resident()?;
    drop(open);
    Ok(vec![Row {
        measure: format!("`hart serve`, {} idle subscribers, more resident", sizes.subscribers),
        hart: format!("{:.1} MB", after - before),
        floor: "–".into(),
        target: "≤ 40 MB for 2 000",
    }])
}
