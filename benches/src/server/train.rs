//! What hart does most, done for a build that watches itself: see `scripts/dist.sh`.
//!
//! Invariant: every server is asked to end and ends by itself, as only then it writes down what it saw.

use std::path::Path;
use std::time::Duration;

use hart_testkit::BenchScript;
use serde_json::{Value, json};

use super::load;
use super::process::{Served, run};
use crate::model::ModelProcess;

/// How often the short things are done.
const OFTEN: usize = 200;

/// Answers to clients of every kind, tools that look and write, and one long answer.
pub async fn train(hart: &Path) -> anyhow::Result<()> {
    let http = hart_models::http::client()?;
    let asked = BenchScript { tokens: 40, ..BenchScript::default() };
    serve(hart, &asked, async |served| {
        for modes in [&["messages-tuple"][..], &["values"], &["updates", "custom"], &["events"]] {
            for _ in 0..OFTEN {
                served.post(&http, "/runs/stream", &run(modes)).await?;
            }
        }
        on_threads(&http, served).await
    })
    .await?;
    let looked = json!({"description": "look", "path": "/mnt/user-data/workspace"});
    let written =
        json!({"description": "write", "path": "/mnt/user-data/workspace/a.txt", "content": "words\n"});
    for (tool, args) in [("ls", looked), ("write_file", written)] {
        let delay = Some(Duration::from_millis(5));
        let script = BenchScript { turns: 5, tool: tool.into(), args, delay, ..BenchScript::default() };
        serve(hart, &script, async |served| load::waited_for(&http, served, OFTEN).await.map(|_| ())).await?;
    }
    let long = BenchScript { tokens: 20_000, ..BenchScript::default() };
    serve(hart, &long, async |served| {
        served.post(&http, "/runs/stream", &run(&["messages-tuple"])).await.map(|_| ())
    })
    .await
}

/// A few conversations, and what is asked about them.
async fn on_threads(http: &reqwest::Client, served: &Served) -> anyhow::Result<()> {
    for _ in 0..OFTEN / 20 {
        let made: Value = serde_json::from_slice(&served.post(http, "/threads", &json!({})).await?)?;
        let thread =
            format!("/threads/{}", made.get("thread_id").and_then(Value::as_str).unwrap_or_default());
        for _ in 0..20 {
            let body = run(&["values", "messages-tuple"]);
            served.post(http, &format!("{thread}/runs/stream"), &body).await?;
        }
        served.post(http, &format!("{thread}/history"), &json!({"limit": 10})).await?;
        served.post(http, "/threads/search", &json!({"limit": 10})).await?;
    }
    Ok(())
}

async fn serve(
    hart: &Path,
    script: &BenchScript,
    work: impl AsyncFnOnce(&Served) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let model = ModelProcess::start(script)?;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &model.base_url)?;
    work(&served).await?;
    served.end()
}
