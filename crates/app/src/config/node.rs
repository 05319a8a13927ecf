//! The tree between the file and the types: values that remember where they stand.
//!
//! Invariant: every value carries its [`Mark`], so a problem found later can still point at the line it came from.

use std::fmt;

use serde_json::Value;

/// Where in the file: both count from one, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pos {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Where a value came from: a place in the file (`pos`) or an override (no `pos`), and the variable it named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) pos: Option<Pos>,
    pub(crate) var: Option<String>,
}

impl Mark {
    pub(crate) fn at(line: u64, column: u64) -> Self {
        Self { pos: Some(Pos { line, column }), var: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) data: Data,
    pub(crate) mark: Mark,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    /// Null, a boolean, a number or a string; never a list or a map.
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_mark: Mark,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn empty_map() -> Self {
        Self { data: Data::Map(Vec::new()), mark: Mark::default() }
    }

    /// A tree without places: what an override is.
    pub(crate) fn from_json(value: Value) -> Self {
        let data = match value {
            Value::Array(items) => Data::List(items.into_iter().map(Self::from_json).collect()),
            Value::Object(map) => Data::Map(
                map.into_iter()
                    .map(|(key, value)| Entry {
                        key,
                        key_mark: Mark::default(),
                        value: Self::from_json(value),
                    })
                    .collect(),
            ),
            scalar => Data::Scalar(scalar),
        };
        Self { data, mark: Mark::default() }
    }

    pub(crate) fn to_json(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Data::Map(entries) => {
                Value::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.data, Data::Scalar(Value::Null))
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar(Value::String(text)) => Some(text),
            Data::Scalar(_) | Data::List(_) | Data::Map(_) => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            Data::Scalar(_) | Data::List(_) => None,
        }
    }

    /// Takes the entry out of a map.
    pub(crate) fn take(&mut self, key: &str) -> Option<Self> {
        let Data::Map(entries) = &mut self.data else { return None };
        let index = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(index).value)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries: &[Entry] = match &self.data {
            Data::Map(entries) => entries,
            Data::Scalar(_) | Data::List(_) => &[],
        };
        entries.iter().map(|entry| entry.key.as_str())
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            Data::Scalar(_) | Data::Map(_) => &[],
        }
    }

    pub(crate) fn find(&self, path: &Path) -> Option<&Self> {
        path.0.iter().try_fold(self, |node, step| match step {
            Step::Key(key) => node.get(key),
            Step::Index(index) => node.items().get(*index),
        })
    }

    /// What it is, in the words of an error message.
    pub(crate) fn kind_name(&self) -> &'static str {
        match &self.data {
            Data::Scalar(Value::Null) => "nothing",
            Data::Scalar(Value::Bool(_)) => "a boolean",
            Data::Scalar(Value::Number(number)) if number.is_f64() => "a number with a fraction",
            Data::Scalar(Value::Number(_)) => "an integer",
            Data::Scalar(_) => "a string",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }
}

/// A way through the tree, spelled `models[0].api_key`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(pub(crate) Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

impl Path {
    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The last key on the way: list positions have no name of their own.
    pub(crate) fn last_key(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
    }

    /// The part of the configuration that is converted as a whole: `models[0]`, `sandbox`.
    pub(crate) fn unit(&self) -> Self {
        let length = if matches!(self.0.get(1), Some(Step::Index(_))) { 2 } else { 1 };
        Self(self.0.iter().take(length).cloned().collect())
    }

    /// The spelling in the catalogue: `models[].api_key`.
    pub(crate) fn pattern(&self) -> String {
        let mut pattern = String::new();
        for step in &self.0 {
            match step {
                Step::Key(key) => {
                    if !pattern.is_empty() {
                        pattern.push('.');
                    }
                    pattern.push_str(key);
                }
                Step::Index(_) => pattern.push_str("[]"),
            }
        }
        pattern
    }

    /// Reads what [`Path`]'s `Display` writes; `None` when it is no path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, indexes) = part.split_once('[').map_or((part, None), |(key, rest)| (key, Some(rest)));
            if key.is_empty() {
                return None;
            }
            steps.push(Step::Key(key.to_owned()));
            for index in indexes.into_iter().flat_map(|rest| rest.split('[')) {
                steps.push(Step::Index(index.strip_suffix(']')?.parse().ok()?));
            }
        }
        Some(Self(steps))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => write!(f, "{}", key.escape_debug())?,
                Step::Key(key) => write!(f, ".{}", key.escape_debug())?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_written() {
        for text in ["models", "models[0].api_key", "sandbox.mounts[2].host_path", "a[1][2].b"] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
        for text in ["", ".", "a..b", "a[", "a[x]", "a[1", "[0]"] {
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }

    #[test]
    fn json_survives_the_tree() {
        let json = serde_json::json!({"a": [1, {"b": null}], "c": "x", "d": 1.5});
        assert_eq!(Node::from_json(json.clone()).to_json(), json);
    }

    #[test]
    fn a_pattern_forgets_positions() {
        assert_eq!(Path::parse("models[3].pricing.currency").unwrap().pattern(), "models[].pricing.currency");
    }
}
