//! What hart asks the model in one run: the floor sends the very same bytes.
//!
//! Invariant: the run is the one that is measured, down to the names of its calls.

use std::path::Path;

use bytes::Bytes;
use hart_testkit::{BenchScript, ModelServer, RecordedRequest, Turn};
use serde_json::Value;

use super::process::Served;

/// The bodies of a run of `body`, answered as `script` says.
pub async fn bodies(
    hart: &Path,
    http: &reqwest::Client,
    script: &BenchScript,
    body: &Value,
) -> anyhow::Result<Vec<Bytes>> {
    let BenchScript { turns, tool, args, .. } = script.clone();
    let server = ModelServer::with(move |request: &RecordedRequest| match request.tool_results().len() {
        round if round < turns as usize => {
            Turn::new().tool_call(format!("call_{round}_0"), &tool, args.clone()).usage(100, 20)
        }
        _ => Turn::new().text("tok0 ").usage(100, 1),
    })
    .await;
    let home = tempfile::tempdir()?;
    let served = Served::start(hart, home.path(), &server.openai_base())?;
    served.post(http, "/runs/wait", body).await?;
    let asked: Vec<Bytes> = server.requests().iter().map(|request| request.raw.clone()).collect();
    anyhow::ensure!(asked.len() == turns as usize + 1, "the model was asked {} times", asked.len());
    Ok(asked)
}
