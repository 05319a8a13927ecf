//! How each generation of Gemini is made to think, or not to.
//!
//! Invariant: a budget and a level are never sent together; the API refuses that.

use hart_kernel::{Effort, Reasoning};
use serde_json::{Map, Value};

use crate::thinking;

/// What a generation of models understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Before 2.5, and models of another name: no thinking at all.
    Plain,
    /// 2.5 takes a number of tokens within limits of its own, and the largest cannot do without.
    Budget { least: u32, most: u32, off: u32 },
    /// 3 and newer take a level; `off` is the least they can do.
    Level { off: &'static str, medium: &'static str },
}

impl Family {
    pub(super) fn of(model: &str) -> Self {
        let Some((_, version)) = model.split_once("gemini-") else { return Self::Plain };
        let numbers: Vec<u32> =
            version.split(['-', '.']).map_while(|part| part.parse().ok()).take(2).collect();
        let is = |word: &str| version.split('-').any(|part| part == word);
        let pro = is("pro");
        match numbers.as_slice() {
            [2, 5] if pro => Self::Budget { least: 128, most: 32_768, off: 128 },
            [2, 5] if is("lite") => Self::Budget { least: 512, most: 24_576, off: 0 },
            [2, 5] => Self::Budget { least: 1, most: 24_576, off: 0 },
            [0..=2, ..] => Self::Plain,
            // The first of the third generation knew only two levels.
            [3] if pro => Self::Level { off: "low", medium: "high" },
            _ if pro => Self::Level { off: "low", medium: "medium" },
            // Without a number it is an alias such as `gemini-flash-latest`.
            _ => Self::Level { off: "minimal", medium: "medium" },
        }
    }

    /// Whether calls without a signature are refused.
    pub(super) fn signs_calls(self) -> bool {
        matches!(self, Self::Level { .. })
    }

    /// Completes `thinkingConfig`; what the user has set in it stays.
    pub(super) fn apply(self, reasoning: Reasoning, config: &mut Map<String, Value>) {
        if reasoning == Reasoning::Default || self == Self::Plain {
            return;
        }
        if reasoning != Reasoning::Off {
            config.entry("includeThoughts").or_insert(true.into());
        }
        if config.contains_key("thinkingBudget") || config.contains_key("thinkingLevel") {
            return;
        }
        let effort = thinking::effort(reasoning);
        let (key, value) = match self {
            Self::Plain => return,
            Self::Budget { least, most, off } => {
                let wanted = match (reasoning, effort) {
                    (Reasoning::Budget(tokens), _) => tokens.clamp(least, most),
                    (_, None) => off,
                    (_, Some(Effort::Low)) => 1024,
                    (_, Some(Effort::Medium)) => 8192,
                    (_, Some(Effort::High)) => 24_576,
                };
                ("thinkingBudget", Value::from(wanted))
            }
            Self::Level { off, medium } => {
                let level = match effort {
                    None => off,
                    Some(Effort::Medium) => medium,
                    Some(effort) => thinking::word(effort),
                };
                ("thinkingLevel", Value::from(level))
            }
        };
        config.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(model: &str, reasoning: Reasoning) -> Value {
        let mut config = Map::new();
        Family::of(model).apply(reasoning, &mut config);
        Value::Object(config)
    }

    #[test]
    fn budgets_before_the_third_generation_and_levels_from_it_on() {
        let high = Reasoning::On(Effort::High);
        let medium = Reasoning::On(Effort::Medium);
        let on = |key: &str, value: Value| json!({"includeThoughts": true, key: value});
        let cases = [
            ("gemini-2.5-flash", high, on("thinkingBudget", json!(24_576))),
            ("gemini-2.5-flash", Reasoning::Off, json!({"thinkingBudget": 0})),
            ("gemini-2.5-flash-lite", Reasoning::Budget(3), on("thinkingBudget", json!(512))),
            ("models/gemini-2.5-pro", Reasoning::Off, json!({"thinkingBudget": 128})),
            ("gemini-2.5-pro", Reasoning::Budget(99_999), on("thinkingBudget", json!(32_768))),
            ("gemini-3-pro-preview", medium, on("thinkingLevel", json!("high"))),
            ("gemini-3-pro-preview", Reasoning::Off, json!({"thinkingLevel": "low"})),
            ("gemini-3.1-pro", medium, on("thinkingLevel", json!("medium"))),
            ("gemini-3.6-flash", Reasoning::Budget(2000), on("thinkingLevel", json!("low"))),
            ("gemini-3-flash-preview", Reasoning::Off, json!({"thinkingLevel": "minimal"})),
            ("gemini-flash-latest", high, on("thinkingLevel", json!("high"))),
            ("gemini-3.6-flash", Reasoning::Default, json!({})),
            ("gemini-2.0-flash", high, json!({})),
            ("gemma-3-27b-it", high, json!({})),
        ];
        for (model, reasoning, want) in cases {
            assert_eq!(config(model, reasoning), want, "{model} {reasoning:?}");
        }
    }

    #[test]
    fn what_the_user_set_stays() {
        let mut config = Map::from_iter([("thinkingBudget".to_owned(), json!(7))]);
        Family::of("gemini-3-flash").apply(Reasoning::On(Effort::Low), &mut config);
        assert_eq!(Value::Object(config), json!({"thinkingBudget": 7, "includeThoughts": true}));
    }
}
