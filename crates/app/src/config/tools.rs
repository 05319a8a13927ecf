//! The `tools:` section: which of the built-in tools an agent has.
//!
//! Invariant: without the section all are on; with it, exactly those it names.

use std::collections::BTreeSet;

use super::nearest::nearest;
use super::node::{Data, Node, Path};
use super::problem::Findings;

/// The tools a configuration can choose from.
pub const BUILT_IN: [&str; 8] =
    ["bash", "ls", "glob", "grep", "read_file", "write_file", "str_replace", "delete"];

/// What comes with a tool and is of no use without it.
const COMPANIONS: [(&str, &str); 1] = [("bash", "background")];

/// Part of the agent itself, as in DeerFlow: a list of tools neither names nor removes them.
const ALWAYS: [&str; 2] = ["present_files", "ask_clarification"];

/// Tools of DeerFlow whose providers hart does not have yet.
const NOT_YET: [&str; 4] = ["web_search", "web_fetch", "image_search", "web_capture"];

/// Where DeerFlow keeps what hart has built in.
const DEERFLOW_MODULE: &str = "deerflow.sandbox.tools";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsConfig {
    /// `None` without the section.
    chosen: Option<BTreeSet<&'static str>>,
}

impl ToolsConfig {
    /// The names to offer, those that cannot be chosen among them; `None` when there is nothing to leave out.
    #[must_use]
    pub fn enabled(&self) -> Option<Vec<String>> {
        self.chosen.as_ref()?;
        let companions = COMPANIONS.into_iter().filter(|(tool, _)| self.allows(tool)).map(|(_, with)| with);
        Some(self.chosen().chain(companions).chain(ALWAYS).map(str::to_owned).collect())
    }

    /// Without those that are not among these.
    pub(crate) fn narrowed(&self, to: &BTreeSet<&'static str>) -> Self {
        Self { chosen: Some(self.chosen().filter(|name| to.contains(name)).collect()) }
    }

    /// The tools of [`BUILT_IN`] that are on.
    pub fn chosen(&self) -> impl Iterator<Item = &'static str> + '_ {
        BUILT_IN.into_iter().filter(|name| self.allows(name))
    }

    /// Whether a tool of that name is offered; what a configuration cannot choose always is.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.contains(name)) || !BUILT_IN.contains(&name)
    }

    /// Keys of an element that have no effect are added to `unused`.
    pub(crate) fn read(section: Option<&Node>, findings: &mut Findings, unused: &mut Vec<String>) -> Self {
        let Some(section) = section.filter(|section| !section.is_null()) else { return Self::default() };
        let path = Path::default().key("tools");
        let Data::List(items) = &section.data else {
            let found = section.kind_name();
            let help = "write one `- name: …` per tool, or remove the section to have all of them";
            findings.breakage(&path, &section.mark, format!("expected a list, found {found}"), help);
            return Self::default();
        };
        let mut missing = Vec::new();
        let mut enabled = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            match identify(item, &path.index(index), findings) {
                Some(Tool::BuiltIn(name)) => {
                    enabled.insert(name);
                    let spare = item.keys().filter(|key| !["name", "group", "use"].contains(key));
                    unused.extend(spare.map(|key| path.index(index).key(key).to_string()));
                }
                Some(Tool::NotYet(name)) => missing.push(name),
                None => {}
            }
        }
        if !missing.is_empty() {
            let place = findings.whole_file();
            findings.warn(place, format!("tools without a provider in this version: {}", missing.join(", ")));
        }
        Self { chosen: Some(enabled) }
    }
}

