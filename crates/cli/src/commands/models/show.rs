//! `hart models show`: every value in force, with its origin.
//!
//! Invariant: it asks no model, and a key is never among the values.

use hart_app::{ModelSheet, SheetRow};
use serde_json::{Map, Value, json};

use crate::failure::{Exit, Failure};
use crate::session::Session;
use crate::terminal::{Terminal, Tone, cut};

const EXAMPLES: &str = "\
Examples:
  hart models show
  hart models show gpt-5.6
  hart models show main --json | jq .capabilities.context_window

A value comes from the configuration, else from a probe of the endpoint, else
from the catalogue that hart was built with, else from the provider's defaults.
To set one yourself, write it below `capabilities:` in the model's entry.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The model's name; the default model if not given.
    name: Option<String>,
}

pub(super) fn run(
    args: &ShowArgs,
    json: bool,
    session: &Session,
    terminal: &Terminal,
) -> Result<Exit, Failure> {
    let sheet = session.block_on(session.app.model_sheet(args.name.as_deref()))??;
    if json {
        terminal.line(&as_json(&sheet).to_string())?;
    } else {
        print(&sheet, terminal)?;
    }
    Ok(Exit::Done)
}

fn print(sheet: &ModelSheet, terminal: &Terminal) -> Result<(), Failure> {
    let cells = |row: &SheetRow| (row.key, cut(&shown(&row.value), 48), cut(&row.from, 100));
    let rows: Vec<_> = sheet.settings.iter().chain(&sheet.capabilities).map(cells).collect();
    let keys = rows.iter().map(|(key, ..)| key.chars().count()).max().unwrap_or(0);
    let values = rows.iter().map(|(_, value, _)| value.chars().count()).max().unwrap_or(0);
    for (index, (key, value, from)) in rows.into_iter().enumerate() {
        if index == sheet.settings.len() {
            terminal.line("")?;
        }
        let key = terminal.out.paint(Tone::Strong, format!("{key:<keys$}"));
        let from = terminal.out.paint(Tone::Dim, from);
        terminal.line(&format!("{key}  {value:<values$}  {from}"))?;
    }
    let note = format!("the catalogue is of {}", sheet.catalogue_date);
    terminal.line(&terminal.out.paint(Tone::Dim, note))?;
    Ok(())
}

/// A value as people write it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(price) if price.contains_key("input_per_million") => {
            let part = |key: &str| price.get(key).map_or_else(|| "–".to_owned(), Value::to_string);
            let currency = price.get("currency").map(shown).unwrap_or_default();
            let (input, output) = (part("input_per_million"), part("output_per_million"));
            let cached = part("input_cache_hit_per_million");
            format!("in {input}, out {output}, cached {cached} {currency}").trim_end().to_owned()
        }
        Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn as_json(sheet: &ModelSheet) -> Value {
    let row = |row: &SheetRow| (row.key.to_owned(), json!({"value": row.value, "from": row.from}));
    let rows = |rows: &[SheetRow]| rows.iter().map(row).collect::<Map<String, Value>>();
    json!({
        "name": sheet.name,
        "settings": rows(&sheet.settings),
        "capabilities": rows(&sheet.capabilities),
        "catalogue_date": sheet.catalogue_date,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_people_write_them() {
        let table = [
            (json!(null), "–"),
            (json!(true), "yes"),
            (json!([]), "none"),
            (json!(["low", "high"]), "low, high"),
            (json!(1000), "1000"),
            (
                json!({"currency": "USD", "input_per_million": 2.0, "output_per_million": 10.0}),
                "in 2.0, out 10.0, cached – USD",
            ),
        ];
        for (value, want) in table {
            assert_eq!(shown(&value), want);
        }
    }
}
