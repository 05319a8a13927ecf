//! A setting that is decided by what is known of the provider, unless the user decides.
//!
//! Invariant: every spelling that YAML has for on and off is understood; anything else is an error that lists them.

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    #[default]
    Auto,
    On,
    Off,
}

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = Switch;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`auto`, `on` or `off`")
            }

            fn visit_bool<E>(self, on: bool) -> Result<Switch, E> {
                Ok(if on { Switch::On } else { Switch::Off })
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Switch, E> {
                match word.to_ascii_lowercase().as_str() {
                    "auto" => Ok(Switch::Auto),
                    "on" | "true" | "yes" => Ok(Switch::On),
                    "off" | "false" | "no" => Ok(Switch::Off),
                    _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
                }
            }
        }
        deserializer.deserialize_any(Word)
    }
}
