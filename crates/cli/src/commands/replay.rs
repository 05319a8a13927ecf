//! `hart replay`: a recorded run again, without a model; from a step on with another; two runs side by side.
//!
//! Invariant: the run that is played, its thread and its files stay as they are. Without `--from` no model is asked and
//! no tool is called.

use hart_app::runtime::recording::{Difference, Divergence, Part, Played, ReelError, Sums, divergence};
use hart_app::{CancellationToken, ReplayError, Replayed, Replaying};
use hart_client::ClientError;
use hart_types::{RunId, UsageMetadata};
use serde_json::json;

use super::run::{Followed, watch};
use crate::args::{GlobalArgs, quoted};
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone};
use crate::transcript::Transcript;
use crate::transcript::frames::{Ended, Frames};

const EXAMPLES: &str = "\
Examples:
  hart replay 0199a0…                             the run again, as it was told; no token is spent
  hart replay 0199a0… --json | jq -c .event
  hart replay 0199a0… --from 3 --model other      steps 1 and 2 as recorded, then another model
  hart replay diff 0199a0… 0199b7…                where two runs part first

Runs are recorded as they happen (`hart config explain recording`), without keys,
and kept as long as their streams. A replay asks for what the run asked for: if
that is not what was recorded, because the configuration has changed, it stops and
shows the first difference. A step is an answer of the model or a batch of results
of tools.
Exit codes: 0 the same, 1 different or failed, 2 there is nothing to play.";

/// Play a run again from its recording, or compare two.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// The run, by its whole id in `hart runs`.
    #[arg(value_name = "RUN", required = true)]
    run: Option<String>,
    /// Go on by itself from this step, in a new thread with a copy of the files as they are now; what comes before is
    /// as recorded.
    #[arg(long, value_name = "STEP", value_parser = clap::value_parser!(u32).range(1..))]
    from: Option<u32>,
    /// The model to go on with, by its name in `hart models`; without it, the one the run had.
    #[arg(short, long, value_name = "NAME", requires = "from")]
    model: Option<String>,
    /// Print every event as one line of JSON, and what came of it as the last.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Where two runs part first, and what each took.
    Diff(DiffArgs),
}

#[derive(Debug, clap::Args)]
struct DiffArgs {
    /// One run, by its whole id in `hart runs`.
    #[arg(value_name = "A")]
    a: String,
    /// The other.
    #[arg(value_name = "B")]
    b: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ReplayArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open(global, terminal)?;
    match &args.action {
        Some(Action::Diff(args)) => diff(args, &session),
        None => play(args, &session),
    }
}

fn play(args: &ReplayArgs, session: &Session) -> Result<Exit, Failure> {
    let id = RunId::from(args.run.as_deref().unwrap_or_default());
    known(session, &id)?;
    let cancel = CancellationToken::new();
    let begun = session.block_on(async {
        match args.from {
            None => session.app.replay(&id, cancel.clone()).await,
            Some(from) => session.app.replay_from(&id, from, args.model.as_deref(), cancel.clone()).await,
        }
    })?;
    let mut replaying = begun?;
    let Some(stream) = replaying.frames() else { return Ok(Exit::Failed) };
    let (terminal, stop) = (session.terminal.clone(), cancel.clone());
    if args.json {
        let printed = async move { Ok::<_, Failure>(Frames::new(terminal, stop).print(stream).await??) };
        let ended = session.block_on(session.attend(cancel, printed))???;
        let told = Told { usage: UsageMetadata::default(), failed: failed(&ended) };
        return finish(args, session, replaying, &told);
    }
    let told = watch(Transcript::new(terminal, stop), stream.into_events());
    let Followed { told, ended } = session.block_on(session.attend(cancel, told))???;
    if args.from.is_some() {
        super::run::hand_over(session, &replaying.thread, &told);
    }
    let failed = match ended {
        Ok(_) | Err(ClientError::Cancelled) => None,
        Err(error) => Some(error.to_string()),
    };
    finish(args, session, replaying, &Told { usage: told.usage, failed })
}

