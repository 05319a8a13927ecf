//! A summary made without a model: what the user asked for, what was called, what was said last.
//!
//! Invariant: it never fails, depends on nothing but the messages, and has a limit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use hart_types::{Body, Message};

use super::view::ends;

const ASKED: usize = 12;
const ASKED_CHARS: usize = 400;
const SAID: usize = 4;
const SAID_CHARS: usize = 500;
const FILES: usize = 30;
/// Arguments that name what a call was about.
const NAMING: [&str; 4] = ["path", "file_path", "url", "query"];

/// `earlier` is the summary that stood for what came before.
pub(super) fn extract(earlier: Option<&str>, messages: &[Arc<Message>], limit: usize) -> String {
    let mut text = String::new();
    if let Some(earlier) = earlier {
        let earlier = ends(earlier, limit / 3).unwrap_or_else(|| earlier.to_owned());
        section(&mut text, "Before that", [earlier]);
    }
    let asked = |message: &&Arc<Message>| message.body == Body::Human;
    section(&mut text, "The user said", ends_of(messages.iter().filter(asked), ASKED, ASKED_CHARS));
    section(&mut text, "Tools were called", calls(messages));
    let said = |message: &&Arc<Message>| message.as_ai().is_some() && !message.text().trim().is_empty();
    let last: Vec<_> = messages.iter().filter(said).rev().take(SAID).collect();
    let last = last.into_iter().rev().map(|message| one_line(&message.text(), SAID_CHARS));
    section(&mut text, "The last answers were", last);
    ends(&text, limit).unwrap_or(text)
}

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return;
    }
    // Writing to a string does not fail.
    let _ = writeln!(text, "{title}:");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
}

/// The first one tells the task; of the others the latest matter most.
fn ends_of<'a>(messages: impl Iterator<Item = &'a Arc<Message>>, most: usize, chars: usize) -> Vec<String> {
    let all: Vec<_> = messages.collect();
    let skipped = all.len().saturating_sub(most);
    let kept = all.iter().enumerate().filter(|(at, _)| *at == 0 || *at > skipped);
    let mut lines: Vec<_> = kept.map(|(_, message)| one_line(&message.text(), chars)).collect();
    if skipped > 0 {
        lines.insert(1.min(lines.len()), format!("({skipped} more messages)"));
    }
    lines
}

fn calls(messages: &[Arc<Message>]) -> Vec<String> {
    let mut tools: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for call in messages.iter().flat_map(|message| message.tool_calls()) {
        let (count, named) = tools.entry(&call.name).or_default();
        *count += 1;
        let names = NAMING.iter().filter_map(|key| call.args.get(*key)?.as_str());
        for name in names {
            named.retain(|known| *known != name);
            named.push(name);
        }
    }
    let line = |(tool, (count, named)): (&str, (usize, Vec<&str>))| {
        let skipped = named.len().saturating_sub(FILES);
        let named: Vec<_> = named.into_iter().skip(skipped).map(|name| one_line(name, 120)).collect();
        let about = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
        format!("{tool}, {count} times{about}")
    };
    tools.into_iter().map(line).collect()
}

fn one_line(text: &str, chars: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > chars {
        true => line.chars().take(chars).chain("…".chars()).collect(),
        false => line,
    }
}
