//! `str_replace`: replaces a piece of a text file.
//!
//! Invariant: it changes exactly the place the model meant, or nothing: an ambiguous text is refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use hart_kernel::{Effect, Reconciled, ToolContext, ToolError, ToolOutput, TypedTool, async_trait};
use hart_sandbox::{SandboxError, VPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::edits::Edit;
use crate::cut;
use crate::lenient::{Flag, Purpose};
use crate::sandboxed::{Sandboxed, explain, failed, missing};

pub(crate) struct StrReplace(pub(crate) Arc<Sandboxed>);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct StrReplaceArgs {
    #[serde(default)]
    #[schemars(!default)]
    #[expect(dead_code, reason = "read by clients, from the call")]
    description: Purpose,
    /// The absolute path of the file.
    #[serde(alias = "file_path")]
    path: String,
    /// The text to replace, exactly as in the file, with its indentation.
    #[serde(alias = "old_string")]
    old_str: String,
    /// The text to put in its place; empty to delete it.
    #[serde(alias = "new_string")]
    new_str: String,
    /// Replace every occurrence. Without it the text must occur exactly once.
    #[serde(default)]
    replace_all: Flag,
}

#[async_trait]
impl TypedTool for StrReplace {
    const NAME: &'static str = "str_replace";
    const DESCRIPTION: &'static str = "\
Replace a piece of text in a file with another. Answers `OK`, with the number of places if there were several.

Read the file first and copy old_str from it exactly. It must occur once: include as many lines around the \
place as make it unique, or set replace_all to replace every occurrence. To make a file or rewrite most of \
it use write_file.";
    const ALIASES: &'static [&'static str] = &["edit_file"];
    const EFFECT: Effect = Effect::Once;
    type Args = StrReplaceArgs;

    async fn run(&self, cx: &ToolContext<'_>, args: StrReplaceArgs) -> Result<ToolOutput, ToolError> {
        if args.old_str.is_empty() {
            return Err(failed(
                "old_str is empty; give the text to replace, or use write_file (with append to add to the \
                 end)",
            ));
        }
        if args.old_str == args.new_str {
            return Err(failed(
                "old_str and new_str are the same, so nothing would change; correct one of them",
            ));
        }
        let sandbox = self.0.acquire(cx).await?;
        let path = sandbox.path(&args.path).map_err(explain)?;
        let mut replaced = Ok(0);
        // Under the sandbox's lock on the path: two edits of one answer do not undo each other.
        let mut edit = |content: &[u8]| match replace(&path, content, &args) {
            Ok((text, count)) => {
                replaced = Ok(count);
                Some(text.into_bytes())
            }
            Err(error) => {
                replaced = Err(error);
                None
            }
        };
        match sandbox.modify(&path, &mut edit).await {
            Err(SandboxError::NotFound(path)) => return Err(missing(sandbox.as_ref(), path).await),
            other => other.map_err(explain)?,
        };
        Ok(answer(replaced?))
    }

    async fn foresee(&self, cx: &ToolContext<'_>, args: StrReplaceArgs) -> Option<Value> {
        let sandbox = self.0.acquire(cx).await.ok()?;
        let path = sandbox.path(&args.path).ok()?;
        let mut count = 0;
        let change = |content: Vec<u8>| {
            let (text, places) = replace(&path, &content, &args).ok()?;
            count = places;
            Some(text.into_bytes())
        };
        let edit = Edit::foresee(sandbox.as_ref(), &path, change).await?;
        Some(json!({"edit": edit, "places": count}))
    }

    async fn reconcile(
        &self,
        cx: &ToolContext<'_>,
        args: StrReplaceArgs,
        foreseen: Option<&Value>,
    ) -> Reconciled {
        let Ok(sandbox) = self.0.acquire(cx).await else { return Reconciled::Unknown };
        let Ok(path) = sandbox.path(&args.path) else { return Reconciled::NotDone };
        let places = foreseen.and_then(|noted| noted.get("places")).and_then(Value::as_u64);
        let done = answer(places.and_then(|places| usize::try_from(places).ok()).unwrap_or(1));
        let edit = foreseen.and_then(|noted| noted.get("edit"));
        Edit::reconcile(sandbox.as_ref(), &path, edit, done).await
    }
}

fn answer(places: usize) -> ToolOutput {
    match places {
        0 | 1 => "OK".into(),
        count => format!("OK: replaced {count} occurrences").into(),
    }
}

/// The new text, and in how many places it differs.
fn replace(path: &VPath, content: &[u8], args: &StrReplaceArgs) -> Result<(String, usize), ToolError> {
    let text = std::str::from_utf8(content).map_err(|_| {
        failed(format!("`{path}` is not UTF-8 text and was not changed; edit it with a program in bash"))
    })?;
    let (old, new) = with_the_line_ends_of(text, &args.old_str, &args.new_str);
    let places: Vec<usize> = text.match_indices(&*old).map(|(place, _)| place).collect();
    match places.len() {
        0 => Err(failed(format!(
            "old_str was not found in `{path}`, and nothing was changed. {}",
            hint(text, &args.old_str)
        ))),
        1 => Ok((text.replacen(&*old, &new, 1), 1)),
        count if args.replace_all.0 => Ok((text.replace(&*old, &new), count)),
        count => Err(failed(format!(
            "old_str occurs {count} times in `{path}`, at lines {}, and nothing was changed; include more \
             of the text around the place you mean, or set replace_all to true",
            line_numbers(text, &places)
        ))),
    }
}

