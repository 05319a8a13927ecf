//! What switching reasoning on or off adds to a request.
//!
//! Invariant: a model that has not said it can think is never asked to.

use hart_kernel::{Effort, Reasoning};
use serde_json::{Map, Value, json};

use crate::config::ModelConfig;
use crate::merge;

/// How one model is made to think, or not to.
#[derive(Clone, Debug)]
pub(crate) struct Thinking {
    pub(crate) supported: bool,
    /// The words for effort that the model knows.
    efforts: Vec<String>,
    enabled: Map<String, Value>,
    disabled: Map<String, Value>,
}

impl Thinking {
    pub(crate) fn new(config: &ModelConfig) -> Self {
        let disabled = if config.when_thinking_disabled.is_empty() {
            opposite(&config.when_thinking_enabled)
        } else {
            config.when_thinking_disabled.clone()
        };
        Self {
            supported: config.supports_thinking,
            efforts: config.capabilities.effort.value.clone().unwrap_or_default(),
            enabled: config.when_thinking_enabled.clone(),
            disabled,
        }
    }

    /// Merges the configured options and the effort onto the body.
    pub(crate) fn apply(&self, reasoning: Reasoning, body: &mut Map<String, Value>) {
        match reasoning {
            Reasoning::Default => {}
            Reasoning::Off => merge::options(body, &self.disabled),
            Reasoning::On(_) | Reasoning::Budget(_) => {
                if let Some(word) = effort(reasoning).and_then(|effort| self.nearest(effort)) {
                    body.insert("reasoning_effort".to_owned(), word.into());
                }
                if self.supported || !self.efforts.is_empty() {
                    merge::options(body, &self.enabled);
                }
            }
        }
    }
}

/// All words for effort there are, from the least.
const SCALE: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

impl Thinking {
    /// The model's word that comes nearest to an effort; `None` when it knows none.
    pub(crate) fn nearest(&self, effort: Effort) -> Option<&str> {
        let place = |word: &str| SCALE.iter().position(|known| *known == word);
        let wanted = place(word(effort))?;
        let known = self.efforts.iter().filter_map(|word| Some((place(word).filter(|at| *at > 0)?, word)));
        known.min_by_key(|(at, _)| at.abs_diff(wanted)).map(|(_, word)| word.as_str())
    }
}

/// The effort that a setting stands for.
pub(crate) fn effort(reasoning: Reasoning) -> Option<Effort> {
    match reasoning {
        Reasoning::Default | Reasoning::Off => None,
        Reasoning::On(effort) => Some(effort),
        Reasoning::Budget(..=6_000) => Some(Effort::Low),
        Reasoning::Budget(..=16_000) => Some(Effort::Medium),
        Reasoning::Budget(_) => Some(Effort::High),
    }
}

pub(crate) fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

/// The usual switches turned the other way, for a model that only says how to switch them on.
fn opposite(enabled: &Map<String, Value>) -> Map<String, Value> {
    let mut on = Map::new();
    merge::options(&mut on, enabled);
    let mut off = Map::new();
    if on.get("thinking").and_then(|thinking| thinking.get("type")).is_some() {
        off.insert("thinking".to_owned(), json!({"type": "disabled"}));
    }
    if on.get("enable_thinking").is_some() {
        off.insert("enable_thinking".to_owned(), json!(false));
    }
    let template = on.get("chat_template_kwargs").and_then(Value::as_object);
    for switch in ["enable_thinking", "thinking"] {
        if template.is_some_and(|kwargs| kwargs.contains_key(switch)) {
            off.insert("chat_template_kwargs".to_owned(), json!({switch: false}));
        }
    }
    off
}
