//! A section of the tree into the settings struct of the part it belongs to.
//!
//! Invariant: whatever the struct refuses becomes a problem at the place of the value that was refused, and the part
//! then has its defaults.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::nearest::nearest;
use super::node::{Data, Entry, Mark, Node, Path};
use super::problem::Findings;

/// The settings at `name`, where every key may be left out: a struct with `#[serde(default, deny_unknown_fields)]`.
/// Wiring another middleware is a row per key in the catalogue and
/// `let loops = section::<LoopDetectionConfig>(&tree, "loop_detection", findings);`.
pub(super) fn section<T: DeserializeOwned + Default>(tree: &Node, name: &str, findings: &mut Findings) -> T {
    checked(tree, name, findings, |_: &T| Ok(()))
}

/// As [`section`], for settings that know more about themselves than their types: `validate` says what cannot work,
/// and which key it is about.
pub(super) fn checked<T: DeserializeOwned + Default>(
    tree: &Node,
    name: &str,
    findings: &mut Findings,
    validate: impl FnOnce(&T) -> Result<(), Invalid>,
) -> T {
    all_checked(tree, name, findings, |settings| validate(settings).err().into_iter().collect())
}

/// As [`checked`], for settings of which more than one may be wrong at once.
pub(super) fn all_checked<T: DeserializeOwned + Default>(
    tree: &Node,
    name: &str,
    findings: &mut Findings,
    validate: impl FnOnce(&T) -> Vec<Invalid>,
) -> T {
    let Some(node) = tree.get(name).filter(|_| !findings.broken.contains(name)) else { return T::default() };
    let path = Path::default().key(name);
    let refused = refused::<T>(node);
    if !refused.is_empty() {
        for (key, refusal) in refused {
            let path = key.map_or_else(|| path.clone(), |key| path.key(&key));
            refusal.report(&path, findings);
        }
        return T::default();
    }
    let settings = T::deserialize(node).unwrap_or_default();
    for Invalid { key, what, help } in validate(&settings) {
        let mark = node.get(key).unwrap_or(node).mark.clone();
        findings.problem(&mark, format!("{name}: {what}"), help.unwrap_or_else(|| explain(&path)));
    }
    settings
}

/// As [`section`], for settings without a switch of their own. `None` where `enabled` is false; where it is not written,
/// the part is `on` or not.
pub(super) fn switched<T: DeserializeOwned + Default>(
    tree: &Node,
    name: &str,
    on: bool,
    findings: &mut Findings,
) -> Option<T> {
    let Some(mut node) = tree.get(name).cloned() else { return on.then(T::default) };
    let enabled = match node.take("enabled").map(|enabled| enabled.data) {
        Some(Data::Scalar(Value::Bool(enabled))) => enabled,
        _ => on,
    };
    let mark = node.mark.clone();
    let entry = Entry { key: name.to_owned(), key_mark: mark.clone(), value: node };
    let settings = section(&Node { data: Data::Map(vec![entry]), mark }, name, findings);
    enabled.then_some(settings)
}

/// What a part says against settings of the right shape.
pub(super) struct Invalid {
    pub(super) key: &'static str,
    pub(super) what: String,
    pub(super) help: Option<String>,
}

/// Each key is tried alone, so that one mistake does not hide the next.
fn refused<T: DeserializeOwned>(section: &Node) -> Vec<(Option<String>, Refusal)> {
    let Data::Map(entries) = &section.data else {
        return T::deserialize(section)
            .err()
            .map(|refusal| (None, refusal.at(&section.mark)))
            .into_iter()
            .collect();
    };
    let alone = |entry: &Entry| {
        // What nobody noted a place for is about the value.
        let only = Node { data: Data::Map(vec![entry.clone()]), mark: entry.value.mark.clone() };
        let refusal = T::deserialize(&only).err()?;
        Some((Some(entry.key.clone()), refusal.at(&entry.value.mark)))
    };
    let found: Vec<_> = entries.iter().filter_map(alone).collect();
    if found.is_empty() {
        // Nothing wrong with any of them, but perhaps with all of them together.
        return T::deserialize(section)
            .err()
            .map(|refusal| (None, refusal.at(&section.mark)))
            .into_iter()
            .collect();
    }
    found
}

fn explain(path: &Path) -> String {
    format!("see `hart config explain {path}`")
}

