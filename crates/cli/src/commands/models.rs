//! `hart models`: the models there are to choose from, what is in force for one, and what its endpoint really does.
//!
//! Invariant: only `probe` calls a model; whether one answers at all is the doctor's question.

mod probe;
mod show;

use clap::Subcommand;
use hart_client::ModelInfo;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone, cut};

const EXAMPLES: &str = "\
Examples:
  hart models                      the models there are
  hart models show NAME            what is in force for one, and who said so
  hart models probe NAME           ask its endpoint what it can do, and remember it
  hart run --model NAME \"a task for that model\"

The one marked * is used when none is named. `hart doctor` says whether it answers.";

/// List the models there are, show what is known of one, or find out what it can do.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print as JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the models there are, and where each comes from; what `hart models` alone does.
    List,
    /// Show everything that is in force for a model, value by value, and where each comes from.
    Show(show::ShowArgs),
    /// Ask a model's endpoint what it can do, and remember it for later runs.
    Probe(probe::ProbeArgs),
}

pub(crate) fn run(args: &ModelsArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open(global, terminal)?;
    match &args.action {
        None | Some(Action::List) => list(args.json, &session, terminal),
        Some(Action::Show(show)) => show::run(show, args.json, &session, terminal),
        Some(Action::Probe(probe)) => probe::run(probe, args.json, &session, terminal),
    }
}

fn list(json: bool, session: &Session, terminal: &Terminal) -> Result<Exit, Failure> {
    let listings = session.block_on(session.client().models())??;
    if json {
        terminal.line(&Value::from_iter(listings.iter().map(|listing| json!(listing))).to_string())?;
    } else {
        print(&listings, terminal)?;
    }
    Ok(Exit::Done)
}

/// The listings as a table.
pub(crate) fn print(listings: &[ModelInfo], terminal: &Terminal) -> Result<(), Failure> {
    let cells = |listing: &ModelInfo| {
        let ModelInfo { name, provider, model, .. } = listing;
        [cut(name, 40), cut(&format!("{provider}: {model}"), 50), listing.reason.clone()]
    };
    let rows: Vec<[String; 3]> = listings.iter().map(cells).collect();
    let width = |column: fn(&[String; 3]) -> &String| {
        rows.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (width(|[name, ..]| name), width(|[_, model, _]| model));
    for (listing, [name, model, reason]) in listings.iter().zip(&rows) {
        let mark = if listing.is_default { "*" } else { " " };
        let name = terminal.out.paint(Tone::Strong, format!("{name:<first$}"));
        let reason = terminal.out.paint(Tone::Dim, reason);
        terminal.line(&format!("{mark} {name}  {model:<second$}  {reason}"))?;
    }
    Ok(())
}
