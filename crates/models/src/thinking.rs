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
    effort: bool,
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
            effort: config.supports_reasoning_effort,
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
                if self.effort
                    && let Some(effort) = effort(reasoning)
                {
                    body.insert("reasoning_effort".to_owned(), word(effort).into());
                }
                if self.supported || self.effort {
                    merge::options(body, &self.enabled);
                }
            }
        }
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
