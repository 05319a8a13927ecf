//! The subagents that a skill brings along: its `agents.yaml`, read into data.
//!
//! Invariant: nothing is started here; what is not understood is told, and the rest of the file counts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::manifest::is_name;
use super::mistake::{Mistake, MistakeCode, Severity};

/// Where a skill describes its subagents.
pub const AGENTS_FILE: &str = "agents.yaml";

/// One of them, with DeerFlow's keys of `custom_agents`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillAgent {
    #[serde(default)]
    pub name: String,
    pub description: String,
    #[serde(alias = "prompt")]
    pub system_prompt: String,
    /// `None` is all that the parent has.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub disallowed_tools: Vec<String>,
    #[serde(default)]
    pub skills: Option<Vec<String>>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
}

/// A map of names to agents, or a list of agents with names; either may stand below `agents:`.
pub(super) fn read(text: &str) -> (Vec<SkillAgent>, Vec<Mistake>) {
    let mut mistakes = Vec::new();
    let mut wrong = |line: usize, message: String, help: &str| {
        let (file, help) = (AGENTS_FILE.to_owned(), help.to_owned());
        mistakes.push(Mistake {
            code: MistakeCode::Content,
            severity: Severity::Warning,
            file,
            line,
            message,
            help,
        });
    };
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_nodes: 5_000, max_depth: 16 },
    };
    let value: Value = match serde_saphyr::from_str_with_options(text, options) {
        Ok(value) => value,
        Err(error) => {
            let line = error.location().map_or(1, |place| place.line() as usize);
            let what = error.to_string();
            let what = what.lines().next().unwrap_or_default();
            wrong(line, format!("no valid YAML: {what}"), "correct it; the skill's agents are left out");
            return (Vec::new(), mistakes);
        }
    };
    let value = match value {
        Value::Object(mut map) if map.len() == 1 && map.contains_key("agents") => {
            map.remove("agents").unwrap_or_default()
        }
        other => other,
    };
    let entries: Vec<(Option<String>, Value)> = match value {
        Value::Null => Vec::new(),
        Value::Object(map) => map.into_iter().map(|(name, agent)| (Some(name), agent)).collect(),
        Value::Array(items) => items.into_iter().map(|agent| (None, agent)).collect(),
        _ => {
            wrong(
                1,
                "it is neither a map nor a list".to_owned(),
                "write names of agents, each with its keys",
            );
            Vec::new()
        }
    };
    let mut agents: Vec<SkillAgent> = Vec::new();
    for (name, mut agent) in entries {
        if let (Some(name), Value::Object(keys)) = (&name, &mut agent) {
            name_it(keys, name);
        }
        let shown = name.or_else(|| agent.get("name")?.as_str().map(str::to_owned)).unwrap_or_default();
        let line =
            text.lines().position(|line| !shown.is_empty() && line.contains(&shown)).map_or(1, |at| at + 1);
        match serde_json::from_value::<SkillAgent>(agent) {
            Err(error) => {
                wrong(line, format!("the agent `{shown}`: {error}"), "see docs/guide/skills.md for its keys")
            }
            Ok(agent) if !is_name(&agent.name) => {
                wrong(line, format!("`{shown}` cannot be a name"), "use small letters, digits and hyphens");
            }
            Ok(agent) if agents.iter().any(|other| other.name == agent.name) => {
                wrong(line, format!("there are two agents `{shown}`"), "rename one; the first counts");
            }
            Ok(agent) => agents.push(agent),
        }
    }
    (agents, mistakes)
}

fn name_it(keys: &mut Map<String, Value>, name: &str) {
    keys.entry("name").or_insert_with(|| name.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_lists_are_read() {
        let map = "agents:\n  fact-checker:\n    description: d\n    system_prompt: p\n    tools: [web_search]\n    max_turns: 5\n";
        let list =
            "- name: fact-checker\n  description: d\n  prompt: p\n  tools: [web_search]\n  max_turns: 5\n";
        for text in [map, list] {
            let (agents, mistakes) = read(text);
            assert!(mistakes.is_empty(), "{mistakes:?}");
            assert_eq!((agents[0].name.as_str(), agents[0].max_turns), ("fact-checker", Some(5)));
        }
    }

    #[test]
    fn one_mistake_does_not_take_the_others_away() {
        let text = "good: {description: d, system_prompt: p}\nbad: {description: d}\nUgly: {description: d, system_prompt: p}\n";
        let (agents, mistakes) = read(text);
        assert_eq!(agents.len(), 1);
        assert_eq!(mistakes.len(), 2);
        assert!(mistakes[0].message.contains("`bad`") && mistakes[0].line == 2, "{}", mistakes[0]);
        assert!(read("5").1[0].message.contains("neither"));
        assert_eq!(read("").0.len(), 0);
    }
}
