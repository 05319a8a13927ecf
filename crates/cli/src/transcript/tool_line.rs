//! A tool call and its outcome, each as one line.
//!
//! Invariant: a line fits its stream's width and holds no control character, whatever a model or a program wrote.

use hart_types::{ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use crate::terminal::{Look, Tone, cut};

/// The argument that says most about a call, the most telling first.
const TELLING: [&str; 11] = [
    "command",
    "path",
    "file_path",
    "filepaths",
    "pattern",
    "query",
    "url",
    "prompt",
    "question",
    "name",
    "id",
];

/// `● bash  count the lines  wc -l *.md`
pub(super) fn started(call: &ToolCall, look: Look) -> String {
    let room = look.width.saturating_sub(call.name.chars().count() + 6);
    let description = cut(description(call), room);
    let whole = telling_argument(call);
    let argument = cut(&whole, room.saturating_sub(description.chars().count() + 2));
    let mut line =
        format!("{} {}", look.paint(Tone::Accent, "●"), look.paint(Tone::Strong, cut(&call.name, 64)));
    if !description.is_empty() {
        line.push_str("  ");
        line.push_str(&description);
    }
    // A few characters of an argument that was cut say nothing; a short one that is whole must be seen.
    if argument == whole || argument.chars().count() > 8 || description.is_empty() {
        line.push_str("  ");
        line.push_str(&look.paint(Tone::Dim, argument));
    }
    line.trim_end().to_owned()
}

/// The call in a few words, to recognise it among others.
pub(super) fn label(call: &ToolCall) -> String {
    let described = description(call);
    let what = if described.is_empty() { telling_argument(call) } else { described.to_owned() };
    cut(&format!("{}  {what}", call.name), 60)
}

/// `  ✓ 12 files`, with the call's name before it when other lines came between.
pub(super) fn finished(result: &ToolResult, label: Option<&str>, text: &str, look: Look) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let ended = result.artifact.as_ref().and_then(|artifact| artifact.get("ended")?.as_str());
    // A command that ran but failed is a result for the model, and a failure for the eye.
    let unwell = ended.filter(|ended| *ended != "exit code 0");
    let mark = match (result.status, unwell) {
        (ToolStatus::Success, None) => look.paint(Tone::Good, "✓"),
        _ => look.paint(Tone::Bad, "✗"),
    };
    let mut said = String::new();
    if let Some(label) = label {
        said.push_str(label);
        said.push_str(": ");
    }
    if let Some(ended) = unwell {
        said.push_str(ended);
        said.push_str(": ");
    }
    said.push_str(lines.first().unwrap_or(&"(nothing)"));
    let more = match lines.len() {
        0 | 1 => String::new(),
        count => format!(" (+{} lines)", count - 1),
    };
    let room = look.width.saturating_sub(4 + more.chars().count());
    format!("  {mark} {}", look.paint(Tone::Dim, format!("{}{more}", cut(&said, room))))
}

/// `  │ Compiling…`
pub(super) fn progress(line: &str, look: Look) -> String {
    look.paint(Tone::Dim, format!("  │ {}", cut(line, look.width.saturating_sub(4))))
}

fn description(call: &ToolCall) -> &str {
    call.args.get("description").and_then(Value::as_str).unwrap_or_default()
}

fn telling_argument(call: &ToolCall) -> String {
    let named = TELLING.iter().find_map(|name| call.args.get(*name));
    let first = || call.args.iter().find(|(name, _)| *name != "description").map(|(_, value)| value);
    match named.or_else(first) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let texts =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(", ")
        }
        Some(value) => value.to_string(),
        None => String::new(),
    }
}
