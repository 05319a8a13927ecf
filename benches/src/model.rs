//! The scripted model, in a process of its own so that its CPU time is not hart's.
//!
//! Invariant: it ends with the benchmark, whatever happens to it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hart_kernel::ChatModel;
use hart_models::{ModelConfig, ModelEntry};
use hart_testkit::{BenchModel, BenchScript};

pub const SERVE: &str = "--serve";

pub struct ModelProcess {
    child: Child,
    pub base_url: String,
}

impl ModelProcess {
    pub fn start(script: &BenchScript) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([SERVE, &serde_json::to_string(script)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut base_url = String::new();
        let stdout = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no pipe"))?;
        BufReader::new(stdout).read_line(&mut base_url)?;
        Ok(Self { child, base_url: base_url.trim().to_owned() })
    }

    /// The address without a path.
    pub fn root(&self) -> &str {
        self.base_url.trim_end_matches("/v1")
    }

    /// hart's own client for it.
    pub fn client(&self, http: &reqwest::Client) -> anyhow::Result<Arc<dyn ChatModel>> {
        let entry = ModelEntry {
            name: "bench".into(),
            provider: "openai-compatible".into(),
            model: "bench".into(),
            base_url: Some(self.base_url.clone()),
            api_key: Some("none".into()),
            ..ModelEntry::default()
        };
        Ok(hart_models::build(&ModelConfig::resolve(entry, &|_| None)?, http))
    }
}

impl Drop for ModelProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The other side of [`ModelProcess::start`]: serves until its standard input closes.
pub fn serve(script: &str) -> anyhow::Result<()> {
    let model = BenchModel::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), serde_json::from_str(script)?);
    println!("{}", model.openai_base());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
