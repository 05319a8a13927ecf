//! What is handed to a run and told to nobody.
//!
//! Invariant: what is written down or printed of it are names; who reads them back knows what there was, not what it was.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Secrets of one run, by the names that skills ask for them by.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

/// What was meant to be secrets and is not. It says nothing of what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSecrets;

impl fmt::Display for NotSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`secrets` must be an object of names and strings")
    }
}

impl std::error::Error for NotSecrets {}

impl Secrets {
    /// Takes `secrets` out of what a run was told; it is gone from there, whatever it was.
    pub fn taken_from(options: &mut Map<String, Value>) -> Result<Self, NotSecrets> {
        let pairs = match options.remove(KEY) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(pairs)) => pairs,
            Some(_) => return Err(NotSecrets),
        };
        let text = |(name, value)| match value {
            Value::String(value) => Ok((name, value)),
            _ => Err(NotSecrets),
        };
        pairs.into_iter().map(text).collect::<Result<_, _>>().map(Self)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether one of this name came with the run, also where its value is gone.
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// What was there before stays where both have a name.
    pub fn add(&mut self, other: Self) {
        for (name, value) in other.0 {
            self.0.entry(name).or_insert(value);
        }
    }
}

/// DeerFlow's name for them, in `context`.
const KEY: &str = "secrets";

impl Serialize for Secrets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.keys())
    }
}

impl<'de> Deserialize<'de> for Secrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(Self(names.into_iter().map(|name| (name, String::new())).collect()))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn they_are_taken_whatever_they_are_and_never_printed() {
        let mut options = json!({"secrets": {"API_KEY": "hush"}, "mode": "pro"}).as_object().unwrap().clone();
        let secrets = Secrets::taken_from(&mut options).unwrap();
        assert_eq!(json!(options), json!({"mode": "pro"}));
        assert_eq!(secrets.get("API_KEY"), Some("hush"));
        assert_eq!(format!("{secrets:?}"), "{\"API_KEY\"}");
        let kept = serde_json::to_value(&secrets).unwrap();
        assert_eq!(kept, json!(["API_KEY"]));
        let back: Secrets = serde_json::from_value(kept).unwrap();
        assert!(back.knows("API_KEY") && back.get("API_KEY").is_none() && back.values().next().is_none());
        for wrong in [json!({"secrets": "hush"}), json!({"secrets": {"A": 1}})] {
            let mut options = wrong.as_object().unwrap().clone();
            let error = Secrets::taken_from(&mut options).unwrap_err();
            assert!(options.is_empty() && !error.to_string().contains("hush"));
        }
    }
}
