//! Cold starts, as a user sees them: from the call to the first byte.
//!
//! Invariant: every start is a new process with an empty data directory.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use hart_testkit::BenchScript;

use crate::model::ModelProcess;
use crate::{Row, median};

const RUNS: usize = 20;

pub fn measure(hart: &Path) -> anyhow::Result<Vec<Row>> {
    let floor = repeat(|| first_byte(Command::new("/bin/echo").arg("x")))?;
    let version = repeat(|| first_byte(Command::new(hart).arg("--version")))?;
    let model = ModelProcess::start(&BenchScript { tokens: 3, ..BenchScript::default() })?;
    let run = repeat(|| {
        let home = tempfile::tempdir()?;
        first_byte(command(hart, home.path(), &model.base_url).args(["run", "go"]))
    })?;
    let row = |measure: &str, hart: f64, target| Row {
        measure: measure.into(),
        hart: format!("{hart:.1} ms"),
        floor: format!("{floor:.1} ms (`echo`)"),
        target,
    };
    Ok(vec![
        row("`hart --version`", version, "≤ 10 ms"),
        row("`hart run`, cold start to first token", run, "–"),
    ])
}

/// `hart` with nothing but a model at `base_url`.
pub fn command(hart: &Path, home: &Path, base_url: &str) -> Command {
    let mut command = Command::new(hart);
    command.env_clear().current_dir(home).env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", base_url).env("OPENAI_MODEL", "bench");
    command
}

fn repeat(mut once: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    Ok(median((0..RUNS).map(|_| once()).collect::<anyhow::Result<_>>()?))
}

/// Milliseconds until the first byte on standard output.
fn first_byte(command: &mut Command) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut stdout = child.stdout.take().ok_or_else(|| anyhow::anyhow!("no pipe"))?;
    let read = stdout.read(&mut [0; 1])?;
    let elapsed = start.elapsed();
    std::io::copy(&mut stdout, &mut std::io::sink())?;
    let status = child.wait()?;
    anyhow::ensure!(read == 1 && status.success(), "{command:?} printed nothing and ended with {status}");
    Ok(elapsed.as_secs_f64() * 1e3)
}
