//! How OpenAI's models are told to reason, more, less or not at all.
//!
//! Invariant: a model that is not known to reason, by its name or by its configuration, is never told anything about it.

use hart_kernel::Reasoning;
use serde_json::{Map, Value, json};

use crate::config::ModelConfig;
use crate::thinking::{self, Thinking};

/// How one model reasons.
#[derive(Debug)]
pub(super) struct Reasons {
    thinking: Thinking,
    /// It reasons, so that there is something encrypted to be had.
    pub(super) possible: bool,
    family: Option<Family>,
}

/// What the name of a model of OpenAI's tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Family {
    /// The effort that comes nearest to none, where the model takes one at all.
    least: Option<&'static str>,
    /// It takes no sampling parameters, however little it reasons.
    always: bool,
    /// It is served by others too, under their rules.
    open: bool,
}

impl Reasons {
    pub(super) fn new(config: &ModelConfig) -> Self {
        let family = family(&config.model);
        Self {
            thinking: Thinking::new(config),
            possible: family.is_some() || config.supports_thinking || config.supports_reasoning_effort,
            family,
        }
    }

    /// Says in `body` what was asked for, the configured options on top.
    pub(super) fn apply(&self, asked: Reasoning, body: &mut Map<String, Value>) {
        lift(body, None);
        let word = thinking::effort(asked).map(thinking::word).filter(|_| self.possible);
        match (asked, word) {
            (_, Some(word)) => {
                set(body, "effort", word.into());
                if reasoning(body).is_some_and(|reasoning| !reasoning.contains_key("summary")) {
                    set(body, "summary", "auto".into());
                }
            }
            (Reasoning::Off, _) => {
                if let Some(least) = self.family.and_then(|family| family.least) {
                    body.insert("reasoning".to_owned(), json!({"effort": least}));
                }
            }
            _ => {}
        }
        self.thinking.apply(asked, body);
        lift(body, word);
        if let Some(Value::Object(reasoning)) = body.get_mut("reasoning") {
            // The way to leave out a parameter that a server does not take: set it to null.
            reasoning.retain(|_, value| !value.is_null());
        }
        if reasoning(body).is_some_and(Map::is_empty) {
            body.shift_remove("reasoning");
        }
        let Some(family) = self.family.filter(|family| !family.open) else { return };
        let effort = reasoning(body).and_then(|reasoning| reasoning.get("effort"));
        if family.always || effort.is_some_and(|effort| effort != "none") {
            body.shift_remove("temperature");
            body.shift_remove("top_p");
        }
    }
}

/// Moves the word of chat completions to its place here, unless it only repeats what was `asked`.
fn lift(body: &mut Map<String, Value>, asked: Option<&str>) {
    match body.shift_remove("reasoning_effort") {
        Some(effort) if asked.is_none_or(|asked| effort != asked) => {
            set(body, "effort", effort);
        }
        _ => {}
    }
}

fn reasoning(body: &Map<String, Value>) -> Option<&Map<String, Value>> {
    body.get("reasoning").and_then(Value::as_object)
}

fn set(body: &mut Map<String, Value>, key: &str, value: Value) {
    match body.get_mut("reasoning") {
        Some(Value::Object(reasoning)) => {
            reasoning.insert(key.to_owned(), value);
        }
        _ => {
            body.insert("reasoning".to_owned(), json!({key: value}));
        }
    }
}

/// The reasoning models among OpenAI's.
fn family(model: &str) -> Option<Family> {
    let name = model.rsplit('/').next().unwrap_or(model).trim_start_matches("ft:");
    if name.starts_with("gpt-oss") {
        return Some(Family { least: Some("low"), always: false, open: true });
    }
    let older = Family { least: Some("low"), always: true, open: false };
    if name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(older);
    }
    if name.starts_with("codex") {
        return Some(older);
    }
    let version = name.strip_prefix("gpt-")?;
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    // A date in the place of a version is none.
    let (major, minor) =
        (numbers.next()??, numbers.next().flatten().filter(|minor| *minor < 100).unwrap_or(0));
    if major < 5 || (name.contains("-chat") && minor == 0) {
        return None;
    }
    let least = if name.contains("-pro") || name.contains("-chat") {
        None
    } else if name.contains("-codex") {
        Some("low")
    } else if (major, minor) == (5, 0) {
        Some("minimal")
    } else {
        Some("none")
    };
    Some(Family { least, always: (major, minor) == (5, 0), open: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_tell() {
        for (model, least) in [
            ("gpt-5", Some("minimal")),
            ("gpt-5-mini-2025-08-07", Some("minimal")),
            ("gpt-5-2025-08-07", Some("minimal")),
            ("gpt-5-codex", Some("low")),
            ("gpt-5.1", Some("none")),
            ("openai/gpt-5.6-terra", Some("none")),
            ("gpt-6", Some("none")),
            ("gpt-5-pro", None),
            ("gpt-5.1-chat-latest", None),
            ("o3", Some("low")),
            ("o4-mini", Some("low")),
            ("gpt-oss-120b", Some("low")),
        ] {
            assert_eq!(family(model).map(|family| family.least), Some(least), "{model}");
        }
        for model in
            ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "gpt-3.5-turbo", "omni", "mock-1", "gpt-"]
        {
            assert_eq!(family(model), None, "{model}");
        }
    }
}
