//! The section `summarization`.
//!
//! Invariant: what was read can be acted on; sizes are positive, fractions are at most 1, every clause has a condition.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The keys are DeerFlow's. Unlike there it is on, and without a `trigger` it acts at 80 % of the model's window.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummarizationConfig {
    pub enabled: bool,
    /// The configured model that writes summaries; the one that answers, without it.
    pub model_name: Option<String>,
    /// When to compact. The window is watched in any case.
    pub trigger: Triggers,
    /// How much of the end of the conversation stays as it is: a tenth of the window, or six messages where the window
    /// is not known.
    pub keep: Option<Size>,
    /// How many tokens of the old part the summariser is shown; what fits into its window, without it.
    pub trim_tokens_to_summarize: Option<u64>,
    /// Instead of hart's own words. `{messages}` stands for the old part.
    pub summary_prompt: Option<String>,
    /// Arguments of old tool calls that are longer, in characters, are the first thing to be shortened.
    pub truncate_args_over: usize,
}

impl Default for SummarizationConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            model_name: None,
            trigger: Triggers::default(),
            keep: None,
            trim_tokens_to_summarize: None,
            summary_prompt: None,
            truncate_args_over: 2000,
        }
    }
}

/// Any of these. In the configuration one clause, or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Triggers(pub Vec<Clause>);

/// All of these. In the configuration `{type: tokens, value: 32000}`, or `{tokens: 32000, messages: 50}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Clause {
    pub tokens: Option<u64>,
    pub messages: Option<usize>,
    /// Of the model's window; never reached where that is not known.
    pub fraction: Option<f64>,
}

/// How long a part of a conversation is: `{type: messages, value: 20}`, or `{messages: 20}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", rename_all = "snake_case")]
pub enum Size {
    Messages(usize),
    Tokens(u64),
    /// Of the model's window.
    Fraction(f64),
}

impl TryFrom<Value> for Triggers {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Array(clauses) => {
                clauses.into_iter().map(Clause::try_from).collect::<Result<_, _>>().map(Self)
            }
            one => Ok(Self(vec![Clause::try_from(one)?])),
        }
    }
}

impl TryFrom<Value> for Clause {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let mut clause = Self::default();
        for size in sizes(value)? {
            match size {
                Size::Tokens(tokens) => clause.tokens = Some(tokens),
                Size::Messages(messages) => clause.messages = Some(messages),
                Size::Fraction(fraction) => clause.fraction = Some(fraction),
            }
        }
        Ok(clause)
    }
}

impl TryFrom<Value> for Size {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match sizes(value)?.as_slice() {
            [one] => Ok(*one),
            several => Err(format!("one size is needed, not {}", several.len())),
        }
    }
}

const FORMS: &str =
    "write {type: tokens, value: 32000}, or {tokens: 32000}; the types are tokens, messages and fraction";

fn sizes(value: Value) -> Result<Vec<Size>, String> {
    let Value::Object(mut map) = value else { return Err(format!("`{value}` is no size; {FORMS}")) };
    if let Some(kind) = map.shift_remove("type") {
        let value = map.shift_remove("value").unwrap_or_default();
        let kind = kind.as_str().ok_or_else(|| format!("`type` is no word; {FORMS}"))?;
        let size = size(kind, &value)?;
        return if map.is_empty() { Ok(vec![size]) } else { Err(unknown(&map)) };
    }
    if map.is_empty() {
        return Err(format!("an empty size; {FORMS}"));
    }
    map.iter().map(|(kind, value)| size(kind, value)).collect()
}

fn size(kind: &str, value: &Value) -> Result<Size, String> {
    let count = || value.as_u64().filter(|count| *count > 0);
    let size = match kind {
        "tokens" => count().map(Size::Tokens),
        "messages" => count().and_then(|count| usize::try_from(count).ok()).map(Size::Messages),
        "fraction" => {
            value.as_f64().filter(|fraction| *fraction > 0.0 && *fraction <= 1.0).map(Size::Fraction)
        }
        other => return Err(format!("`{other}` is no type of size; {FORMS}")),
    };
    size.ok_or_else(|| match kind {
        "fraction" => format!("a fraction is above 0 and at most 1, not {value}"),
        _ => format!("{kind} is a whole number above 0, not {value}"),
    })
}

fn unknown(map: &Map<String, Value>) -> String {
    let names: Vec<_> = map.keys().map(|name| format!("`{name}`")).collect();
    format!("{} cannot stand beside `type`; {FORMS}", names.join(", "))
}
