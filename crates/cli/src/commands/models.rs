//! `hart models`: the models there are to choose from.
//!
//! Invariant: it lists, it does not call; whether a model answers is the doctor's question.

use hart_app::ModelListing;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone, cut};

const EXAMPLES: &str = "\
Examples:
  hart models
  hart run --model NAME \"a task for that model\"

The one marked * is used when none is named. `hart doctor` says whether it answers.";

/// List the models there are, and where each comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModelsArgs {
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ModelsArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open(global, terminal)?;
    let listings = session.block_on(session.app.models())?;
    if args.json {
        terminal.line(&Value::from_iter(listings.iter().map(as_json)).to_string())?;
    } else {
        print(&listings, terminal)?;
    }
    Ok(Exit::Done)
}

/// The listings as a table.
pub(crate) fn print(listings: &[ModelListing], terminal: &Terminal) -> Result<(), Failure> {
    let cells = |listing: &ModelListing| {
        let ModelListing { name, provider, model, .. } = listing;
        [cut(name, 40), cut(&format!("{provider}: {model}"), 50), listing.reason.to_string()]
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

fn as_json(listing: &ModelListing) -> Value {
    json!({
        "name": listing.name,
        "provider": listing.provider,
        "model": listing.model,
        "description": listing.description,
        "reason": listing.reason.to_string(),
        "is_default": listing.is_default,
    })
}