/// Why a value was not taken, and where it stands.
#[derive(Debug)]
pub(crate) struct Refusal {
    message: String,
    /// The key that was not known, and those that would have been.
    unknown: Option<(String, &'static [&'static str])>,
    mark: Option<Mark>,
}

impl Refusal {
    /// The innermost place stands: it was noted first.
    fn at(mut self, mark: &Mark) -> Self {
        self.mark.get_or_insert_with(|| mark.clone());
        self
    }

    /// An unknown key stands where its name does.
    fn at_key(self, entries: &[Entry]) -> Self {
        let unknown = self.unknown.as_ref().map(|(key, _)| key);
        match entries.iter().find(|entry| Some(&entry.key) == unknown) {
            Some(entry) => self.at(&entry.key_mark),
            None => self,
        }
    }

    fn report(self, path: &Path, findings: &mut Findings) {
        let mark = self.mark.unwrap_or_default();
        let Some((key, known)) = self.unknown else {
            return findings.problem(&mark, format!("{path}: {}", self.message), explain(path));
        };
        let named = if path.last_key() == Some(&key) { path.to_string() } else { format!("{path}.{key}") };
        match nearest(&key, known.iter().copied()) {
            Some(near) => findings.problem(
                &mark,
                format!("{named}: unknown key; did you mean `{near}`?"),
                format!("write `{near}`, or remove the key"),
            ),
            None => {
                let help = format!("remove it; keys here: {}", known.join(", "));
                findings.problem(&mark, format!("{named}: unknown key"), help);
            }
        }
    }
}

impl de::Error for Refusal {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self { message: message.to_string(), unknown: None, mark: None }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self { unknown: Some((field.to_owned(), expected)), ..Self::custom("unknown key") }
    }

    /// The value itself may be a secret, and is not repeated.
    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match unexpected {
            de::Unexpected::Bool(_) => "a boolean",
            de::Unexpected::Unsigned(_) | de::Unexpected::Signed(_) => "an integer",
            de::Unexpected::Float(_) => "a number with a fraction",
            de::Unexpected::Str(_) => "a string",
            de::Unexpected::Seq => "a list",
            de::Unexpected::Map => "a map",
            _ => "nothing",
        };
        Self::custom(format_args!("expected {}, found {found}", in_words(expected)))
    }
}

fn in_words(expected: &dyn de::Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "f32" | "f64" => "a number".to_owned(),
        "i32" | "i64" | "isize" => "an integer".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "an integer, at least 0".to_owned(),
        _ => expected,
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let read = match &self.data {
            Data::Scalar(scalar) => read_scalar(scalar, visitor),
            Data::List(items) => SeqDeserializer::new(items.iter()).deserialize_any(visitor),
            Data::Map(entries) => {
                map(entries).deserialize_any(visitor).map_err(|refusal| refusal.at_key(entries))
            }
        };
        read.map_err(|refusal| refusal.at(&self.mark))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let read = match &self.data {
            Data::Map(entries) => visitor.visit_enum(MapAccessDeserializer::new(map(entries))),
            _ => match self.as_str() {
                Some(text) => visitor.visit_enum(StrDeserializer::new(text)),
                None => Err(de::Error::custom(format_args!("expected a name, found {}", self.kind_name()))),
            },
        };
        read.map_err(|refusal| refusal.at(&self.mark))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

fn read_scalar<'de, V: Visitor<'de>>(scalar: &'de Value, visitor: V) -> Result<V::Value, Refusal> {
    match scalar {
        Value::Bool(value) => visitor.visit_bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), ..) => visitor.visit_u64(whole),
            (_, Some(whole), _) => visitor.visit_i64(whole),
            (.., Some(fraction)) => visitor.visit_f64(fraction),
            _ => Err(de::Error::custom("this number cannot be read")),
        },
        Value::String(text) => visitor.visit_borrowed_str(text),
        _ => visitor.visit_unit(),
    }
}

type Pairs<'de> = Box<dyn Iterator<Item = (&'de str, &'de Node)> + 'de>;

fn map(entries: &[Entry]) -> MapDeserializer<'_, Pairs<'_>, Refusal> {
    MapDeserializer::new(Box::new(entries.iter().map(|entry| (entry.key.as_str(), &entry.value))))
}

impl<'de> IntoDeserializer<'de, Refusal> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
#[path = "section_tests.rs"]
mod tests;
