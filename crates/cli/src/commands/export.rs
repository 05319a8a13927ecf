//! `hart export`: one run as a file that somebody else can look at and play again.
//!
//! Invariant: the bundle holds what the run said and did, and nothing of the thread before it.

use std::path::PathBuf;

use hart_app::cassette_of;
use hart_client::{ClientError, Values};
use hart_types::{Body, Message, RunId};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::failure::{Exit, Failure};
use crate::session::{ServerArgs, Session};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  hart export 0199a0… -o run.json
  hart export 0199a0… | jq '.messages[].content'
  hart run --replay run.json \"the same task\"

The bundle is one JSON object: the run's record, its messages, every event of its
stream, and a cassette that `hart run --replay` plays without a model. It holds
what was said and what tools returned: look at it before you hand it on.";

/// Write a run to a file: messages, events, and a cassette to play it again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    #[arg(value_name = "RUN")]
    run: String,
    /// The file to write; without it, stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    at: ServerArgs,
}

pub(crate) fn run(args: &ExportArgs, global: &GlobalArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = Session::open_at(&args.at, global, terminal)?;
    let id = RunId::from(args.run.as_str());
    if !session.has_data() {
        return Err(ClientError::NoRun(id).into());
    }
    let bundle = session.block_on(bundle(&session, &id))??;
    match &args.output {
        None => terminal.line(&bundle.to_string())?,
        Some(path) => {
            let text = format!("{}\n", serde_json::to_string_pretty(&bundle).unwrap_or_default());
            std::fs::write(path, text).map_err(|error| {
                Failure::new(Exit::Usage, error.into()).help(format!("{} cannot be written", path.display()))
            })?;
            terminal.note(&format!("run {id} is in {}", path.display()));
        }
    }
    Ok(Exit::Done)
}

async fn bundle(session: &Session, id: &RunId) -> Result<Value, Failure> {
    let client = session.client();
    let record = client.run(id).await?;
    if record.status.is_active() {
        return Err(Failure::usage(format!("run `{id}` is still going on"))
            .help(format!("wait for its end, or stop it: hart runs cancel {id}")));
    }
    let mut stream = client.join(id).await?;
    let (mut events, mut states) = (Vec::new(), Vec::new());
    while let Some(frame) = stream.next_frame().await {
        let frame = frame?;
        if frame.event == "values" {
            states.push(Values::from_json(frame.data.clone()));
            // All states say again what the messages say; the last one is kept.
            continue;
        }
        let data: Option<&RawValue> = serde_json::from_slice(&frame.data).ok();
        events.push(json!({"event": frame.event, "data": data, "id": frame.id.map(|id| id.to_string())}));
    }
    let messages = of_run(states.first(), states.last());
    let cassette: Value = serde_json::from_str(&cassette_of(&messages)).unwrap_or_default();
    Ok(json!({
        "version": 1,
        "run": record,
        "messages": messages,
        "values": states.last().map(Values::to_json),
        "events": events,
        "cassette": cassette,
    }))
}

/// From what the user said to begin it, to the end.
fn of_run(first: Option<&Values>, last: Option<&Values>) -> Vec<Message> {
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let before = first.messages();
    let begun = before.iter().rposition(|message| message.body == Body::Human).unwrap_or(0);
    last.messages().into_iter().skip(begun).collect()
}