enum Tool {
    BuiltIn(&'static str),
    NotYet(String),
}

/// Which tool an element means: its `use` decides, its `name` when there is none.
fn identify(item: &Node, path: &Path, findings: &mut Findings) -> Option<Tool> {
    if !matches!(item.data, Data::Map(_)) {
        let found = item.kind_name();
        findings.breakage(path, &item.mark, format!("expected a map, found {found}"), "write `- name: bash`");
        return None;
    }
    let mut text = |key: &str| match item.get(key) {
        Some(node) if node.as_str().is_none() && !node.is_null() => {
            let found = node.kind_name();
            let help = "put the value in quotes";
            findings.breakage(&path.key(key), &node.mark, format!("expected a string, found {found}"), help);
            Err(())
        }
        other => Ok(other.and_then(Node::as_str)),
    };
    let (Ok(name), Ok(provider)) = (text("name"), text("use")) else { return None };
    let Some(called) = name.or(provider) else {
        findings.breakage(
            path,
            &item.mark,
            "a tool needs a `name`",
            "write `name:` and one of the built-in tools",
        );
        return None;
    };
    let provider = provider.filter(|provider| !BUILT_IN.contains(provider));
    let (module, function) = provider.and_then(|path| path.split_once(':')).unzip();
    let wanted = function.map_or(called, |function| function.strip_suffix("_tool").unwrap_or(function));
    match (provider, module) {
        (None, _) | (_, Some(DEERFLOW_MODULE)) => {
            if let Some(known) = BUILT_IN.into_iter().find(|known| *known == wanted) {
                return Some(Tool::BuiltIn(known));
            }
            if NOT_YET.contains(&wanted) || wanted.starts_with("browser_") {
                return Some(Tool::NotYet(called.to_owned()));
            }
            let near = nearest(wanted, BUILT_IN.into_iter().chain(NOT_YET));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let field = path.key(if function.is_some() { "use" } else { "name" });
            let help = format!("built-in tools are {}", BUILT_IN.join(", "));
            findings.breakage(
                &field,
                &item.mark,
                format!("unknown tool `{}`{hint}", wanted.escape_debug()),
                help,
            );
            None
        }
        (Some(_), Some(module)) if module.starts_with("deerflow.") => Some(Tool::NotYet(called.to_owned())),
        (Some(provider), _) => {
            let what = format!("`{}` is not a provider this version has", provider.escape_debug());
            let help = "Python packages cannot be loaded; remove the tool, or offer it through an MCP server";
            findings.breakage(&path.key("use"), &item.mark, what, help);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(section: serde_json::Value) -> (Vec<&'static str>, Findings) {
        let mut findings = Findings::default();
        let config = ToolsConfig::read(Some(&Node::from_json(section)), &mut findings, &mut Vec::new());
        (config.chosen().collect(), findings)
    }

    #[test]
    fn without_the_section_all() {
        let config = ToolsConfig::read(None, &mut Findings::default(), &mut Vec::new());
        assert_eq!(config.chosen().collect::<Vec<_>>(), BUILT_IN);
        assert_eq!(config.enabled(), None);
        assert!(config.allows("bash") && config.allows("present_files"));
    }

    #[test]
    fn with_it_those_it_names() {
        let (enabled, findings) = read(json!([
            {"name": "read_file", "group": "file:read", "use": "deerflow.sandbox.tools:read_file_tool"},
            {"name": "bash"},
            {"use": "ls"},
            {"name": "shell", "use": "deerflow.sandbox.tools:glob_tool", "max_results": 5},
        ]));
        assert!(findings.problems.is_empty(), "{:?}", findings.problems);
        assert_eq!(enabled, ["bash", "ls", "glob", "read_file"]);
        assert!(read(json!([])).0.is_empty());
    }

    #[test]
    fn a_list_does_not_take_away_what_it_cannot_name() {
        let section = Node::from_json(json!([{"name": "ls"}]));
        let config = ToolsConfig::read(Some(&section), &mut Findings::default(), &mut Vec::new());
        assert_eq!(config.enabled().unwrap(), ["ls", "present_files", "ask_clarification"]);
        assert!(config.allows("present_files") && !config.allows("bash"));
    }

    #[test]
    fn tools_without_a_provider_are_mentioned_once() {
        let (enabled, findings) = read(json!([
            {"name": "web_search", "use": "deerflow.community.ddg_search.tools:web_search_tool", "api_key": "$X"},
            {"name": "web_fetch"},
            {"name": "browser_click", "use": "deerflow.community.browser_automation.tools:browser_click_tool"},
            {"name": "bash"},
        ]));
        assert_eq!((enabled, findings.problems.len(), findings.warnings.len()), (vec!["bash"], 0, 1));
        let message = &findings.warnings[0].message;
        assert_eq!(message, "tools without a provider in this version: web_search, web_fetch, browser_click");
    }

    #[test]
    fn others_are_refused() {
        for (section, message) in [
            (json!([{"name": "bsh"}]), "tools[0].name: unknown tool `bsh`; did you mean `bash`?"),
            (json!([{"name": "teleport"}]), "tools[0].name: unknown tool `teleport`"),
            (
                json!([{"name": "x", "use": "deerflow.sandbox.tools:read_fil_tool"}]),
                "tools[0].use: unknown tool `read_fil`; did you mean `read_file`?",
            ),
            (
                json!([{"name": "bash", "use": "corp:bash_tool"}]),
                "tools[0].use: `corp:bash_tool` is not a provider this version has",
            ),
            (json!([{"group": "web"}]), "tools[0]: a tool needs a `name`"),
            (json!(["bash"]), "tools[0]: expected a map, found a string"),
            (json!([{"name": 5}]), "tools[0].name: expected a string, found an integer"),
            (json!({"bash": {}}), "tools: expected a list, found a map"),
        ] {
            let messages: Vec<_> = read(section.clone()).1.problems.into_iter().map(|p| p.message).collect();
            assert_eq!(messages, [message], "{section}");
        }
    }
}
