//! `hart models probe`: asks an endpoint what it can do.
//!
//! Invariant: what it will cost is said before the first request.

use std::io;
use std::sync::{Mutex, PoisonError};

use hart_app::{Check, Outcome, probe};

use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone, cut};

const EXAMPLES: &str = "\
Examples:
  hart models probe
  hart models probe local --context 32000
  hart models probe local --json | jq .facts

It asks about streaming, tool calls, reasoning, system messages, images, JSON
schemas, stop sequences, long prompts and cancellation, one small request each.
What it finds is kept in HART_HOME/models and used from then on, for this model
at this address; `hart models show` says so. What the configuration says wins.

Exit code: 0, or 1 if the model cannot be talked to.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ProbeArgs {
    /// The model's name; the default model if not given.
    name: Option<String>,
    /// How many tokens the long prompt has, to see whether all of it is read.
    #[arg(long, value_name = "TOKENS", default_value_t = probe::DEFAULT_CONTEXT,
        value_parser = clap::value_parser!(u32).range(100..=4_000_000))]
    context: u32,
}

pub(super) fn run(
    args: &ProbeArgs,
    json: bool,
    session: &Session,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let probe::Estimate { requests, input_tokens, output_tokens } = probe::estimate(args.context);
    terminal.note(&format!(
        "up to {requests} requests: about {input_tokens} tokens in, {output_tokens} out at the very most"
    ));
    let broken: Mutex<Option<io::Error>> = Mutex::default();
    let tell = |check: &Check| {
        if !json && let Err(error) = line(check, terminal) {
            broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    let probed = session.block_on(async {
        terminal.busy("probing");
        let probed = session.app.probe_model(args.name.as_deref(), args.context, &tell).await;
        terminal.rest();
        probed
    })?;
    let (profile, path) = probed?;
    if let Some(error) = broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error.into());
    }
    if json {
        terminal.line(&serde_json::to_string(&profile).map_err(Failure::failed)?)?;
    }
    match path {
        Some(path) => {
            terminal.note(&format!("kept in {}", path.display()));
            Ok(Exit::Done)
        }
        None => {
            terminal.note("nothing is kept: the model could not be talked to");
            Ok(Exit::Failed)
        }
    }
}

fn line(check: &Check, terminal: &Terminal) -> io::Result<()> {
    let look = terminal.out;
    let mark = match check.outcome {
        Outcome::Yes => look.paint(Tone::Good, "✓"),
        Outcome::No => look.paint(Tone::Bad, "✗"),
        Outcome::Unclear => look.paint(Tone::Warn, "?"),
    };
    let name = check.name.replace('_', " ");
    let evidence = look.paint(Tone::Dim, cut(&check.evidence, 300));
    terminal.line(&format!("{mark} {name:<24} {evidence}"))
}
