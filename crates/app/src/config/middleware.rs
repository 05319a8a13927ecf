//! The sections of the chain's parts: how a conversation is shown, what bounds a run, what mends it.
//!
//! Invariant: a part that is switched off is `None`; what cannot be understood is a problem, never a part left out.

use hart_agent::compaction::SummarizationConfig;
use hart_agent::middleware::{
    DynamicContextConfig, FinishReasonConfig, ModelErrorConfig, Pii, PiiConfig, TitleConfig, ToolErrorConfig,
    ToolRetryConfig, UntrustedContentConfig, ViewImageConfig,
};
use hart_agent::{
    BudgetConfig, CallLimitsConfig, ContextEditingConfig, GoalConfig, LoopDetectionConfig,
    ToolSelectionConfig,
};
use serde::Deserialize;

use super::nearest::nearest;
use super::node::Node;
use super::problem::Findings;
use super::section::{Invalid, checked, section, switched};

/// What the parts of the chain are told; `None` is off.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MiddlewareConfig {
    pub input_sanitization: bool,
    pub untrusted_content: Option<UntrustedContentConfig>,
    /// On only with rules.
    pub pii: Option<Pii>,
    pub uploads: bool,
    pub model_error: Option<ModelErrorConfig>,
    pub tool_error: Option<ToolErrorConfig>,
    pub tool_retry: Option<ToolRetryConfig>,
    pub dynamic_context: Option<DynamicContextConfig>,
    pub summarization: Option<SummarizationConfig>,
    pub context_editing: Option<ContextEditingConfig>,
    pub token_usage: bool,
    /// `budget` and `token_budget` together.
    pub budget: Option<BudgetConfig>,
    pub title: Option<TitleConfig>,
    /// Off, it still tells whoever sets a goal.
    pub goal: GoalConfig,
    pub view_image: Option<ViewImageConfig>,
    pub tool_selection: Option<ToolSelectionConfig>,
    pub unsupported_content: bool,
    pub call_limits: Option<CallLimitsConfig>,
    pub loop_detection: Option<LoopDetectionConfig>,
    /// `finish_reason` and `safety_finish_reason` together.
    pub finish_reason: Option<FinishReasonConfig>,
}

impl MiddlewareConfig {
    pub(super) fn read(tree: &Node, findings: &mut Findings) -> Self {
        let untrusted: UntrustedContentConfig = section(tree, "untrusted_content", findings);
        let summarization: SummarizationConfig = section(tree, "summarization", findings);
        named_model(tree, "summarization", "model_name", summarization.model_name.as_deref(), findings);
        let editing: ContextEditingConfig = section(tree, "context_editing", findings);
        let title: TitleConfig = section(tree, "title", findings);
        named_model(tree, "title", "model_name", title.model_name.as_deref(), findings);
        let goal: GoalConfig = section(tree, "goal", findings);
        named_model(tree, "goal", "model_name", goal.model_name.as_deref(), findings);
        let selection: ToolSelectionConfig = section(tree, "tool_selection", findings);
        let loops = checked(tree, "loop_detection", findings, sound_loops);
        Self {
            input_sanitization: is_on(tree, "input_sanitization", findings),
            untrusted_content: untrusted.enabled.then_some(untrusted),
            pii: pii(tree, findings),
            uploads: is_on(tree, "uploads", findings),
            model_error: switched(tree, "model_error", true, findings),
            tool_error: switched(tree, "tool_error", true, findings),
            tool_retry: switched(tree, "tool_retry", false, findings),
            dynamic_context: switched(tree, "dynamic_context", true, findings),
            summarization: summarization.enabled.then_some(summarization),
            context_editing: editing.enabled.then_some(editing),
            token_usage: is_on(tree, "token_usage", findings),
            budget: budget(tree, findings),
            title: title.enabled.then_some(title),
            goal,
            view_image: switched(tree, "view_image", true, findings),
            tool_selection: selection.enabled.then_some(selection),
            unsupported_content: is_on(tree, "unsupported_content", findings),
            call_limits: switched(tree, "call_limits", true, findings),
            loop_detection: loops.enabled.then_some(loops),
            finish_reason: finish_reason(tree, findings),
        }
    }
}

/// A section whose only key is `enabled`.
fn is_on(tree: &Node, name: &str, findings: &mut Findings) -> bool {
    #[derive(Default, Deserialize)]
    struct Nothing {}
    switched::<Nothing>(tree, name, true, findings).is_some()
}

