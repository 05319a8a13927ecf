//! `hart doctor`: is everything there that a run needs?
//!
//! Invariant: whatever is wrong is shown with its remedy, and a broken configuration is a finding, not the end.

use hart_app::{Finding, Health, OpenError};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone};

const EXAMPLES: &str = "\
Examples:
  hart doctor
  hart doctor --json | jq '.[] | select(.health != \"good\")'

Exit code: 0, or 1 if something has to be mended first.";

/// Check the configuration, the data directory, the sandbox and the model.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DoctorArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let findings = match Session::open(global, terminal) {
        Ok(session) => session.block_on(async {
            terminal.busy("examining");
            let findings = session.app.doctor().await;
            terminal.rest();
            findings
        })?,
        Err(failure) => match failure.source::<OpenError>() {
            Some(error) => vec![unopened(error)],
            None => return Err(failure),
        },
    };
    if args.json {
        terminal.line(&as_json(&findings))?;
    } else {
        print(&findings, terminal)?;
    }
    let bad = findings.iter().any(|finding| finding.health == Health::Bad);
    Ok(if bad { Exit::Failed } else { Exit::Done })
}

fn unopened(error: &OpenError) -> Finding {
    let (area, fix) = match error {
        OpenError::Config(_) => ("config", "mend the file; `hart config check` says when it is right"),
        OpenError::Sandbox(_) => ("sandbox", "see the section `sandbox` of the configuration"),
        OpenError::Http(_) => ("network", "check the proxy settings and the system's certificates"),
    };
    let summary = error.to_string();
    let summary = summary.strip_prefix("error: ").unwrap_or(&summary).to_owned();
    Finding { area, health: Health::Bad, summary, fix: Some(fix.to_owned()) }
}

fn print(findings: &[Finding], terminal: &Terminal) -> Result<(), Failure> {
    let look = terminal.out;
    let width = findings.iter().map(|finding| finding.area.len()).max().unwrap_or(0);
    for finding in findings {
        let mark = match finding.health {
            Health::Good => look.paint(Tone::Good, "✓"),
            Health::Warning => look.paint(Tone::Warn, "!"),
            Health::Bad => look.paint(Tone::Bad, "✗"),
        };
        let indent = " ".repeat(width + 4);
        let summary = finding.summary.replace('\n', &format!("\n{indent}"));
        terminal.line(&format!("{mark} {:<width$}  {summary}", finding.area))?;
        if let Some(fix) = &finding.fix {
            terminal.line(&format!("{indent}{} {fix}", look.paint(Tone::Accent, "fix:")))?;
        }
    }
    Ok(())
}

fn as_json(findings: &[Finding]) -> String {
    let finding = |finding: &Finding| {
        let health = match finding.health {
            Health::Good => "good",
            Health::Warning => "warning",
            Health::Bad => "bad",
        };
        json!({"area": finding.area, "health": health, "summary": finding.summary, "fix": finding.fix})
    };
    serde_json::Value::from_iter(findings.iter().map(finding)).to_string()
}
