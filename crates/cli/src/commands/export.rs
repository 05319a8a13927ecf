//! `hart export`: one run as a file that somebody else can look at and play again.
//!
//! Invariant: the bundle holds what the run said and did, or went on from, and nothing of the thread before that.

use std::collections::HashSet;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hart_app::{App, cassette_of};
use hart_client::Values;
use hart_types::{Body, Message, MessageId, RunId};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

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
stream, and a cassette that `hart run --replay` plays without a model. Keys that
hart knows of are hidden; it holds what was said and what tools returned all the
same: look at it before you hand it on.";

/// Write a run to a file: messages, events, and a cassette to play it again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Its id, as `hart runs` lists it, or the beginning of it.
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
    let id = session.run_named(&args.run)?;
    let bundle = session.block_on(bundle(&session, &id))??;
    match &args.output {
        None => terminal.line(&bundle.to_string())?,
        Some(path) => {
            let text = format!("{}\n", serde_json::to_string_pretty(&bundle).unwrap_or_default());
            write_private(path, &text).map_err(|error| {
                Failure::usage(format!("{} cannot be written: {error}", path.display()))
                    .help("name a file in a directory that is there and yours to write")
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
    let (before, messages) = of_run(states.first(), states.last());
    let mut said = json!(messages);
    hide_keys(&mut said, &session.app);
    // What is played is compared with what was recorded, so it is hidden in both.
    let hidden: Vec<Message> = serde_json::from_value(said).unwrap_or_else(|_| messages.clone());
    let with_keys: HashSet<_> = messages
        .iter()
        .zip(&hidden)
        .filter(|(said, hidden)| said != hidden)
        .filter_map(|(said, _)| said.id.clone())
        .collect();
    let messages = hidden;
    let cassette: Value = serde_json::from_str(&cassette_of(&messages)).unwrap_or_default();
    let mut bundle = json!({
        "version": 1,
        "run": record,
        "messages": messages,
        "values": added(states.first(), states.last(), &messages),
        "events": events
            .into_iter()
            .map(|event| without_pieces(without(event, &before), &with_keys))
            .collect::<Vec<_>>(),
        "cassette": cassette,
    });
    hide_keys(&mut bundle, &session.app);
    Ok(bundle)
}

/// The ids of what was said before the run, and what was said from what began it to its end.
fn of_run(first: Option<&Values>, last: Option<&Values>) -> (HashSet<MessageId>, Vec<Message>) {
    let (Some(first), Some(last)) = (first, last) else { return Default::default() };
    let known = first.messages();
    let begun = known.iter().rposition(|message| message.body == Body::Human).unwrap_or(0);
    let before: HashSet<_> = known.into_iter().take(begun).filter_map(|message| message.id).collect();
    let own = |message: &Message| message.id.as_ref().is_none_or(|id| !before.contains(id));
    let messages = last.messages().into_iter().filter(own).collect();
    (before, messages)
}

/// What the run made of the state: its own messages, and of the rest what it changed.
fn added(first: Option<&Values>, last: Option<&Values>, messages: &[Message]) -> Option<Map<String, Value>> {
    let (first, mut values) = (first?.to_json(), last?.to_json());
    values.retain(|key, value| first.get(key) != Some(value));
    for (key, value) in &mut values {
        // A list that has grown: what it had before is not the run's.
        if let (Value::Array(items), Some(Value::Array(before))) = (value, first.get(key))
            && items.starts_with(before)
        {
            items.drain(..before.len());
        }
    }
    values.insert("messages".to_owned(), json!(messages));
    Some(values)
}

/// Some events say what an agent was given, the conversation before the run with it.
fn without(mut event: Value, before: &HashSet<MessageId>) -> Value {
    let is_old = |item: &Value| {
        let id = item.get("id").and_then(Value::as_str);
        item.get("type").is_some() && id.is_some_and(|id| before.contains(&MessageId::from(id)))
    };
    match &mut event {
        Value::Array(items) => {
            items.retain(|item| !is_old(item));
            items.iter_mut().for_each(|item| *item = without(item.take(), before));
        }
        Value::Object(map) => {
            // Of a state that a task was given, what was said: the rest may be of what was said before.
            if let Some(Value::Object(given)) =
                map.get_mut("input").filter(|given| given.get("messages").is_some())
            {
                given.retain(|key, _| key == "messages");
            }
            map.values_mut().for_each(|value| *value = without(value.take(), before));
        }
        _ => {}
    }
    event
}

/// A message with a key in it has it in pieces too, in which it cannot be found: they say nothing then.
fn without_pieces(mut event: Value, with_keys: &HashSet<MessageId>) -> Value {
    match &mut event {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| *item = without_pieces(item.take(), with_keys))
        }
        Value::Object(map) => {
            let id = map.get("id").and_then(Value::as_str);
            let is_piece = map.get("type").and_then(Value::as_str) == Some("AIMessageChunk");
            if is_piece && id.is_some_and(|id| with_keys.contains(&MessageId::from(id))) {
                let keep =
                    |key: &String, _: &mut Value| matches!(key.as_str(), "id" | "type" | "usage_metadata");
                map.retain(keep);
            }
            map.values_mut().for_each(|value| *value = without_pieces(value.take(), with_keys));
        }
        _ => {}
    }
    event
}

/// As recordings do.
fn hide_keys(value: &mut Value, app: &App) {
    match value {
        Value::String(text) => {
            if let Some(hidden) = app.without_keys(text) {
                *text = hidden;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_keys(item, app)),
        Value::Object(map) => map.values_mut().for_each(|value| hide_keys(value, app)),
        _ => {}
    }
}

/// For its owner alone: it holds what was said.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One that was there before keeps its mode otherwise.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}
