//! Tokens through one stream of a client, without agent or loop around it.
//!
//! Invariant: client and floor read the same bytes from the same server, one after the other.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use hart_kernel::{ChatChunk, ChatModel};
use hart_models::SseDecoder;
use hart_testkit::BenchScript;
use hart_testkit::script::unix_nanos;
use hart_types::Message;
use tokio_util::sync::CancellationToken;

use super::{Spoken, chat, seconds};
use crate::model::ModelProcess;
use crate::{Row, median, percentile};

const RUNS: usize = 5;

pub async fn throughput(spoken: &Spoken) -> anyhow::Result<Vec<Row>> {
    const TOKENS: u32 = 300_000;
    let http = hart_models::http::client()?;
    let server = ModelProcess::start(&BenchScript { tokens: TOKENS, ..BenchScript::default() })?;
    let model = spoken.client(server.root(), &http)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (mut tokens, start) = (0, Instant::now());
        listen(&*model, |_| tokens += 1).await?;
        anyhow::ensure!(tokens == TOKENS, "{tokens} of {TOKENS} tokens came");
        ours.push(f64::from(TOKENS) / start.elapsed().as_secs_f64());
        let start = Instant::now();
        floor(&http, server.root(), spoken, |_| ()).await?;
        theirs.push(f64::from(TOKENS) / start.elapsed().as_secs_f64());
    }
    Ok(vec![Row {
        measure: format!("{}: tokens per second through one stream", spoken.name),
        hart: format!("{:.0}", median(ours)),
        floor: format!("{:.0}", median(theirs)),
        target: "≥ 100 000",
    }])
}

pub async fn first_token(spoken: &Spoken) -> anyhow::Result<Vec<Row>> {
    const REQUESTS: usize = 400;
    let http = hart_models::http::client()?;
    let server = ModelProcess::start(&BenchScript { tokens: 1, ..BenchScript::default() })?;
    let model = spoken.client(server.root(), &http)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..REQUESTS {
        let (mut first, start) = (None, Instant::now());
        listen(&*model, |_| _ = first.get_or_insert_with(|| start.elapsed())).await?;
        ours.extend(first.map(micros));
        let (mut first, start) = (None, Instant::now());
        floor(&http, server.root(), spoken, |_| _ = first.get_or_insert_with(|| start.elapsed())).await?;
        theirs.extend(first.map(micros));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    Ok(vec![Row {
        measure: format!("{}: time to first token, of that added", spoken.name),
        hart: format!("{ours:.0} µs, {:.0} µs", ours - theirs),
        floor: format!("{theirs:.0} µs"),
        target: "≤ 1 ms added",
    }])
}

pub async fn added_delay(spoken: &Spoken) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let script = BenchScript {
        tokens: 1000,
        timestamps: true,
        flush_each_token: true,
        token_interval: Some(Duration::from_millis(5)),
        ..BenchScript::default()
    };
    let server = ModelProcess::start(&script)?;
    let model = spoken.client(server.root(), &http)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    listen(&*model, |token| ours.extend(token.trim().parse().map(since))).await?;
    floor(&http, server.root(), spoken, |piece| {
        let text = String::from_utf8_lossy(piece);
        let stamps = text.split(spoken.before_token).skip(1);
        theirs.extend(stamps.filter_map(|rest| rest.get(..19)?.parse().ok()).map(since));
    })
    .await?;
    let at = |values: &[f64], share| percentile(values.to_vec(), share);
    let (p50, p99) = (at(&ours, 0.5), at(&ours, 0.99));
    let (floor50, floor99) = (at(&theirs, 0.5), at(&theirs, 0.99));
    Ok(vec![Row {
        measure: format!("{}: delay per token at 200 tokens/s, p50 / p99, of that added", spoken.name),
        hart: format!("{p50:.0} / {p99:.0} µs, {:.0} / {:.0} µs", p50 - floor50, p99 - floor99),
        floor: format!("{floor50:.0} / {floor99:.0} µs"),
        target: "≤ 50 µs added",
    }])
}

/// The reader alone: the events of a stream as they come off the wire, cut anywhere.
pub fn sse() -> Row {
    let event = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":"tok1234 "},"finish_reason":null}]}"#;
    let wire = format!("{event}\n\n").repeat(200_000);
    let once = || {
        let mut decoder = SseDecoder::new();
        let mut bytes = 0;
        for piece in wire.as_bytes().chunks(16 * 1024) {
            decoder.push(piece);
            while let Ok(Some(event)) = decoder.next_event() {
                bytes += black_box(event.data).len();
            }
        }
        bytes
    };
    let scan = || memchr::memchr_iter(b'\n', wire.as_bytes()).count();
    let speed = |work: &dyn Fn() -> usize| {
        median((0..RUNS).map(|_| wire.len() as f64 / 1e6 / seconds(work).0).collect())
    };
    Row {
        measure: "event stream parsed".into(),
        hart: format!("{:.0} MB/s", speed(&once)),
        floor: format!("{:.0} MB/s (finding the line ends)", speed(&|| black_box(scan()))),
        target: "≥ 200 MB/s",
    }
}

async fn listen(model: &dyn ChatModel, mut token: impl FnMut(&str)) -> anyhow::Result<()> {
    let mut answer = model.stream(chat([Message::human("go")]), &CancellationToken::new()).await?;
    while let Some(chunk) = answer.next().await {
        if let ChatChunk::Text(text) = chunk? {
            token(&text);
        }
    }
    Ok(())
}

async fn floor(
    http: &reqwest::Client,
    root: &str,
    spoken: &Spoken,
    mut seen: impl FnMut(&[u8]),
) -> anyhow::Result<()> {
    let request = http.post(format!("{root}{}", spoken.path)).header("content-type", "application/json");
    let body = Bytes::from_static(spoken.body.as_bytes());
    let mut answer = request.body(body).send().await?.error_for_status()?.bytes_stream();
    while let Some(piece) = answer.next().await {
        seen(&piece?);
    }
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn since(sent: u64) -> f64 {
    unix_nanos().saturating_sub(sent) as f64 / 1e3
}
