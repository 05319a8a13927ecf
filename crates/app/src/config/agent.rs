//! `config.yaml` of an agent of the user's own, in DeerFlow's spelling.
//!
//! Invariant: what cannot be meant is an error that says what to write; nothing is guessed.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::raw;

/// How such an agent differs from the lead agent. What is left out is as that one has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentConfig {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) tool_groups: Option<Vec<String>>,
    /// The skills it may use; none means all that are enabled.
    pub(crate) skills: Option<Vec<String>>,
    pub(crate) model_settings: ModelSettings,
    thinking_enabled: Option<bool>,
    reasoning_effort: Option<String>,
    /// Of DeerFlow's GitHub app, which is configured elsewhere.
    #[serde(rename = "github")]
    _github: Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSettings {
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
}

/// Tools by what they do. The last two have none in this version.
const GROUPS: [(&str, &[&str]); 5] = [
    ("file:read", &["ls", "glob", "grep", "read_file"]),
    ("file:write", &["write_file", "str_replace", "delete"]),
    ("bash", &["bash"]),
    ("web", &[]),
    ("browser", &[]),
];

const EFFORTS: [&str; 3] = ["low", "medium", "high"];

impl AgentConfig {
    /// `label` is what messages call the file.
    pub(crate) fn parse(text: &str, label: &str) -> Result<Self, String> {
        let tree = raw::parse(text, label).map_err(|problem| problem.to_string())?;
        if tree.is_null() {
            return Ok(Self::default());
        }
        let config: Self = serde_path_to_error::deserialize(tree.to_json()).map_err(|error| {
            let place = error.path().to_string();
            // What is there at its top only, such as a key that is unknown, names itself.
            let place = if place == "." { String::new() } else { format!("`{place}`: ") };
            format!("{label}: {place}{}", error.into_inner())
        })?;
        let groups = config.tool_groups.iter().flatten();
        if let Some(unknown) = groups.into_iter().find(|group| !GROUPS.iter().any(|(name, _)| name == group))
        {
            let known: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "{label}: there is no tool group `{unknown}`; there is: {}",
                known.join(", ")
            ));
        }
        match &config.reasoning_effort {
            Some(effort) if !EFFORTS.contains(&effort.as_str()) => {
                Err(format!("{label}: `reasoning_effort` is `{effort}`; write {}", EFFORTS.join(", ")))
            }
            _ => Ok(config),
        }
    }

    /// The built-in tools it may have; none means all.
    pub(crate) fn tools(&self) -> Option<BTreeSet<&'static str>> {
        let chosen = self.tool_groups.as_ref()?;
        let groups = GROUPS.iter().filter(|(name, _)| chosen.iter().any(|chosen| chosen == name));
        Some(groups.flat_map(|(_, tools)| tools.iter().copied()).collect())
    }

    /// What it chooses for runs that do not choose themselves, by the names that clients use.
    pub(crate) fn options(&self) -> Map<String, Value> {
        let pairs = [
            ("model_name", self.model.clone().map(Value::from)),
            ("thinking_enabled", self.thinking_enabled.map(Value::from)),
            ("reasoning_effort", self.reasoning_effort.clone().map(Value::from)),
        ];
        pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

/// All that such a file says, also what is not hart's.
pub(crate) fn agent_settings(text: &str, label: &str) -> Result<Map<String, Value>, String> {
    match raw::parse(text, label).map_err(|problem| problem.to_string())?.to_json() {
        Value::Object(settings) => Ok(settings),
        Value::Null => Ok(Map::new()),
        _ => Err(format!("{label}: the file must be a mapping")),
    }
}

/// A file that says this.
pub(crate) fn agent_text(settings: Map<String, Value>) -> String {
    // JSON is YAML too, if nothing else can be written.
    let settings = Value::Object(settings);
    serde_saphyr::to_string(&settings).unwrap_or_else(|_| settings.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_deerflow_is_understood() {
        let text = "name: writer\ndescription: Writes.\nmodel: big\ntool_groups: [file:read, bash]\nskills: [a]\n\
                    model_settings: {temperature: 0.2, max_tokens: 100}\nthinking_enabled: false\ngithub: {x: 1}\n";
        let config = AgentConfig::parse(text, "config.yaml").unwrap();
        assert_eq!(config.tools().unwrap(), BTreeSet::from(["bash", "glob", "grep", "ls", "read_file"]));
        assert_eq!(config.skills.as_deref(), Some(&["a".to_owned()][..]));
        assert_eq!(config.model_settings.max_tokens, Some(100));
        assert_eq!(config.options()["model_name"], "big");
        let nothing = AgentConfig::parse("", "config.yaml").unwrap();
        assert_eq!((nothing.tools(), nothing.options().len()), (None, 0));
        assert_eq!(AgentConfig::parse("tool_groups: []", "").unwrap().tools(), Some(BTreeSet::new()));
    }

    #[test]
    fn what_cannot_be_meant_says_what_to_write() {
        for (text, says) in [
            ("tool_groups: [file]", "there is no tool group `file`; there is: file:read, file:write, bash"),
            ("reasoning_effort: max", "write low, medium, high"),
            ("modle: big", "unknown field `modle`"),
            ("skills: all", "`skills`: invalid type"),
            ("model_settings: {temperature: warm}", "`model_settings.temperature`: invalid type"),
            ("a: [", "c.yaml"),
        ] {
            let error = AgentConfig::parse(text, "c.yaml").unwrap_err();
            assert!(error.contains(says) && error.contains("c.yaml"), "{error}");
        }
    }
}
