//! The sections that say who may do what: `interrupt_on`, `permissions`, `guardrails`.
//!
//! Invariant: what cannot be understood here is a problem, never a rule that is left out.

use hart_agent::FilePermissions;
use hart_agent::approval::InterruptOn;
use hart_agent::guardrails::{AllowlistProvider, GuardrailConfig};
use hart_sandbox::{FilesystemPermission, Permissions, SandboxError};
use serde::Deserialize;

use super::ToolsConfig;
use super::node::Node;
use super::problem::Findings;

/// Who may do what, as configured.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConsentConfig {
    /// Tools a person is asked about.
    pub interrupt_on: InterruptOn,
    /// Rules about paths.
    pub permissions: Option<FilePermissions>,
    /// Lists of tools, if they are in force.
    pub guardrail: Option<(AllowlistProvider, GuardrailConfig)>,
}

impl ConsentConfig {
    pub(super) fn read(tree: &Node, tools: &ToolsConfig, findings: &mut Findings) -> Self {
        Self {
            interrupt_on: interrupt_on(tree, findings),
            permissions: permissions(tree, tools, findings),
            guardrail: guardrail(tree, findings),
        }
    }
}

fn section<'a>(tree: &'a Node, name: &str, findings: &Findings) -> Option<&'a Node> {
    tree.get(name).filter(|_| !findings.broken.contains(name))
}

fn interrupt_on(tree: &Node, findings: &mut Findings) -> InterruptOn {
    let Some(section) = section(tree, "interrupt_on", findings) else { return InterruptOn::default() };
    serde_json::from_value(section.to_json()).unwrap_or_else(|error| {
        // The error begins with the tool it is about.
        let text = error.to_string();
        let tool = text.split(':').next().unwrap_or_default();
        let mark = section.get(tool).unwrap_or(section).mark.clone();
        let help = "write `true`, `false`, or a map such as {allowed_decisions: [approve, reject]}";
        findings.problem(&mark, format!("interrupt_on.{text}"), help);
        InterruptOn::default()
    })
}

/// Rules for files, of the agent or of one of its subagents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileRules {
    pub rules: Vec<FilesystemPermission>,
    pub allow_bash: bool,
}

impl FileRules {
    /// What they say, or what is wrong with them and what to do.
    pub(crate) fn read(&self) -> Result<FilePermissions, (String, String)> {
        let rules = Permissions::new(self.rules.clone()).map_err(|error| match error {
            SandboxError::BadConfig { what, fix } => (what, fix),
            error => (error.to_string(), "see `hart config explain permissions`".to_owned()),
        })?;
        Ok(FilePermissions { rules, allow_bash: self.allow_bash })
    }
}

fn permissions(tree: &Node, tools: &ToolsConfig, findings: &mut Findings) -> Option<FilePermissions> {
    let section = section(tree, "permissions", findings)?;
    let mark = section.get("rules").unwrap_or(section).mark.clone();
    let written: FileRules = match serde_json::from_value(section.to_json()) {
        Ok(written) => written,
        Err(error) => {
            let help = "operations are read and write; modes are allow, deny and interrupt";
            findings.problem(&mark, format!("permissions.rules: {error}"), help);
            return None;
        }
    };
    let read = match written.read() {
        Ok(read) => read,
        Err((what, fix)) => {
            findings.problem(&mark, format!("permissions.rules: {what}"), fix);
            return None;
        }
    };
    if read.rules.is_empty() {
        return None;
    }
    if !read.allow_bash && tools.allows("bash") {
        let what = "permissions: the rules do not hold for commands, and the tool bash is on";
        let help =
            "list the tools without bash in `tools`, or set `permissions.allow_bash: true` if this is meant";
        findings.problem(&section.mark, what, help);
    }
    Some(read)
}

/// The names of the provider that is built in.
const ALLOWLIST: [&str; 2] = ["allowlist", "deerflow.guardrails.builtin:AllowlistProvider"];

#[derive(Deserialize)]
#[serde(default)]
struct GuardrailsSection {
    enabled: bool,
    fail_closed: bool,
    timeout_seconds: u64,
    provider: ProviderSection,
}

impl Default for GuardrailsSection {
    fn default() -> Self {
        let GuardrailConfig { fail_closed, timeout_seconds } = GuardrailConfig::default();
        Self { enabled: false, fail_closed, timeout_seconds, provider: ProviderSection::default() }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProviderSection {
    #[serde(rename = "use")]
    name: Option<String>,
    config: AllowlistProvider,
}

fn guardrail(tree: &Node, findings: &mut Findings) -> Option<(AllowlistProvider, GuardrailConfig)> {
    let section = section(tree, "guardrails", findings)?;
    let read: GuardrailsSection = match serde_json::from_value(section.to_json()) {
        Ok(read) => read,
        Err(error) => {
            findings.problem(
                &section.mark,
                format!("guardrails: {error}"),
                "see `hart config explain guardrails`",
            );
            return None;
        }
    };
    if !read.enabled {
        return None;
    }
    let provider = read.provider;
    match provider.name.as_deref() {
        Some(name) if !ALLOWLIST.contains(&name) => {
            let mark =
                section.get("provider").and_then(|node| node.get("use")).unwrap_or(section).mark.clone();
            let what = format!(
                "guardrails.provider.use: `{}` is not a provider this version has",
                name.escape_debug()
            );
            // A guard that is silently missing would be worse than none.
            findings.problem(&mark, what, "use `allowlist`, or set `guardrails.enabled: false`");
            None
        }
        _ => {
            let GuardrailsSection { fail_closed, timeout_seconds, .. } = read;
            if provider.config == AllowlistProvider::default() {
                let place = findings.place(&section.mark);
                findings.warn(
                    place,
                    "guardrails: it is on and has no list, so every call is allowed; set \
                     `guardrails.provider.config.allowed_tools` or `denied_tools`",
                );
            }
            Some((provider.config, GuardrailConfig { fail_closed, timeout_seconds }))
        }
    }
}
