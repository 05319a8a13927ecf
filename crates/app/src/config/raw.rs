//! YAML text into a tree of marked values.
//!
//! Invariant: the work is bounded whatever the text: aliases, depth and size run into a budget, not into memory.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{Error as YamlError, MessageFormatter as _, Spanned, UserMessageFormatter};

use super::node::{Data, Entry, Mark, Node};
use super::problem::{Place, Problem};
use super::secret::quotable;

/// No configuration written by a person comes near; one made by a program should be refused early.
pub(crate) const MAX_BYTES: usize = 4 * 1024 * 1024;
const MAX_NODES: usize = 50_000;
/// A level costs the parser up to 60 kB of stack without optimisation, and a worker thread has 2 MB of it.
const MAX_DEPTH: usize = 16;

/// The map of sections, empty when the text holds no document.
pub(crate) fn parse(text: &str, file: &str) -> Result<Node, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        let place = Place::WholeFile { file: file.to_owned() };
        return Err(Problem::new("the file is larger than 4 MiB", place)
            .help("a configuration is a few hundred lines; is this the right file?"));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES, max_depth: MAX_DEPTH },
    };
    let node: Node =
        serde_saphyr::from_str_with_options(text, options).map_err(|e| syntax(&e, text, file))?;
    match node.data {
        Data::Map(_) => Ok(node),
        Data::Scalar(Value::Null) => Ok(Node::empty_map()),
        Data::Scalar(_) | Data::List(_) => Err(Problem::new(
            format!("the file must be a map of sections, not {}", node.kind_name()),
            Place::WholeFile { file: file.to_owned() },
        )
        .help("start with a section name and a colon, for example `models:`")),
    }
}

fn syntax(error: &YamlError, text: &str, file: &str) -> Problem {
    let (message, help) = describe(error);
    let Some(location) = error.location() else {
        return Problem::new(message, Place::WholeFile { file: file.to_owned() }).help(help);
    };
    let place = Place::File { file: file.to_owned(), line: location.line(), column: location.column() };
    let mut problem = Problem::new(message, place).help(help);
    problem.excerpt = excerpt(text, location.line(), location.column());
    problem
}

/// What is wrong and what to do. Values of the file are never part of it.
fn describe(error: &YamlError) -> (String, &'static str) {
    let mut error = error;
    while let YamlError::AliasError { error: inner, .. } | YamlError::WithSnippet { error: inner, .. } = error
    {
        error = inner;
    }
    match error {
        YamlError::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("?").escape_debug().to_string();
            (format!("the key `{key}` is here for the second time"), "keep one of the two")
        }
        YamlError::MultipleDocuments { .. } => {
            ("a second document begins here".to_owned(), "remove the line `---` between the two")
        }
        YamlError::NonFiniteFloat { .. } => {
            ("this number is not finite".to_owned(), "write a finite number, or put text in quotes")
        }
        YamlError::UnknownAnchor { .. } => {
            let message = "this alias names an anchor that does not exist".to_owned();
            (message, "define `&name` above, or put the value in quotes if the `*` is part of it")
        }
        YamlError::Budget { .. }
        | YamlError::AliasReplayLimitExceeded { .. }
        | YamlError::AliasExpansionLimitExceeded { .. }
        | YamlError::AliasReplayStackDepthExceeded { .. }
        | YamlError::AliasReplayCounterOverflow { .. } => {
            let message = "the file expands to more than a configuration can be".to_owned();
            (message, "remove the aliases or the nesting that multiply it")
        }
        YamlError::NullIntoString { .. } => (
            "this key is empty".to_owned(),
            "write a name before the colon, or quote it if it is `~` or `null`",
        ),
        other => {
            let message = UserMessageFormatter.format_message(other).escape_debug().to_string();
            let message = message.replace("\\'", "'").replace("\\\"", "\"");
            let help = match message.as_str() {
                text if text.contains("mapping values") || text.contains("':'") => {
                    "check the indentation; a value that contains `: ` needs quotes"
                }
                text if text.contains("unexpected character") => "put the value in quotes",
                text if text.contains("tab") => "indent with spaces",
                text if text.contains("quoted") => "check the quotes here and on the lines above",
                _ => "check the indentation and the quotes here and on the line above",
            };
            (message, help)
        }
    }
}

/// The line and a caret under the column; long lines are cut around it.
fn excerpt(text: &str, line: u64, column: u64) -> Option<String> {
    const WIDTH: usize = 100;
    let lines: Vec<&str> = text.lines().collect();
    let index = usize::try_from(line.checked_sub(1)?).ok()?;
    lines.get(index)?;
    let before = usize::try_from(column.saturating_sub(1)).ok()?;
    let skipped = before.saturating_sub(WIDTH / 2);
    // Tabs and control characters would move the caret, or the terminal.
    let shown: String = quotable(&lines, index)
        .chars()
        .skip(skipped)
        .take(WIDTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat(before - skipped);
    Some(format!("{margin} |\n{number} | {}\n{margin} | {caret}^", shown.trim_end()))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Data>::deserialize(deserializer)?;
        Ok(Self { data: value, mark: Mark::at(referenced.line(), referenced.column()) })
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Scalar(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Scalar(Value::from(value)))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Data, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("this number is not finite"))?;
        Ok(Data::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Data, E> {
        Ok(Data::Scalar(Value::from(value)))
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Data, E> {
        Ok(Data::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        Data::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some((key, value)) = access.next_entry::<Spanned<String>, Node>()? {
            // The parser refuses duplicates itself; two spellings of one key (`1`, `"1"`) reach this line.
            if !seen.insert(key.value.clone()) {
                return Err(A::Error::custom("a key of this map is here for the second time"));
            }
            let key_mark = Mark::at(key.referenced.line(), key.referenced.column());
            entries.push(Entry { key: key.value, key_mark, value });
        }
        Ok(Data::Map(entries))
    }
}

#[cfg(test)]
#[path = "raw_tests.rs"]
mod tests;
