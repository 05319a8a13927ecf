//! Resident memory of `hart run` after fifty turns.
//!
//! Invariant: it is read while the process waits for the next answer, with the whole conversation in it.

use std::path::Path;
use std::process::Stdio;

use hart_testkit::{ModelServer, RecordedRequest, Turn};
use serde_json::json;

use crate::{Row, start};

const TURNS: usize = 50;

pub async fn measure(hart: &Path) -> anyhow::Result<Vec<Row>> {
    let server = ModelServer::with(|request: &RecordedRequest| match request.tool_results().len() {
        round if round < TURNS => {
            // Another argument each time: it is no loop.
            let args = json!({"description": "look", "path": "/mnt/user-data/workspace", "pattern": format!("{round}*")});
            Turn::new().tool_call(format!("call_{round}"), "glob", args)
        }
        _ => Turn::hang(),
    })
    .await;
    let home = tempfile::tempdir()?;
    let mut child = start::command(hart, home.path(), &server.openai_base())
        .args(["run", "go"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    server.wait_for_requests(TURNS + 1).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    child.kill()?;
    child.wait()?;
    let field = |name: &str| -> anyhow::Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        Ok(kilobytes.parse::<f64>()? / 1024.0)
    };
    Ok(vec![Row {
        measure: format!("resident after {TURNS} turns, now / highest"),
        hart: format!("{:.1} / {:.1} MB", field("VmRSS:")?, field("VmHWM:")?),
        floor: "–".into(),
        target: "≤ 30 MB",
    }])
}