/// What is known of a run that was played, beside what the recording says.
struct Told {
    usage: UsageMetadata,
    /// Why it failed.
    failed: Option<String>,
}

fn failed(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Failed(error) => Some(error.clone()),
        Ended::Finished { .. } | Ended::Paused | Ended::Cancelled => None,
    }
}

fn finish(args: &ReplayArgs, session: &Session, replaying: Replaying, told: &Told) -> Result<Exit, Failure> {
    let terminal = &session.terminal;
    let (thread, run) = (replaying.thread.clone(), replaying.run.clone());
    let Replayed { played, difference, stopped } = session.block_on(replaying.finish())?;
    let same = args.from.is_some() || difference.is_none();
    if args.json {
        let data = json!({
            "replayed_model_calls": played.calls,
            "replayed_tool_results": played.results,
            "live_model_calls": played.live_calls,
            "recorded_usage": played.usage,
            "difference": difference,
            "stopped": stopped,
            "thread_id": args.from.map(|_| &thread),
            "run_id": args.from.map(|_| &run),
        });
        terminal.line(&json!({"event": "replay", "data": data}).to_string())?;
        return Ok(if same { Exit::Done } else { Exit::Failed });
    }
    terminal.note(&terminal.err.paint(Tone::Strong, spent(&played, told)));
    match (args.from, difference) {
        (None, Some(difference)) => Err(parted(&difference)),
        (None, None) => {
            if stopped {
                terminal.note("the run was stopped here; there is nothing more in its recording");
                return Ok(Exit::Done);
            }
            if let Some(error) = &told.failed {
                terminal.note(&format!("it failed as it had failed: {error}"));
            }
            Ok(Exit::Done)
        }
        (Some(_), difference) => {
            if let Some(difference) = difference {
                let why = format!("what was replayed is not all as recorded: {difference}");
                terminal.note(&terminal.err.paint(Tone::Dim, why));
            }
            let go_on = format!("hart run --thread {} \"…\"", quoted(thread.as_str()));
            terminal.note(&terminal.err.paint(Tone::Dim, format!("run {run}; to go on: {go_on}")));
            match &told.failed {
                Some(error) => Err(Failure::failed(anyhow::Error::msg(error.clone()))),
                None => Ok(Exit::Done),
            }
        }
    }
}

/// `replayed 3 model calls, 0 tokens spent`.
fn spent(played: &Played, told: &Told) -> String {
    let calls = |count: u64| format!("{count} model call{}", if count == 1 { "" } else { "s" });
    let replayed = calls(played.calls);
    match played.live_calls {
        0 => format!("replayed {replayed}, 0 tokens spent"),
        live => {
            let tokens = told.usage.total_tokens.saturating_sub(played.usage.total_tokens);
            format!("replayed {replayed}, then made {}: {tokens} tokens spent", calls(live))
        }
    }
}

fn parted(difference: &Difference) -> Failure {
    Failure::failed(anyhow::Error::msg(difference.to_string()))
        .help("a replay asks what the run asked; `hart replay RUN --from STEP` goes on with the configuration as it is")
}

fn known(session: &Session, run: &RunId) -> Result<(), Failure> {
    match session.has_data() {
        true => Ok(()),
        false => Err(ClientError::NoRun(run.clone()).into()),
    }
}

fn diff(args: &DiffArgs, session: &Session) -> Result<Exit, Failure> {
    let terminal = &session.terminal;
    let load = |id: &str| -> Result<_, Failure> {
        let id = RunId::from(id);
        known(session, &id)?;
        Ok(session.block_on(session.app.reel(&id))??)
    };
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let (found, sums) = (divergence(&a, &b), [a.sums(), b.sums()]);
    let exit = if found.is_some() { Exit::Failed } else { Exit::Done };
    if args.json {
        let data = json!({"same": found.is_none(), "divergence": found, "runs": sums});
        terminal.line(&data.to_string())?;
        return Ok(exit);
    }
    match &found {
        None => terminal.line("the same: every request, answer and result")?,
        Some(found) => tell(found, terminal)?,
    }
    table(&sums, terminal)?;
    Ok(exit)
}

