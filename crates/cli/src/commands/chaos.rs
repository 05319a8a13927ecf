//! `hart chaos`: the agent against kills, failing providers, a full disk and readers that do not read.
//!
//! Invariant: it ends by itself and leaves nothing behind; the user's own data directory is not opened.

use std::time::Duration;

use hart_app::{CancellationToken, ChaosError, ChaosOptions, ChaosReport, ChaosRow, Env, Fault, Verdict};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::{Session, load_options};
use crate::terminal::{Terminal, Tone};

const EXAMPLES: &str = "\
Examples:
  hart chaos                                      every fault once, about a minute
  hart chaos --faults kill,429 --runs 10 --seed 7
  hart chaos \"Summarise this repository\" --json | jq .rows

The agent is yours, with your configuration and model; it works in processes and
data directories of its own, which go with it. Its calls cost what they cost: a run
of each fault, and one without. Without a model it plays a bundled script, offline.

kill         SIGKILL in the middle, then a restart
429          the provider is busy (429, 503 or 529)
timeout      the provider says nothing
malformed    its stream is garbage, a page, or ends in the middle
disk-full    no room for a while (needs user namespaces, else skipped)
slow-reader  somebody asks for the stream and does not read it

Repeated effects are counted by the default task, whose commands leave marks; of a
task of your own nobody can say from outside how often it was meant to happen.
Exit codes: 0 everything held, 1 a guarantee broke or the task fails by itself,
2 wrong usage or configuration.";

/// Try how the agent stands up to kills, failing providers and a full disk.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ChaosArgs {
    /// What the agent is asked to do, instead of a task whose effects can be counted.
    #[arg(value_name = "TASK")]
    task: Option<String>,
    /// The model to ask, by its name in `hart models`.
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// How many runs of each fault.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Where to break; the same seed breaks at the same places.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Which faults, in this order.
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', default_values_t = Fault::ALL.map(|fault| fault.name().to_owned()))]
    faults: Vec<String>,
    /// How long a run may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86400))]
    time_limit: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: ChaosArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let fault = |name: &String| {
        let parsed = name.trim().parse::<Fault>();
        parsed.map_err(|known| Failure::usage(format!("`{name}` is not a fault")).help(known))
    };
    let faults: Vec<Fault> = args.faults.iter().map(fault).collect::<Result<_, Failure>>()?;
    let session = Session::open(global, terminal)?;
    let env = Env::from_process();
    let program = std::env::current_exe()?;
    let (json, app, terminal) = (args.json, session.app.clone(), terminal.clone());
    let (config, cwd) = (global.config.clone(), load_options(global, &env)?.cwd);
    let trying = async move {
        let options = ChaosOptions {
            task: args.task,
            model: args.model,
            runs: args.runs,
            seed: args.seed,
            faults,
            time_limit: Duration::from_secs(args.time_limit),
            program,
            config: hart_app::config::LoadOptions { path: config, cwd, env: &env, overrides: None },
        };
        let tell = |what: &str| {
            let line = terminal.err.paint(Tone::Dim, format!("trying {what}"));
            terminal.note(&line);
        };
        app.chaos(options, &tell).await
    };
    let cancel = CancellationToken::new();
    let given_up = cancel.clone();
    let trying = async move {
        tokio::select! {
            tried = trying => Some(tried),
            () = given_up.cancelled() => None,
        }
    };
    let Some(report) = session.block_on(session.attend(cancel, trying))?? else {
        return Ok(Exit::Interrupted);
    };
    let report = report?;
    if json {
        let data = json!({"holds": report.holds(), "report": report});
        session.terminal.line(&data.to_string())?;
    } else {
        print(&report, &session.terminal)?;
    }
    Ok(if report.holds() { Exit::Done } else { Exit::Failed })
}

fn print(report: &ChaosReport, terminal: &Terminal) -> Result<(), Failure> {
    let ChaosReport { model, seed, rows, .. } = report;
    terminal.line(&format!("model: {model}; seed {seed}"))?;
    let head = format!(
        "{:<12} {:>5} {:>9} {:>8} {:>17} {:>12}  verdict",
        "fault", "runs", "finished", "resumed", "repeated effects", "lost events"
    );
    terminal.line(&terminal.out.paint(Tone::Strong, head))?;
    for row in rows {
        let ChaosRow { fault, runs, finished, resumed, repeated_effects, lost_events, verdict, notes } = row;
        let repeated = repeated_effects.map_or_else(|| "not counted".to_owned(), |count| count.to_string());
        let verdict = match verdict {
            Verdict::Held => terminal.out.paint(Tone::Good, "held"),
            Verdict::Broken => terminal.out.paint(Tone::Bad, "BROKEN"),
            Verdict::Skipped => terminal.out.paint(Tone::Warn, "skipped"),
        };
        terminal.line(&format!(
            "{:<12} {runs:>5} {finished:>9} {resumed:>8} {repeated:>17} {lost_events:>12}  {verdict}",
            fault.name()
        ))?;
        for note in notes {
            terminal.line(&terminal.out.paint(Tone::Dim, format!("             {note}")))?;
        }
    }
    if rows.iter().any(|row| row.repeated_effects.is_none()) {
        let why =
            "repeated effects are counted where the task leaves marks: the default one, if the model does it";
        terminal.line(&terminal.out.paint(Tone::Dim, why.to_owned()))?;
    }
    Ok(())
}

impl From<ChaosError> for Failure {
    fn from(error: ChaosError) -> Self {
        match error {
            ChaosError::Model(error) => error.into(),
            ChaosError::Config(error) => Self::new(Exit::Usage, error.into()),
            error @ ChaosError::Baseline(_) => {
                Self::failed(error).help("`hart run` says more about it; `hart doctor` checks the connection")
            }
            error => Self::failed(error),
        }
    }
}
