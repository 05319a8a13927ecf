//! `hart threads`: the conversations there are.
//!
//! Invariant: looking changes nothing; what is deleted was named.

use hart_client::{ClientError, ThreadState, ThreadSummary};
use hart_types::{Body, Message, ThreadId};
use serde_json::{Value, json};

use crate::args::{GlobalArgs, quoted};
use crate::failure::{Exit, Failure};
use crate::session::{ServerArgs, Session};
use crate::terminal::{Terminal, Tone, cut};

const EXAMPLES: &str = "\
Examples:
  hart threads
  hart threads show rain
  hart threads delete rain 0199a0…
  hart threads --json | jq -r '.[].id'
  hart threads list --server http://127.0.0.1:2026

To go on with one: hart run --thread ID \"…\", or hart chat --thread ID.";

/// List the conversations, look at one, or delete some.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ThreadsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// The newest first.
    List(ListArgs),
    /// What was said in one.
    Show(ShowArgs),
    /// Delete them with their files.
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
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
struct ShowArgs {
    /// Its id or the name it was begun under.
    #[arg(value_name = "ID")]
    thread: String,
    /// Print its whole state as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
struct DeleteArgs {
    #[arg(value_name = "ID", required = true)]
    threads: Vec<String>,
    #[command(flatten)]
    at: ServerArgs,
}

pub(crate) fn run(args: &ThreadsArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    match &args.action {
        None => list(&args.list, global, terminal),
        Some(Action::List(args)) => list(args, global, terminal),
        Some(Action::Show(args)) => show(args, global, terminal),
        Some(Action::Delete(args)) => delete(args, global, terminal),
    }
}

fn list(args: &ListArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    let threads = match session.has_data() {
        true => session.block_on(session.client().threads(args.limit as usize))??,
        false => Vec::new(),
    };
    if args.json {
        terminal.line(&json!(threads).to_string())?;
        return Ok(Exit::Done);
    }
    if threads.is_empty() {
        terminal.note("there are no threads yet; `hart run \"a task\"` begins one");
    }
    let width = threads.iter().map(|thread| thread.id.as_str().chars().count()).max().unwrap_or(0);
    for ThreadSummary { id, title, status, updated_at, .. } in &threads {
        let name = terminal.out.paint(Tone::Strong, format!("{:<width$}", cut(id.as_str(), width)));
        let when = terminal.out.paint(Tone::Dim, updated_at.strftime("%Y-%m-%d %H:%M"));
        let title = cut(title.as_deref().unwrap_or_default(), 60);
        terminal.line(format!("{name}  {when}  {status:<11}  {title}").trim_end())?;
    }
    Ok(Exit::Done)
}

fn show(args: &ShowArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    let id = ThreadId::from(args.thread.as_str());
    if !session.has_data() {
        return Err(ClientError::NoThread(id).into());
    }
    let state = session.block_on(session.client().thread(&id))??;
    if args.json {
        let ThreadState { id, values, interrupts, .. } = &state;
        let json = json!({"id": id, "values": values.to_json(), "interrupts": interrupts});
        terminal.line(&json.to_string())?;
        return Ok(Exit::Done);
    }
    if let Some(title) = state.values.title() {
        terminal.line(&terminal.out.paint(Tone::Strong, title))?;
    }
    for message in state.values.messages() {
        tell(terminal, &message)?;
    }
    for path in state.values.artifacts() {
        if let Some(file) = session.client().locate(&id, &path) {
            terminal.line(&format!("file: {}", file.location))?;
        }
    }
    if !state.interrupts.is_empty() {
        terminal.note(&format!("it waits for an answer: hart chat --thread {}", quoted(id.as_str())));
    }
    Ok(Exit::Done)
}

/// What people and the agent said; of tools, that they were called.
fn tell(terminal: &Terminal, message: &Message) -> Result<(), Failure> {
    let text = message.original_text();
    match &message.body {
        Body::Human => terminal.line(&format!("{} {text}", terminal.out.paint(Tone::Accent, ">")))?,
        Body::Ai(ai) => {
            if !text.trim().is_empty() {
                terminal.line(&text)?;
            }
            for call in &ai.tool_calls {
                let about = call.args.get("description").and_then(Value::as_str).unwrap_or_default();
                let line = format!("● {}  {}", call.name, cut(about, 60));
                terminal.line(&terminal.out.paint(Tone::Dim, line.trim_end()))?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn delete(args: &DeleteArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    for name in &args.threads {
        let id = ThreadId::from(name.as_str());
        if !session.has_data() {
            return Err(ClientError::NoThread(id).into());
        }
        session.block_on(session.client().delete_thread(&id))??;
        terminal.note(&format!("deleted `{name}`"));
    }
    Ok(Exit::Done)
}
