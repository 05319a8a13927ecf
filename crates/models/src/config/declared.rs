//! What the operator says a model can do.
//!
//! Invariant: what the operator says outweighs a probe, and a probe the catalogue.

use serde_json::Value;

use super::{Dialect, ModelEntry, Preset, StructuredOutput, Switch};
use crate::catalogue::{Capabilities, Catalogue, Facts, Origin, ThinkingMode, ThinkingSwitch};
use crate::ollama::DEFAULT_CONTEXT;
use crate::probe::Profile;
use crate::text_calls::{CallsInText, TextOptions};

/// The capabilities of an entry, kept so that they can be weighed again when a probe's profile comes in.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    facts: Facts,
    /// `supports_thinking: true` says that it thinks, not whether it can be kept from it.
    thinks: bool,
    /// `supports_reasoning_effort: true` says that there is an effort, not which words it has.
    has_effort: bool,
    calls: Switch,
    think: Switch,
}

impl Declared {
    pub(super) fn of(entry: &ModelEntry) -> Self {
        let mut facts = entry.capabilities.clone().unwrap_or_default();
        facts.context_window = entry.context_window.or(facts.context_window);
        facts.vision = entry.supports_vision.or(facts.vision);
        facts.send_reasoning = entry.send_reasoning.or(facts.send_reasoning);
        if entry.structured_output == Some(StructuredOutput::Schema) {
            facts.structured_output = Some(true);
        }
        facts.price = entry.pricing.clone().or(facts.price);
        let thinks = entry.supports_thinking == Some(true) && facts.thinking.is_none();
        if entry.supports_thinking == Some(false) {
            facts.thinking = Some(ThinkingMode::None);
        }
        let has_effort = entry.supports_reasoning_effort == Some(true) && facts.effort.is_none();
        if entry.supports_reasoning_effort == Some(false) {
            facts.effort = Some(Vec::new());
        }
        let mut on = entry.when_thinking_enabled.clone();
        if let Some(thinking) = &entry.thinking {
            // DeerFlow's shortcut for `when_thinking_enabled: {thinking: …}`.
            on.get_or_insert_default().insert("thinking".to_owned(), Value::Object(thinking.clone()));
        }
        let off = entry.when_thinking_disabled.clone();
        if on.is_some() || off.is_some() {
            let (on, off) = (on.unwrap_or_default(), off.unwrap_or_default());
            facts.thinking_switch = Some(ThinkingSwitch { on, off });
        }
        let (calls, think) =
            (entry.text_tool_calls.unwrap_or_default(), entry.think_tags.unwrap_or_default());
        facts.text_tool_calls = match calls {
            Switch::On => Some(true),
            Switch::Off => Some(false),
            Switch::Auto => facts.text_tool_calls,
        };
        Self { facts, thinks, has_effort, calls, think }
    }

    /// What is read out of the text: as the entry says, else as is known of the model, else by provider.
    pub(super) fn text(&self, preset: &Preset, base_url: &str, known: &Capabilities) -> TextOptions {
        let mut options = preset.text_options(base_url, self.calls, self.think);
        let known = &known.text_tool_calls;
        options.calls = match (known.value, &known.origin) {
            (None, _) => options.calls,
            (Some(false), _) => CallsInText::Off,
            // Said, or seen, to write its calls.
            (Some(true), Origin::Operator | Origin::Probe(_)) => CallsInText::Always,
            (Some(true), _) => CallsInText::UnlessNative,
        };
        options
    }

    pub(super) fn capabilities(
        &self,
        preset: &Preset,
        dialect: Dialect,
        base_url: &str,
        model: &str,
        profile: Option<&Profile>,
    ) -> Capabilities {
        let mut layers = vec![(Origin::Operator, self.facts.clone())];
        if dialect == Dialect::Responses {
            // It has no place for them, whoever speaks it.
            let facts = Facts { stop: Some(false), ..Facts::default() };
            layers.push((Origin::Dialect("the Responses API"), facts));
        }
        if let Some(profile) = profile {
            layers.push((Origin::Probe(profile.day().to_owned()), profile.facts.clone()));
        }
        layers.extend(Catalogue::bundled().layers(preset.name, base_url, model));
        let manners = Facts { send_reasoning: Some(preset.send_reasoning), ..Facts::default() };
        layers.push((Origin::Provider(preset.name.to_owned()), manners));
        if dialect == Dialect::Ollama {
            // The server holds as much as it is told to.
            let facts = Facts { context_window: Some(DEFAULT_CONTEXT), ..Facts::default() };
            layers.push((Origin::Dialect("hart's default for Ollama"), facts));
        }
        let mut known = Capabilities::resolve(&layers);
        let window = &mut known.context_window;
        if dialect == Dialect::Ollama
            && window.origin != Origin::Operator
            && window.value.is_some_and(|tokens| tokens > DEFAULT_CONTEXT)
        {
            // It takes memory, and only the owner of the machine knows how much there is.
            window.value = Some(DEFAULT_CONTEXT);
            window.origin = Origin::Dialect("hart's limit for Ollama; `context_window` raises it");
        }
        if self.thinks && !known.thinks() {
            known.thinking.value = Some(ThinkingMode::Optional);
            known.thinking.origin = Origin::Operator;
        }
        if self.has_effort && known.effort.value.as_ref().is_none_or(Vec::is_empty) {
            known.effort.value = Some(["low", "medium", "high"].map(str::to_owned).into());
            known.effort.origin = Origin::Operator;
        }
        known
    }
}
