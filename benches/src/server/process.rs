//! The server's process, and what it costs to have one.
//!
//! Invariant: it ends with the benchmark, whatever happens to it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hart_testkit::BenchScript;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Sizes;
use crate::model::ModelProcess;
use crate::{Row, median, start};

pub struct Served {
    child: Child,
    pub url: String,
    /// From the call to the ready line.
    pub ready: Duration,
}

impl Served {
    /// In a data directory below `home`. Titles are off: they would ask the model once more.
    pub fn start(hart: &Path, home: &Path, base_url: &str) -> anyhow::Result<Self> {
        std::fs::write(home.join("config.yaml"), "title: {enabled: false}\n")?;
        let begun = Instant::now();
        let mut child = start::command(hart, home, base_url)
            .args(["serve", "--port", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no pipe"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line.trim().strip_prefix("ready: ").map(str::to_owned);
        let url = url.ok_or_else(|| anyhow::anyhow!("`hart serve` is not ready: {line:?}"))?;
        Ok(Self { child, url, ready: begun.elapsed() })
    }

    pub async fn post(&self, http: &reqwest::Client, path: &str, body: &Value) -> anyhow::Result<Bytes> {
        let request = http.post(format!("{}{path}", self.url)).body(body.to_string());
        Ok(request.send().await?.error_for_status()?.bytes().await?)
    }

    /// Asks it to end, and waits until it has.
    pub fn end(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "`hart serve` ended with {status}");
        Ok(())
    }

    /// In megabytes.
    pub fn resident(&self) -> anyhow::Result<f64> {
        Ok(self.number("status", "VmRSS:")? / 1024.0)
    }

    /// Bytes that went to the disk.
    pub fn written(&self) -> anyhow::Result<f64> {
        self.number("io", "write_bytes:")
    }

    /// Seconds of CPU, in both modes. The kernel counts in hundredths.
    pub fn cpu(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    fn number(&self, file: &str, name: &str) -> anyhow::Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().parse()?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of a run in the mode that thinks least.
pub fn run(modes: &[&str]) -> Value {
    json!({
        "assistant_id": "lead_agent", "context": {"mode": "flash"}, "stream_mode": modes,
        "input": {"messages": [{"role": "user", "content": "go"}]},
    })
}

pub async fn start_and_rest(hart: &Path, sizes: Sizes) -> anyhow::Result<Vec<Row>> {
    let http = hart_models::http::client()?;
    let model = ModelProcess::start(&BenchScript::default())?;
    let (mut starts, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..sizes.starts {
        let home = tempfile::tempdir()?;
        let served = Served::start(hart, home.path(), &model.base_url)?;
        let asked = Instant::now();
        http.get(format!("{}/ok", served.url)).send().await?.error_for_status()?;
        starts.push((served.ready + asked.elapsed()).as_secs_f64() * 1e3);
        idle.push(served.resident()?);
    }
    Ok(vec![
        Row {
            measure: "`hart serve`, cold start to first answered request".into(),
            hart: format!("{:.1} ms", median(starts)),
            floor: "–".into(),
            target: "≤ 60 ms",
        },
        Row {
            measure: "`hart serve`, resident while idle".into(),
            hart: format!("{:.1} MB", median(idle)),
            floor: "–".into(),
            target: "≤ 30 MB",
        },
    ])
}
