//! Argument types that forgive what models get wrong: numbers and lists in quotes, `null` for "not given".
//!
//! Invariant: the schema shows the strict form; only the reading is lenient, and it never guesses a meaning.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Why you make this call, in a few words the user can read. ALWAYS give this argument, and give it FIRST.
//
// Clients read it from the call, so nothing here looks at it. The schema requires it, but a call without it is served.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Purpose(String);

impl<'de> Deserialize<'de> for Purpose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self(text),
            Value::Null => Self::default(),
            other => Self(other.to_string()),
        })
    }
}

/// `true` or `false`, also in quotes or as 1 and 0.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let flag = match &value {
            Value::Null => Some(false),
            Value::Bool(flag) => Some(*flag),
            Value::Number(number) => match number.as_f64() {
                Some(1.0) => Some(true),
                Some(0.0) => Some(false),
                _ => None,
            },
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" => Some(true),
                "false" | "0" | "" => Some(false),
                _ => None,
            },
            Value::Array(_) | Value::Object(_) => None,
        };
        flag.map(Self).ok_or_else(|| D::Error::custom(format!("expected true or false, not {value}")))
    }
}

/// A number of things, also in quotes or written as `3.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Count(pub(crate) usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let count = match &value {
            Value::Number(number) => whole(&number.to_string()),
            Value::String(text) => whole(text.trim()),
            _ => None,
        };
        count
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("expected a whole number from 0 up, not {value}")))
    }
}

fn whole(text: &str) -> Option<usize> {
    let digits = match text.split_once('.') {
        Some((digits, fraction)) if fraction.bytes().all(|byte| byte == b'0') => digits,
        Some(_) => return None,
        None => text,
    };
    digits.parse().ok()
}

/// How many results at most. Beyond the bounds the nearest bound counts: a model that asks for too much gets much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capped<const DEFAULT: usize, const MAX: usize>(usize);

impl<const DEFAULT: usize, const MAX: usize> Capped<DEFAULT, MAX> {
    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl<const DEFAULT: usize, const MAX: usize> Default for Capped<DEFAULT, MAX> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<'de, const DEFAULT: usize, const MAX: usize> Deserialize<'de> for Capped<DEFAULT, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = Option::<Count>::deserialize(deserializer)?;
        Ok(count.map_or_else(Self::default, |Count(count)| Self(count.clamp(1, MAX))))
    }
}

impl<const DEFAULT: usize, const MAX: usize> Serialize for Capped<DEFAULT, MAX> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<const DEFAULT: usize, const MAX: usize> JsonSchema for Capped<DEFAULT, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Capped{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": MAX})
    }
}

/// A list, also as JSON in quotes, or a single item without its brackets.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = match Value::deserialize(deserializer)? {
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Array(items)) => items,
                _ => vec![Value::String(text)],
            },
            single => vec![single],
        };
        let items = items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
        items.map(Self).map_err(D::Error::custom)
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn schema_name() -> Cow<'static, str> {
        Vec::<T>::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}

#[cfg(test)]
#[path = "lenient_tests.rs"]
mod tests;
