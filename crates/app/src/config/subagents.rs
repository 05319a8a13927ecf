//! The section `subagents`: how much is delegated, and to whom.
//!
//! Invariant: a subagent that cannot be understood is a problem with a place, never one that is left out.

use std::collections::BTreeMap;
use std::fmt;

use hart_agent::{OnExcess, SubagentsConfig, TokenBudget};
use serde::Deserialize;

use super::nearest::nearest;
use super::node::Node;
use super::problem::Findings;
use super::section::section;

/// Delegation, as configured.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DelegationConfig {
    /// `None` is as the run's mode has it.
    pub enabled: Option<bool>,
    pub limits: SubagentsConfig,
    /// Other numbers, by name.
    pub overrides: BTreeMap<String, SubagentEntry>,
    pub custom: BTreeMap<String, SubagentEntry>,
    /// On other servers.
    pub remote: BTreeMap<String, RemoteEntry>,
}

/// An agent on another server that speaks LangGraph's protocol.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteEntry {
    pub description: String,
    pub url: String,
    /// The assistant or graph over there.
    pub graph_id: String,
    /// Sent with every request; they may hold keys.
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for RemoteEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEntry")
            .field("url", &self.url)
            .field("graph_id", &self.graph_id)
            .finish_non_exhaustive()
    }
}

/// What is said of one subagent, in a configuration or in a file of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubagentEntry {
    pub description: Option<String>,
    pub system_prompt: Option<String>,
    /// Of the agent's tools, only these.
    pub tools: Option<Vec<String>>,
    pub disallowed_tools: Option<Vec<String>>,
    /// A configured name; `inherit` and nothing are the agent's own.
    pub model: Option<String>,
    /// Of the agent's skills, only these; none for an empty list.
    pub skills: Option<Vec<String>>,
    pub max_turns: Option<u32>,
    pub timeout_seconds: Option<f64>,
    pub token_budget: Option<TokenBudget>,
}

impl SubagentEntry {
    /// The configured model it names.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref().filter(|name| *name != "inherit")
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    enabled: Option<bool>,
    max_concurrent: u32,
    max_total_per_run: u32,
    timeout_seconds: f64,
    max_turns: Option<u32>,
    token_budget: TokenBudget,
    on_excess: OnExcess,
    progress_timeout_seconds: f64,
    agents: BTreeMap<String, SubagentEntry>,
    custom_agents: BTreeMap<String, SubagentEntry>,
    remote: BTreeMap<String, RemoteEntry>,
}

impl Default for Section {
    fn default() -> Self {
        let SubagentsConfig {
            max_concurrent,
            max_total_per_run,
            timeout_seconds,
            max_turns,
            token_budget,
            on_excess,
            progress_timeout_seconds,
        } = SubagentsConfig::default();
        Self {
            enabled: None,
            max_concurrent,
            max_total_per_run,
            timeout_seconds,
            max_turns,
            token_budget,
            on_excess,
            progress_timeout_seconds,
            agents: BTreeMap::new(),
            custom_agents: BTreeMap::new(),
            remote: BTreeMap::new(),
        }
    }
}

impl DelegationConfig {
    pub(super) fn read(tree: &Node, findings: &mut Findings) -> Self {
        let read: Section = section(tree, "subagents", findings);
        for (kind, entries) in [("agents", &read.agents), ("custom_agents", &read.custom_agents)] {
            for (name, entry) in entries {
                check(tree, kind, name, entry, findings);
            }
        }
        for (name, entry) in &read.remote {
            check_remote(tree, name, entry, findings);
        }
        Self {
            enabled: read.enabled,
            limits: SubagentsConfig {
                max_concurrent: read.max_concurrent,
                max_total_per_run: read.max_total_per_run,
                timeout_seconds: read.timeout_seconds,
                max_turns: read.max_turns,
                token_budget: read.token_budget,
                on_excess: read.on_excess,
                progress_timeout_seconds: read.progress_timeout_seconds,
            },
            overrides: read.agents,
            custom: read.custom_agents,
            remote: read.remote,
        }
    }
}

fn check(tree: &Node, kind: &str, name: &str, entry: &SubagentEntry, findings: &mut Findings) {
    let node = tree.get("subagents").and_then(|section| section.get(kind)).and_then(|map| map.get(name));
    let Some(node) = node else { return };
    let path = format!("subagents.{kind}.{}", name.escape_debug());
    if kind == "custom_agents" && entry.description.as_deref().is_none_or(|text| text.trim().is_empty()) {
        let help = "add `description:`; it is what the agent chooses by";
        findings.problem(&node.mark, format!("{path}: a subagent needs a description"), help);
    }
    if entry.timeout_seconds.is_some_and(|seconds| seconds <= 0.0) {
        let help = "write a number of seconds above zero";
        findings.problem(&node.mark, format!("{path}.timeout_seconds: no time at all"), help);
    }
    if entry.max_turns == Some(0) {
        findings.problem(&node.mark, format!("{path}.max_turns: no turn at all"), "write at least 1");
    }
    let Some(model) = entry.model() else { return };
    let known = models(tree);
    if !known.iter().any(|name| name == model) {
        let near = nearest(model, known.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let mark = node.get("model").unwrap_or(node).mark.clone();
        let help = match known.as_slice() {
            [] => "add it to `models`, or write `inherit`".to_owned(),
            known => format!("write `inherit`, or name one of `models`: {}", known.join(", ")),
        };
        let model = model.escape_debug();
        findings.problem(&mark, format!("{path}.model: there is no model `{model}`{near}"), help);
    }
}

fn check_remote(tree: &Node, name: &str, entry: &RemoteEntry, findings: &mut Findings) {
    let node = tree.get("subagents").and_then(|section| section.get("remote")).and_then(|map| map.get(name));
    let Some(node) = node else { return };
    let path = format!("subagents.remote.{}", name.escape_debug());
    for (key, value) in
        [("url", &entry.url), ("graph_id", &entry.graph_id), ("description", &entry.description)]
    {
        if value.trim().is_empty() {
            findings.problem(&node.mark, format!("{path}: `{key}` is missing"), format!("add `{key}:`"));
        }
    }
    if !entry.url.is_empty() && !entry.url.starts_with("http://") && !entry.url.starts_with("https://") {
        let mark = node.get("url").unwrap_or(node).mark.clone();
        let help = "write an address such as http://127.0.0.1:2024";
        findings.problem(&mark, format!("{path}.url: not an address"), help);
    }
}

fn models(tree: &Node) -> Vec<String> {
    let entries = tree.get("models").map(Node::items).unwrap_or_default().iter();
    let names = entries.filter_map(|entry| entry.get("name").or_else(|| entry.get("model"))?.as_str());
    names.map(str::to_owned).collect()
}
