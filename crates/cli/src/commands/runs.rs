//! `hart runs`: what was and is being done.
//!
//! Invariant: a run of another process or of a server is treated as one of this process.

use hart_client::RunInfo;
use hart_types::{RunId, ThreadId};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::{ServerArgs, Session};
use crate::terminal::{Terminal, Tone};
use crate::transcript;

const EXAMPLES: &str = "\
Examples:
  hart runs
  hart runs list --thread rain
  hart runs show 0199a0…
  hart runs cancel 0199a0…

`hart export RUN` writes all that is known of one to a file.";

/// List the runs, look at one, or stop one.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// The newest first.
    List(ListArgs),
    /// How one went.
    Show(OneArgs),
    /// Stop one; what it did stays.
    Cancel(OneArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those of this thread.
    #[arg(short, long, value_name = "ID")]
    thread: Option<String>,
    /// At most so many.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// Its id, or the beginning of it.
    #[arg(value_name = "RUN")]
    run: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

pub(crate) fn run(args: &RunsArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    match &args.action {
        None => list(&args.list, global, terminal),
        Some(Action::List(args)) => list(args, global, terminal),
        Some(Action::Show(args)) => show(args, global, terminal),
        Some(Action::Cancel(args)) => cancel(args, global, terminal),
    }
}

fn list(args: &ListArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    let thread = args.thread.as_deref().map(ThreadId::from);
    let runs = match session.has_data() {
        true => session.block_on(session.client().runs(thread.as_ref(), args.limit as usize))??,
        false => Vec::new(),
    };
    if args.json {
        terminal.line(&json!(runs).to_string())?;
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        terminal.note("there are no runs yet; `hart run \"a task\"` makes one");
    }
    for run in &runs {
        terminal.line(&line(run, terminal))?;
    }
    Ok(Exit::Done)
}

fn line(run: &RunInfo, terminal: &Terminal) -> String {
    let id = terminal.out.paint(Tone::Strong, &run.id);
    let when = terminal.out.paint(Tone::Dim, run.created_at.strftime("%Y-%m-%d %H:%M"));
    let tokens = transcript::count(run.usage.total_tokens);
    format!("{id}  {when}  {:<11}  {tokens:>6} tokens  thread {}", run.status.to_string(), run.called())
}

fn show(args: &OneArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let (session, id) = open(args, global, terminal)?;
    let run = session.block_on(session.client().run(&id))??;
    if args.json {
        terminal.line(&json!(run).to_string())?;
        return Ok(Exit::Done);
    }
    terminal.line(&line(&run, terminal))?;
    let (input, output) = (run.usage.input_tokens, run.usage.output_tokens);
    terminal.line(&format!("model calls: {}; tokens: {input} in, {output} out", run.model_calls))?;
    if let Some(cost) = run.cost {
        // Small models cost less than a hundredth of a cent.
        let digits = if cost < 0.01 { 6 } else { 4 };
        terminal.line(&format!("cost: {cost:.digits$}"))?;
    }
    if let Some(error) = &run.error {
        terminal.line(&format!("{} {error}", terminal.out.paint(Tone::Bad, "error:")))?;
    }
    Ok(Exit::Done)
}

fn cancel(args: &OneArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let (session, id) = open(args, global, terminal)?;
    let had_ended = !session.block_on(session.client().run(&id))??.status.is_active();
    session.block_on(session.client().cancel(&id))??;
    let run = session.block_on(session.client().run(&id))??;
    match args.json {
        true => terminal.line(&json!(run).to_string())?,
        false if had_ended => terminal.note(&format!("run {id} had ended already: {}", run.status)),
        false => terminal.note(&format!("run {id}: {}", run.status)),
    }
    Ok(Exit::Done)
}

fn open(args: &OneArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<(Session, RunId), Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    let id = session.run_named(&args.run)?;
    Ok((session, id))
}