fn tell(found: &Divergence, terminal: &Terminal) -> Result<(), Failure> {
    let Divergence { step, part, of, first, second } = found;
    let what = match part {
        Part::Prompt => format!("what the model is asked with ({of})"),
        Part::Messages => format!("what `{of}` tells the model"),
        Part::Answer => format!("what the model answers `{of}`"),
        Part::ToolResult => format!("what the tool `{of}` gives"),
        Part::End => format!("what is done: {of}"),
        Part::Status => "how the run ended".to_owned(),
    };
    terminal.line(&terminal.out.paint(Tone::Strong, format!("they part at step {step}: {what}")))?;
    for (name, text) in [("A", first), ("B", second)] {
        terminal.line(&format!("  {name}: {}", text.as_deref().unwrap_or("(nothing)")))?;
    }
    Ok(())
}

fn table(sums: &[Sums; 2], terminal: &Terminal) -> Result<(), Failure> {
    let row = |name: &str, value: &dyn Fn(&Sums) -> String| {
        let [a, b] = sums;
        terminal.line(&format!("{name:<14} {:>24} {:>24}", value(a), value(b)))
    };
    row("", &|sums| short(sums.run.as_str()))?;
    row("status", &|sums| sums.status.to_string())?;
    row("model", &|sums| sums.model.clone().unwrap_or_default())?;
    row("steps", &|sums| sums.steps.to_string())?;
    row("model calls", &|sums| sums.model_calls.to_string())?;
    row("tool calls", &|sums| sums.tool_calls.to_string())?;
    row("tokens in", &|sums| sums.usage.input_tokens.to_string())?;
    row("tokens out", &|sums| sums.usage.output_tokens.to_string())?;
    if sums.iter().any(|sums| sums.cost.is_some()) {
        row("cost", &|sums| sums.cost.map_or_else(|| "?".to_owned(), |cost| format!("{cost:.6}")))?;
    }
    if sums.iter().any(|sums| sums.in_all.usage.total_tokens != sums.usage.total_tokens) {
        terminal.line("with subagents, and what was cut off:")?;
        row("  model calls", &|sums| sums.in_all.model_calls.to_string())?;
        row("  tool calls", &|sums| sums.in_all.tool_calls.to_string())?;
        row("  tokens in", &|sums| sums.in_all.usage.input_tokens.to_string())?;
        row("  tokens out", &|sums| sums.in_all.usage.output_tokens.to_string())?;
        if sums.iter().any(|sums| sums.in_all.cost.is_some()) {
            row("  cost", &|sums| {
                sums.in_all.cost.map_or_else(|| "?".to_owned(), |cost| format!("{cost:.6}"))
            })?;
        }
    }
    Ok(())
}

/// Enough to know it by; ids that were made at one time begin alike.
fn short(id: &str) -> String {
    let end: Vec<char> = id.chars().rev().take(12).collect();
    format!("…{}", end.into_iter().rev().collect::<String>())
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        let help = match &error {
            ReplayError::Recording(ReelError::NoRun(_)) => "`hart runs` lists them",
            ReplayError::Recording(ReelError::Active(_)) => {
                "wait for its end, or stop it: hart runs cancel RUN"
            }
            ReplayError::Recording(ReelError::NotRecorded(_)) => {
                "recordings are kept as long as streams (`server.keep_streams_days`), and none is made while \
                 `recording.enabled` is false"
            }
            ReplayError::Recording(ReelError::Version { .. }) => "play it with the hart that made it",
            ReplayError::Recording(ReelError::Damaged { .. }) => {
                "`hart export RUN` still has what its stream told"
            }
            ReplayError::NoStep { .. } => "count the model's answers and the batches of results, from 1",
            ReplayError::Model(_) => return Self::from_choice(error),
            _ => return Self::failed(error),
        };
        Self::new(Exit::Usage, error.into()).help(help)
    }
}

impl Failure {
    fn from_choice(error: ReplayError) -> Self {
        match error {
            ReplayError::Model(error) => error.into(),
            error => Self::failed(error),
        }
    }
}