/// A helper is one of the models that are configured; one with a mistake of its own is told of there.
pub(super) fn named_model(
    tree: &Node,
    section: &str,
    key: &str,
    name: Option<&str>,
    findings: &mut Findings,
) {
    let Some(name) = name else { return };
    let entries = tree.get("models").map(Node::items).unwrap_or_default().iter();
    let names = entries.filter_map(|entry| entry.get("name").or_else(|| entry.get("model"))?.as_str());
    let known: Vec<&str> = names.collect();
    if known.contains(&name) {
        return;
    }
    let Some(field) = tree.get(section).and_then(|section| section.get(key)) else { return };
    let near = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let what =
        format!("{section}.{key}: there is no model `{}`{}", name.escape_debug(), near.unwrap_or_default());
    let help = match known.as_slice() {
        [] => "add it to `models`, or remove the key".to_owned(),
        known => format!("name one of `models`: {}", known.join(", ")),
    };
    findings.problem(&field.mark, what, help);
}

fn sound_loops(loops: &LoopDetectionConfig) -> Result<(), Invalid> {
    let LoopDetectionConfig { warn_threshold, hard_limit, tool_freq_warn, tool_freq_hard_limit, .. } = *loops;
    let below = |key, limit, warn: &str| Invalid {
        key,
        what: format!("{key} is below {warn}, so nobody would be corrected before the end"),
        help: Some(format!("write at least {limit}")),
    };
    if hard_limit < warn_threshold {
        return Err(below("hard_limit", warn_threshold, "warn_threshold"));
    }
    if tool_freq_hard_limit > 0 && tool_freq_hard_limit < tool_freq_warn {
        return Err(below("tool_freq_hard_limit", tool_freq_warn, "tool_freq_warn"));
    }
    Ok(())
}

/// Two sections, because DeerFlow's is about tokens alone and off unless it is switched on.
fn budget(tree: &Node, findings: &mut Findings) -> Option<BudgetConfig> {
    let tokens = checked(tree, "token_budget", findings, sound_parts);
    let rest: Option<BudgetConfig> = switched(tree, "budget", true, findings);
    if let Some(cost) = rest.as_ref().and_then(|rest| rest.max_cost).filter(|cost| *cost <= 0.0) {
        let field = tree.get("budget").and_then(|section| section.get("max_cost"));
        let mark = field.map(|field| field.mark.clone()).unwrap_or_default();
        findings.problem(&mark, format!("budget.max_cost: {cost} buys nothing"), "write a number above zero");
    }
    if rest.is_none() && !tokens.enabled {
        return None;
    }
    let none = || BudgetConfig { max_tokens: None, ..BudgetConfig::default() };
    let tokens = if tokens.enabled { tokens } else { none() };
    let BudgetConfig { max_cost, max_model_calls, max_tool_calls, max_seconds, on_limit, .. } =
        rest.unwrap_or_else(none);
    Some(BudgetConfig {
        enabled: true,
        max_cost,
        max_model_calls,
        max_tool_calls,
        max_seconds,
        on_limit,
        ..tokens
    })
}

fn sound_parts(tokens: &BudgetConfig) -> Result<(), Invalid> {
    let BudgetConfig { warn_threshold: warn, hard_stop_threshold: stop, .. } = *tokens;
    let invalid = |key, what: &str| Invalid { key, what: format!("{key} {what}"), help: None };
    if !(0.0..=1.0).contains(&warn) {
        return Err(invalid("warn_threshold", "is a part of the limit, from 0 to 1"));
    }
    if stop <= 0.0 || stop > 1.0 {
        return Err(invalid("hard_stop_threshold", "is a part of the limit, above 0 and at most 1"));
    }
    if stop < warn {
        return Err(invalid("hard_stop_threshold", "is below warn_threshold, so nobody would be warned"));
    }
    Ok(())
}

fn finish_reason(tree: &Node, findings: &mut Findings) -> Option<FinishReasonConfig> {
    let safety = is_on(tree, "safety_finish_reason", findings);
    let config: Option<FinishReasonConfig> = switched(tree, "finish_reason", true, findings);
    config.map(|config| FinishReasonConfig { safety, ..config })
}

/// Rule by rule, so that a mistake is told where it stands.
fn pii(tree: &Node, findings: &mut Findings) -> Option<Pii> {
    let config: PiiConfig = switched(tree, "pii", true, findings)?;
    if config.rules.is_empty() {
        return None;
    }
    let items = tree.get("pii").and_then(|section| section.get("rules")).map(Node::items).unwrap_or_default();
    let help = "correct the regular expression, or name a kind that is built in";
    let mut sound = true;
    for (at, (rule, item)) in config.rules.iter().zip(items).enumerate() {
        if let Err(error) = Pii::new(PiiConfig { rules: vec![rule.clone()] }) {
            findings.problem(&item.mark, format!("pii.rules[{at}]: {error}"), help);
            sound = false;
        }
    }
    match Pii::new(config) {
        Ok(pii) => Some(pii),
        Err(error) => {
            if let Some(first) = items.first().filter(|_| sound) {
                findings.problem(&first.mark, format!("pii.rules: {error}"), help);
            }
            None
        }
    }
}
