//! The checked tree into the types of those who use it.
//!
//! Invariant: what a lower crate refuses becomes a problem with a field and a place, like any other.

use std::fmt;

use hart_models::config::{ENTRY_KEYS, ModelConfig, ModelConfigError, ModelEntry, PRESETS, Preset};
use hart_sandbox::{SandboxConfig, SandboxError};
use hart_tools::ToolOutputConfig;
use serde::Deserialize;
use serde_json::Value;

use super::nearest::nearest;
use super::node::{Data, Entry, Mark, Node, Path};
use super::problem::Findings;
use super::section::{self, Invalid};
use crate::Env;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// Python's names are understood as well.
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "error" | "critical" => Self::Error,
            "warn" | "warning" => Self::Warn,
            "info" => Self::Info,
            "debug" => Self::Debug,
            "trace" => Self::Trace,
            _ => return None,
        })
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

pub(super) fn log_level(tree: &Node) -> LogLevel {
    tree.get("log_level").and_then(Node::as_str).and_then(LogLevel::parse).unwrap_or_default()
}

pub(super) fn max_recursion_limit(tree: &Node) -> u32 {
    match tree.get("max_recursion_limit").map(|node| &node.data) {
        Some(Data::Scalar(Value::Number(number))) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
        _ => None,
    }
    .unwrap_or(1000)
}

pub(super) fn sandbox(tree: &Node, findings: &mut Findings) -> SandboxConfig {
    let config = section::checked(tree, "sandbox", findings, |config: &SandboxConfig| {
        config.validate().map_err(|error| match error {
            // The one field whose place is known; the rest is in `mounts`.
            SandboxError::BadConfig { what, fix } => {
                let key = if what.starts_with("`use:") { "use" } else { "mounts" };
                Invalid { key, what, help: Some(fix) }
            }
            error => Invalid {
                key: "environment",
                what: error.to_string(),
                help: Some("see `hart config explain sandbox.environment`".to_owned()),
            },
        })
    });
    for mount in config.mounts.iter().filter(|mount| !mount.host_path.exists()) {
        let place = findings.whole_file();
        let (host, shown) = (mount.host_path.display(), &mount.container_path);
        findings.warn(place, format!("sandbox.mounts: {host} does not exist, so {shown} will not either"));
    }
    config
}

pub(super) fn tool_output(tree: &Node, findings: &mut Findings) -> ToolOutputConfig {
    section::checked(tree, "tool_output", findings, |config: &ToolOutputConfig| {
        config.validate().map_err(|what| Invalid { key: "storage_subdir", what, help: None })
    })
}

/// `read_before_write`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReadBeforeWrite {
    pub(super) enabled: bool,
}

impl Default for ReadBeforeWrite {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// `sandbox_audit`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SandboxAudit {
    pub(super) enabled: bool,
    pub(super) log_file: bool,
}

impl Default for SandboxAudit {
    fn default() -> Self {
        Self { enabled: true, log_file: false }
    }
}

/// Notes in the tree which variable a key came from, where the provider's own variable supplied it.
pub(super) fn models(tree: &mut Node, env: &Env, findings: &mut Findings) -> Vec<ModelConfig> {
    let mut models: Vec<ModelConfig> = Vec::new();
    let path = Path::default().key("models");
    let Data::Map(sections) = &mut tree.data else { return models };
    let section = sections.iter_mut().find(|entry| entry.key == "models");
    let Some(Data::List(items)) = section.map(|entry| &mut entry.value.data) else { return models };
    for (index, item) in items.iter_mut().enumerate() {
        let path = path.index(index);
        if findings.broken.contains(&path.to_string()) {
            continue;
        }
        let Some(model) = model(item, &path, env, findings) else { continue };
        if models.iter().any(|other| other.name == model.name) {
            let mark = item.get("name").unwrap_or(item).mark.clone();
            let name = model.name.escape_debug();
            let message = format!("{path}.name: another model is called `{name}` already");
            findings.problem(&mark, message, "give each model a name of its own");
        }
        note_key(item, &model, env);
        models.push(model);
    }
    models
}

fn model(item: &Node, path: &Path, env: &Env, findings: &mut Findings) -> Option<ModelConfig> {
    let entry = match serde_json::from_value::<ModelEntry>(item.to_json()) {
        Ok(entry) => entry,
        Err(error) => {
            findings.problem(&item.mark, format!("{path}: {error}"), "see `hart config explain models`");
            return None;
        }
    };
    let error = match ModelConfig::resolve(entry, &|name| env.get(name).map(str::to_owned)) {
        Ok(model) => return Some(model),
        Err(error) => error,
    };
    let mark_of = |key: &str| item.get(key).unwrap_or(item).mark.clone();
    match error {
        ModelConfigError::UnknownProvider { given, .. } => {
            let names = || PRESETS.iter().map(|preset| preset.name);
            let all = || names().chain(PRESETS.iter().flat_map(|preset| preset.classes).copied());
            let hint =
                nearest(&given, all()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message = format!("{path}.use: unknown provider `{}`{hint}", given.escape_debug());
            let known: Vec<_> = names().collect();
            findings.problem(&mark_of("use"), message, format!("use one of {}", known.join(", ")));
        }
        ModelConfigError::Missing { key, .. } => {
            let message = format!("{path}: a model needs `{key}`");
            findings.problem(
                &item.mark,
                message,
                format!("add `{key}:`; see `hart config explain models[].{key}`"),
            );
        }
        ModelConfigError::MissingKey { env, .. } => {
            let message = format!("{path}.api_key: not given, and environment variable {env} is not set");
            findings.problem(
                &item.mark,
                message,
                format!("export {env}, or write `api_key: $YOUR_VARIABLE`"),
            );
        }
        ModelConfigError::Invalid { message, .. } => {
            findings.problem(&mark_of("base_url"), format!("{path}: {message}"), "correct the value");
        }
        other => findings.problem(&item.mark, format!("{path}: {other}"), "correct the entry"),
    }
    None
}

/// A key that no field gave was found in the provider's variable; `explain` should say so.
fn note_key(item: &mut Node, model: &ModelConfig, env: &Env) {
    let spellings = ENTRY_KEYS.iter().find(|key| key.name == "api_key").map_or(&[][..], |key| key.aliases);
    let given = item.get("api_key").is_some() || spellings.iter().any(|name| item.get(name).is_some());
    if given || model.api_key.is_none() {
        return;
    }
    let preset = PRESETS.iter().find(|preset: &&Preset| preset.name == model.provider);
    let var = preset.and_then(|preset| {
        preset.key_env.iter().find(|name| env.get(name).is_some_and(|value| !value.trim().is_empty()))
    });
    let (Some(var), Data::Map(entries)) = (var, &mut item.data) else { return };
    let mark = Mark { pos: None, var: Some((*var).to_owned()) };
    let value = Node { data: Data::Scalar(Value::from(hart_models::address::MASK)), mark: mark.clone() };
    entries.push(Entry { key: "api_key".to_owned(), key_mark: mark, value });
}
