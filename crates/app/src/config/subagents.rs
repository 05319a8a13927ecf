//! The section `subagents`: how much is delegated, and to whom.
//!
//! Invariant: a subagent that cannot be understood is a problem with a place, never one that is left out.

use std::collections::BTreeMap;
use std::fmt;

use hart_agent::{OnExcess, Part, Subagent, SubagentsConfig, TokenBudget};
use hart_knowledge::skills::{Skill, SkillAgent, native_tool};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::consent::FileRules;
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
    /// What of its chain it has or does without, by name.
    pub middleware: BTreeMap<String, bool>,
    /// Instead of the agent's own.
    pub permissions: Option<FileRules>,
    /// A JSON schema that its report must fit.
    pub response_format: Option<Map<String, Value>>,
}

impl SubagentEntry {
    /// The configured model it names.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref().filter(|name| *name != "inherit")
    }

    /// What it has or does without, or what is wrong with the first name that nobody knows.
    pub(crate) fn parts(&self) -> Result<Vec<(Part, bool)>, UnknownPart<'_>> {
        let named = self.middleware.iter().map(|(name, on)| match Part::named(name) {
            Some(part) => Ok((part, *on)),
            None => Err(UnknownPart(name)),
        });
        named.collect()
    }

    /// Whether its rules for files can be passed by a command, and nobody has said that this is meant.
    pub(crate) fn passes_its_rules(&self) -> bool {
        let has_bash = |names: &Option<Vec<String>>| {
            names.as_ref().map(|names| names.iter().any(|name| native_tool(name) == "bash"))
        };
        let runs_commands =
            has_bash(&self.tools).unwrap_or(true) && has_bash(&self.disallowed_tools) != Some(true);
        runs_commands && self.permissions.as_ref().is_some_and(|rules| !rules.allow_bash)
    }

    /// One that a skill brings along. It has no tool that the skill itself does not allow.
    pub(crate) fn from_skill(skill: &Skill, agent: &SkillAgent) -> Self {
        let native = |names: &[String]| -> Vec<String> {
            names.iter().map(|name| native_tool(name).to_owned()).collect()
        };
        let allowed = skill.manifest.allowed_tools.as_deref().map(native);
        let tools = match (agent.tools.as_deref().map(native), allowed) {
            (Some(wanted), Some(allowed)) => {
                Some(wanted.into_iter().filter(|tool| allowed.contains(tool)).collect())
            }
            (wanted, allowed) => wanted.or(allowed),
        };
        Self {
            description: Some(agent.description.clone()),
            system_prompt: Some(agent.system_prompt.clone()),
            tools,
            disallowed_tools: Some(native(&agent.disallowed_tools)),
            model: agent.model.clone(),
            skills: agent.skills.clone(),
            max_turns: agent.max_turns,
            timeout_seconds: agent.timeout_seconds,
            token_budget: None,
            middleware: BTreeMap::new(),
            permissions: None,
            response_format: None,
        }
    }
}

/// A name that is no part's.
pub(crate) struct UnknownPart<'a>(&'a str);

impl UnknownPart<'_> {
    pub(crate) fn what(&self) -> String {
        format!("a subagent does not choose about `{}`", self.0.escape_debug())
    }

    pub(crate) fn help(&self) -> String {
        let all = Part::ALL.map(Part::name);
        match nearest(self.0, all) {
            Some(near) => format!("write `{near}`; there is: {}", all.join(", ")),
            None => format!("name one of: {}", all.join(", ")),
        }
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
    max_tokens_per_run: u64,
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
            max_tokens_per_run,
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
            max_tokens_per_run,
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
        if let Some(budget) = tree.get("subagents").and_then(|section| section.get("token_budget")) {
            check_budget("subagents.token_budget", budget, findings);
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
                max_tokens_per_run: read.max_tokens_per_run,
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
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_word) {
        let help = "write letters, digits, `-` and `_`, 64 at most";
        findings.problem(&node.mark, format!("{path}: a subagent cannot be called that"), help);
    }
    if let Some(budget) = node.get("token_budget") {
        check_budget(&format!("{path}.token_budget"), budget, findings);
    }
    if kind == "agents" {
        check_override(tree, &path, name, node, findings);
    }
    if kind == "custom_agents" && entry.description.as_deref().is_none_or(|text| text.trim().is_empty()) {
        let help = "add `description:`; it is what the agent chooses by";
        findings.problem(&node.mark, format!("{path}: a subagent needs a description"), help);
    }
    if entry.timeout_seconds.is_some_and(|seconds| seconds.is_nan() || seconds <= 0.0) {
        let help = "write a number of seconds above zero";
        findings.problem(&node.mark, format!("{path}.timeout_seconds: no time at all"), help);
    }
    if let Some(Err((what, fix))) = entry.permissions.as_ref().map(FileRules::read) {
        let mark = node.get("permissions").unwrap_or(node).mark.clone();
        findings.problem(&mark, format!("{path}.permissions.rules: {what}"), fix);
    }
    if let Err(unknown) = entry.parts() {
        let section = node.get("middleware").unwrap_or(node);
        let mark = section.get(unknown.0).unwrap_or(section).mark.clone();
        findings.problem(&mark, format!("{path}.middleware: {}", unknown.what()), unknown.help());
    }
    if entry.passes_its_rules() {
        let what =
            format!("{path}.permissions: the rules do not hold for commands, and it has the tool bash");
        let help = "leave bash out of its `tools`, or set `allow_bash: true` if this is meant";
        findings.problem(&node.mark, what, help);
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

/// What `agents` changes; the rest of one is said where it is made.
fn check_override(tree: &Node, path: &str, name: &str, node: &Node, findings: &mut Findings) {
    for key in ["description", "system_prompt", "tools", "disallowed_tools", "permissions", "response_format"]
    {
        if let Some(field) = node.get(key) {
            let help = "say it in `subagents.custom_agents`; one of a built-in's name takes its place";
            findings.problem(&field.mark, format!("{path}.{key}: this is not changed here"), help);
        }
    }
    let custom = tree.get("subagents").and_then(|section| section.get("custom_agents"));
    let is_own = custom.is_some_and(|custom| custom.get(name).is_some());
    if !is_own && Subagent::built_in(name).is_none() {
        let place = findings.place(&node.mark);
        let message =
            format!("{path}: changes something only if a file or a skill has a subagent of that name");
        findings.warn(place, message);
    }
}

/// DeerFlow's keys, of which some say nothing here.
fn check_budget(path: &str, node: &Node, findings: &mut Findings) {
    const KNOWN: [&str; 6] = [
        "enabled",
        "max_tokens",
        "max_input_tokens",
        "max_output_tokens",
        "warn_threshold",
        "hard_stop_threshold",
    ];
    for key in node.keys().filter(|key| !KNOWN.contains(key)) {
        if let Some(field) = node.get(key) {
            let near = nearest(key, KNOWN).map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or_else(|| "write `enabled` and `max_tokens`".to_owned());
            findings.problem(&field.mark, format!("{path}: there is no key `{}`", key.escape_debug()), help);
        }
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
