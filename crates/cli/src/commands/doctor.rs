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
        Err(failure) => match failure.downcast_ref::<OpenError>() {
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
