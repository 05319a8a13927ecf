//! What can be known of a model, and who says so.
//!
//! Invariant: every layer speaks in [`Facts`]; a fact that a layer leaves out is asked of the next.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Pricing;

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<T> {
    pub value: Option<T>,
    pub origin: Origin,
}

/// Who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The entry in the configuration.
    Operator,
    /// The protocol itself.
    Dialect(&'static str),
    /// `hart models probe`, on that day.
    Probe(String),
    /// An entry of the bundled list.
    Catalogue(String),
    /// What holds for all models of a provider.
    Provider(String),
    Unknown,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("configuration"),
            Self::Dialect(name) => f.write_str(name),
            Self::Probe(day) => write!(f, "probe of {day}"),
            Self::Catalogue(entry) => write!(f, "catalogue ({entry})"),
            Self::Provider(name) => write!(f, "provider {name}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl<T> Known<T> {
    pub fn unknown() -> Self {
        Self { value: None, origin: Origin::Unknown }
    }

    fn first<'a>(layers: &'a [(Origin, Facts)], fact: impl Fn(&'a Facts) -> Option<T>) -> Self {
        let said = layers.iter().find_map(|(origin, facts)| Some((origin, fact(facts)?)));
        match said {
            Some((origin, value)) => Self { value: Some(value), origin: origin.clone() },
            None => Self::unknown(),
        }
    }
}

impl Known<bool> {
    /// Known, and so.
    pub fn yes(&self) -> bool {
        self.value == Some(true)
    }

    /// Known, and not so.
    pub fn no(&self) -> bool {
        self.value == Some(false)
    }
}

/// Whether a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingMode {
    None,
    /// As asked.
    Optional,
    /// Whether asked or not.
    Always,
}

/// What the model may be told about the use of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Auto,
    None,
    Required,
    Named,
}

/// What is merged into a request to switch thinking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThinkingSwitch {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub on: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub off: Map<String, Value>,
}

macro_rules! facts {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// What one source says; what it does not know is left out.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Facts {
            $($(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+
        }

        /// What holds for a model, value by value with its origin.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Capabilities {
            $($(#[doc = $doc])+ pub $name: Known<$type>,)+
        }

        impl Capabilities {
            /// Takes each value from the first layer that has it.
            pub fn resolve(layers: &[(Origin, Facts)]) -> Self {
                Self { $($name: Known::first(layers, |facts| facts.$name.clone()),)+ }
            }

            /// Every value under its name, with its origin.
            pub fn rows(&self) -> Vec<(&'static str, Option<Value>, &Origin)> {
                vec![$((
                    stringify!($name),
                    self.$name.value.as_ref().and_then(|value| serde_json::to_value(value).ok()),
                    &self.$name.origin,
                ),)+]
            }
        }

        impl Facts {
            /// The names of all that can be known.
            pub const NAMES: &[&str] = &[$(stringify!($name),)+];
        }
    };
}

facts! {
    /// Tokens that fit into a conversation, the answer included.
    context_window: u32,
    /// Tokens of the longest answer.
    max_output: u32,
    /// Whether images are understood.
    vision: bool,
    /// Whether documents such as PDF are understood.
    files: bool,
    /// Whether it thinks before it answers.
    thinking: ThinkingMode,
    /// The words for reasoning effort that are understood; empty: none is.
    effort: Vec<String>,
    /// Whether thinking can be limited to a number of tokens.
    budget: bool,
    /// What switches thinking on and off.
    thinking_switch: ThinkingSwitch,
    /// Whether the model is shown its earlier reasoning.
    send_reasoning: bool,
    /// What it may be told about the use of tools.
    tool_choice: Vec<Choice>,
    /// Whether several tools can be called at once.
    parallel_calls: bool,
    /// Whether a second system message is refused.
    single_system_message: bool,
    /// Whether schemas can be enforced to the letter.
    strict_schemas: bool,
    /// Whether an answer can be held to a JSON schema.
    structured_output: bool,
    /// Whether temperature and the other settings of sampling are taken.
    temperature: bool,
    /// Whether texts that end the answer are taken.
    stop: bool,
    /// Whether the model may write its tool calls as text.
    text_tool_calls: bool,
    /// Per million tokens.
    price: Pricing,
}

impl Facts {
    /// Only what is the model's own, whoever serves it and however it is asked.
    pub(super) fn of_the_model(&self) -> Self {
        Self {
            context_window: self.context_window,
            max_output: self.max_output,
            vision: self.vision,
            files: self.files,
            thinking: self.thinking,
            ..Self::default()
        }
    }
}

impl Capabilities {
    /// Known to think, when asked or always.
    pub fn thinks(&self) -> bool {
        matches!(self.thinking.value, Some(ThinkingMode::Optional | ThinkingMode::Always))
    }

    /// Whether the model takes that choice, as far as is known.
    pub(crate) fn takes(&self, choice: Choice) -> bool {
        self.tool_choice.value.as_ref().is_none_or(|taken| taken.contains(&choice))
    }
}