/// A model neither sees nor writes the other half of a Windows line end: where only that is missing, it is meant.
fn with_the_line_ends_of<'a>(text: &str, old: &'a str, new: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    if text.contains(old) || old.contains('\r') || !old.contains('\n') {
        // A single line is found in any file; what replaces it must not bring other line ends in.
        let only_windows = !text.is_empty() && text.matches('\n').count() == text.matches("\r\n").count();
        let mends = !old.contains('\n') && new.contains('\n') && !new.contains('\r') && text.contains("\r\n");
        let new = if mends && only_windows { new.replace('\n', "\r\n").into() } else { Cow::Borrowed(new) };
        return (Cow::Borrowed(old), new);
    }
    let windows = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let changed = windows(old);
    if text.contains(&changed) {
        (changed.into(), windows(new).into())
    } else {
        (Cow::Borrowed(old), Cow::Borrowed(new))
    }
}

fn line_numbers(text: &str, places: &[usize]) -> String {
    const SHOWN: usize = 20;
    let shown = places.iter().take(SHOWN).map(|place| line_at(text, *place).to_string());
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if places.len() > SHOWN {
        list.push_str(", …");
    }
    list
}

fn line_at(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count()
}

/// Why the text is probably not found.
fn hint(text: &str, old: &str) -> String {
    if text.is_empty() {
        return "The file is empty; use write_file".to_owned();
    }
    if let Some(line) = line_without_spaces(text, old) {
        let ends = if text.contains("\r\n") && !old.contains("\r\n") {
            " (the file has Windows line ends)"
        } else {
            ""
        };
        return format!(
            "The same text with different whitespace is at line {line}{ends}; read the file from there and \
             copy it exactly"
        );
    }
    let Some(first) = old.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "It is only whitespace; include text around it".to_owned();
    };
    if let Some(place) = text.find(first) {
        let line = line_at(text, place);
        return format!(
            "Its first line is at line {line}, but what follows differs; read the file from there and copy \
             it exactly"
        );
    }
    match nearest_line(text, first) {
        Some((line, found)) => {
            format!(
                "The nearest line is {line}: `{}`; read the file there and copy it exactly",
                cut::first_chars(found, 120)
            )
        }
        None => "Nothing like it is there; read the file, and check that it is the one you mean".to_owned(),
    }
}

/// The line at which the texts agree once all whitespace is taken out of both.
fn line_without_spaces(text: &str, old: &str) -> Option<usize> {
    let solid = |text: &str| text.split_whitespace().collect::<String>();
    let wanted = solid(old);
    if wanted.is_empty() {
        return None;
    }
    let mut all = String::with_capacity(text.len());
    let mut ends = Vec::new();
    for line in text.lines() {
        line.split_whitespace().for_each(|word| all.push_str(word));
        ends.push(all.len());
    }
    let place = all.find(&wanted)?;
    Some(1 + ends.partition_point(|end| *end <= place))
}

/// The line most like `wanted`, if one is more alike than not. Not for huge files: this looks at every pair of letters.
fn nearest_line<'a>(text: &'a str, wanted: &str) -> Option<(usize, &'a str)> {
    const MAX_SEARCHED: usize = 1 << 20;
    if text.len() > MAX_SEARCHED {
        return None;
    }
    let pairs = pairs(wanted);
    let rated = text
        .lines()
        .map(str::trim)
        .enumerate()
        .map(|(index, line)| (likeness(&pairs, line), index + 1, line));
    // The first of equals: `max_by` would take the last.
    let best = rated.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.filter(|(likeness, ..)| *likeness > 0.5).map(|(_, line, found)| (line, found))
}

type Pairs = HashMap<(char, char), usize>;

fn pairs(text: &str) -> Pairs {
    let mut pairs = Pairs::new();
    for pair in text.chars().zip(text.chars().skip(1)) {
        *pairs.entry(pair).or_default() += 1;
    }
    pairs
}

/// Dice's coefficient over pairs of letters: 1 for the same, 0 for nothing in common.
fn likeness(wanted: &Pairs, line: &str) -> f64 {
    let found = pairs(line);
    let total = wanted.values().sum::<usize>() + found.values().sum::<usize>();
    if total == 0 {
        return 0.0;
    }
    let common = wanted.iter().map(|(pair, count)| *count.min(found.get(pair).unwrap_or(&0))).sum::<usize>();
    2.0 * common as f64 / total as f64
}

#[cfg(test)]
#[path = "str_replace_tests.rs"]
mod tests;
