//! Every key a configuration may hold: its type, its default, what it means.
//!
//! Invariant: the checks, `explain` and the reference page read this one list; a key that is not in it does not exist.

mod keys;

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use hart_models::config::ENTRY_KEYS;

pub(crate) use keys::DEERFLOW_MODEL_KEYS;

/// One key, named by its pattern (`models[].base_url`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Key {
    pub path: Cow<'static, str>,
    pub kind: Kind,
    /// As it would be written, or in words; empty when there is none.
    pub default: &'static str,
    pub doc: &'static str,
    /// The version of hart that first knew it.
    pub since: &'static str,
    pub used: bool,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    Bool,
    Int {
        min: i64,
        max: i64,
    },
    Number,
    /// A length of time: a number above zero.
    Seconds,
    Text,
    /// A list of texts.
    Texts,
    Choice(&'static [&'static str]),
    /// A map whose keys are in the catalogue.
    Section,
    /// A list of such maps.
    Sections,
    /// A map of names chosen by the user to text.
    TextMap,
    /// A map that is handed on as it is.
    Map,
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("a boolean (true or false)"),
            Self::Int { min: i64::MIN, .. } => f.write_str("an integer"),
            Self::Int { min, max } if *max >= i64::from(u32::MAX) => write!(f, "an integer, at least {min}"),
            Self::Int { min, max } => write!(f, "an integer from {min} to {max}"),
            Self::Number => f.write_str("a number"),
            Self::Seconds => f.write_str("a number of seconds above zero"),
            Self::Text => f.write_str("a string"),
            Self::Texts => f.write_str("a list of strings"),
            Self::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
            Self::Section | Self::Map => f.write_str("a map"),
            Self::Sections => f.write_str("a list of maps"),
            Self::TextMap => f.write_str("a map of names to strings"),
            Self::Any => f.write_str("any value"),
        }
    }
}

/// All keys, in the order of the reference page.
pub fn catalogue() -> &'static [Key] {
    static CATALOGUE: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let mut all = keys::own();
        let at = all.iter().position(|key| key.path == "models").map_or(0, |index| index + 1);
        all.splice(at..at, model_keys());
        all
    });
    &CATALOGUE
}

/// The key at a pattern.
pub(crate) fn find(pattern: &str) -> Option<&'static Key> {
    catalogue().iter().find(|key| key.path == pattern)
}

/// The names that may stand below a pattern (`""` for the top of the file).
pub(crate) fn children(pattern: &str) -> impl Iterator<Item = &'static Key> {
    catalogue().iter().filter(move |key| {
        let (parent, _) = split(&key.path);
        parent == pattern
    })
}

/// The last name of a pattern, and what stands before it.
pub(crate) fn split(pattern: &str) -> (&str, &str) {
    pattern.rsplit_once('.').unwrap_or(("", pattern))
}

/// `models` describes the keys of its entries itself; what it does not say is their type.
fn model_keys() -> impl Iterator<Item = Key> {
    let documented = ENTRY_KEYS.iter().flat_map(|entry| {
        std::iter::once(&entry.name).chain(entry.aliases).map(move |name| Key {
            path: format!("models[].{name}").into(),
            kind: keys::model_kind(entry.name),
            default: entry.default,
            doc: entry.doc,
            since: "0.1",
            used: true,
        })
    });
    let foreign = DEERFLOW_MODEL_KEYS.iter().map(|name| Key {
        path: format!("models[].{name}").into(),
        kind: Kind::Any,
        default: "",
        doc: "An option of LangChain's client, without meaning here.",
        since: "0.1",
        used: false,
    });
    documented.chain(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_twice_and_none_without_words() {
        let mut paths: Vec<_> = catalogue().iter().map(|key| &key.path).collect();
        paths.sort();
        let all = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), all);
        assert!(catalogue().iter().all(|key| !key.doc.is_empty() && !key.since.is_empty()));
    }

    #[test]
    fn every_key_has_a_parent() {
        for key in catalogue() {
            let (parent, _) = split(&key.path);
            let parent = parent.trim_end_matches("[]");
            assert!(parent.is_empty() || find(parent).is_some(), "{}", key.path);
        }
    }

    #[test]
    fn models_keep_their_own_catalogue() {
        assert_eq!(find("models[].use").unwrap().kind, Kind::Text);
        assert!(matches!(find("models[].max_completion_tokens").unwrap().kind, Kind::Int { .. }));
        assert_eq!(find("models[].use_responses_api").unwrap().kind, Kind::Bool);
        assert!(!find("models[].output_version").unwrap().used);
    }
}
