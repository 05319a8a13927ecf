//! The configuration: parsed low, converted once, then frozen.
//!
//! Invariant: nothing past [`AppConfig::load`] reads a file, a variable or a default again.

mod agent;
mod around;
mod calls;
mod catalogue;
mod check;
mod consent;
mod explain;
mod file;
mod init;
mod merge;
mod middleware;
mod nearest;
mod node;
mod problem;
mod raw;
mod recording;
mod resolve;
mod secret;
mod section;
mod server;
mod skills;
mod subagents;
mod tools;
mod typed;

use std::fmt;
use std::path::PathBuf;

use hart_models::config::ModelConfig;
use hart_models::{HttpSettings, LimitSettings};
use hart_sandbox::SandboxConfig;
use hart_tools::ToolOutputConfig;
use serde_json::Value;

pub(crate) use agent::{AgentConfig, agent_settings, agent_text};
pub use around::{AroundConfig, InputPolishConfig, SuggestionsConfig};
pub use catalogue::{Key, Kind, catalogue};
pub use consent::{ConsentConfig, FileRules};
pub use explain::{Explanation, Origin};
pub use init::{TEMPLATE, init};
pub use middleware::MiddlewareConfig;
pub use problem::{ConfigError, Place, Problem, Warning};
pub use recording::RecordingConfig;
pub(crate) use secret::is_secret_name;
pub use server::ServerConfig;
pub(crate) use server::is_sendable;
pub use skills::{ReviewSettings, SkillsSettings};
pub use subagents::{DelegationConfig, RemoteEntry, SubagentEntry};
pub use tools::{BUILT_IN, ToolsConfig};
pub use typed::LogLevel;

use crate::Env;
use file::ReadFile;
use node::{Data, Entry, Mark, Node, Path};
use problem::Findings;
use section::section;

/// Everything hart was told, resolved. The first model is the default one.
#[non_exhaustive]
pub struct AppConfig {
    pub models: Vec<ModelConfig>,
    /// How models are called.
    pub calls: LimitSettings,
    /// How they are reached.
    pub network: HttpSettings,
    pub tools: ToolsConfig,
    pub sandbox: SandboxConfig,
    pub tool_output: ToolOutputConfig,
    pub read_before_write: bool,
    /// Whether commands are looked at before they run.
    pub sandbox_audit: bool,
    /// Whether that is also written to a file in the data directory.
    pub sandbox_audit_file: bool,
    /// The other parts of the chain.
    pub middleware: MiddlewareConfig,
    /// What a server does around conversations.
    pub around: AroundConfig,
    /// Who may do what.
    pub consent: ConsentConfig,
    /// Where skills are, how they are offered, who may write them.
    pub skills: SkillsSettings,
    /// To whom work is handed, and how much.
    pub delegation: DelegationConfig,
    /// Where `hart serve` listens, and who may ask it.
    pub server: ServerConfig,
    /// Whether runs are recorded, to be played again.
    pub recording: RecordingConfig,
    pub log_level: LogLevel,
    pub max_recursion_limit: u32,
    /// Where hart keeps its data, absolute if the working directory was.
    pub home: PathBuf,
    /// The file that was read, if any.
    pub source: Option<PathBuf>,
    /// What its writer may want to know; for the caller to log.
    pub warnings: Vec<Warning>,
    /// What must not be written down anywhere.
    pub(crate) secrets: Vec<String>,
    /// The tree all this was made from, secrets masked: what `explain` reads and `Debug` shows.
    shown: Node,
}

/// What [`AppConfig::load`] depends on.
#[derive(Clone)]
pub struct LoadOptions<'a> {
    /// A file the user named; it must exist.
    pub path: Option<PathBuf>,
    /// Where `config.yaml` and `.hart` are looked for, and what relative paths are relative to.
    pub cwd: PathBuf,
    pub env: &'a Env,
    /// A layer above the file: a map of sections.
    pub overrides: Option<Value>,
}

/// What [`AppConfig::check`] found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    pub source: Option<PathBuf>,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

impl Report {
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

impl AppConfig {
    /// Finds, reads, merges, resolves and checks the configuration; every problem it has is in the error.
    pub fn load(options: LoadOptions<'_>) -> Result<Self, ConfigError> {
        let mut findings = Findings::default();
        match Self::build(options, &mut findings) {
            Some(config) => config.accepted(findings),
            None => Err(findings.into_error()),
        }
    }

    fn accepted(mut self, mut findings: Findings) -> Result<Self, ConfigError> {
        if !findings.problems.is_empty() {
            return Err(findings.into_error());
        }
        findings.finish();
        self.warnings = findings.warnings;
        Ok(self)
    }

    /// The file as it is written, variables and all; `None` where there is none.
    pub(crate) fn raw(options: LoadOptions<'_>) -> Result<Option<Value>, ConfigError> {
        let mut findings = Findings::default();
        match file::read(options.path, &options.cwd, options.env) {
            Ok(read) => Ok(read.map(|read| read.tree.to_json())),
            Err(problem) => {
                findings.problems.push(problem);
                Err(findings.into_error())
            }
        }
    }

    /// As [`AppConfig::load`], with `settings` in the place of a file: none is looked for.
    pub fn without_file(settings: Value, cwd: PathBuf, env: &Env) -> Result<Self, ConfigError> {
        let mut findings = Findings::default();
        let config = Self::assemble(None, &cwd, env, Some(settings), &mut findings);
        config.accepted(findings)
    }

    /// As [`AppConfig::load`], for `hart config check`: all there is to say, and no configuration.
    #[must_use]
    pub fn check(options: LoadOptions<'_>) -> Report {
        let mut findings = Findings::default();
        let source = Self::build(options, &mut findings).and_then(|config| config.source);
        findings.finish();
        Report { source, problems: findings.problems, warnings: findings.warnings }
    }

    #[must_use]
    pub fn default_model(&self) -> Option<&ModelConfig> {
        self.models.first()
    }

    #[must_use]
    pub fn model(&self, name: &str) -> Option<&ModelConfig> {
        self.models.iter().find(|model| model.name == name)
    }

    /// `None` when there is nothing to go on with; otherwise usable only if no problem was found.
    fn build(options: LoadOptions<'_>, findings: &mut Findings) -> Option<Self> {
        let LoadOptions { path, cwd, env, overrides } = options;
        match file::read(path, &cwd, env) {
            Ok(read) => Some(Self::assemble(read, &cwd, env, overrides, findings)),
            Err(problem) => {
                findings.problems.push(problem);
                None
            }
        }
    }

    fn assemble(
        read: Option<ReadFile>,
        cwd: &std::path::Path,
        env: &Env,
        overrides: Option<Value>,
        findings: &mut Findings,
    ) -> Self {
        let (source, file) = match read {
            Some(read) => {
                findings.file = Some(read.label);
                (Some(read.path), read.tree)
            }
            None => (None, Node::empty_map()),
        };
        let mut tree = overlay(file, overrides, findings);

        let mut unused = Vec::new();
        // `tools` checks itself: which of its keys mean something depends on the tool.
        let tools_section = tree.take("tools");
        let tools = ToolsConfig::read(tools_section.as_ref(), findings, &mut unused);
        check::shape(&mut tree, &Path::default(), findings, &mut unused);
        resolve::resolve(&mut tree, &Path::default(), env, findings);
        check::types(&mut tree, &Path::default(), findings);
        warn_unused(&unused, findings);
        explain::collect_secrets(&tree, &Path::default(), findings);

        let mut models = typed::models(&mut tree, env, findings);
        let calls = calls::limits(&tree);
        let network = calls::network(&tree, env, cwd, findings);
        calls::finish(&mut models, &tree, &calls.retry, cwd, findings);
        let sandbox = typed::sandbox(&tree, findings);
        let tool_output = typed::tool_output(&tree, findings);
        let read_before_write = section::<typed::ReadBeforeWrite>(&tree, "read_before_write", findings);
        let audit = section::<typed::SandboxAudit>(&tree, "sandbox_audit", findings);
        let middleware = MiddlewareConfig::read(&tree, findings);
        let around = AroundConfig::read(&tree, findings);
        let consent = ConsentConfig::read(&tree, &tools, findings);
        let delegation = DelegationConfig::read(&tree, findings);
        let server = ServerConfig::read(&tree, env, findings);
        let home = cwd.join(env.get_non_empty("HART_HOME").unwrap_or(".hart"));
        let skills = SkillsSettings::read(&tree, cwd, source.as_deref(), &home, findings);
        let recording = RecordingConfig::read(&tree, findings);
        let log_level = typed::log_level(&tree);
        let max_recursion_limit = typed::max_recursion_limit(&tree);
        if let (Some(value), Data::Map(entries)) = (tools_section, &mut tree.data) {
            entries.push(Entry { key: "tools".to_owned(), key_mark: Mark::default(), value });
        }
        explain::mask(&mut tree, &Path::default(), false);
        let warnings = Vec::new();
        let secrets = findings.secrets.iter().map(|(secret, _)| secret.clone()).collect();
        Self {
            models,
            calls,
            network,
            tools,
            sandbox,
            tool_output,
            read_before_write: read_before_write.enabled,
            sandbox_audit: audit.enabled,
            sandbox_audit_file: audit.log_file,
            middleware,
            around,
            consent,
            skills,
            delegation,
            server,
            recording,
            secrets,
            log_level,
            max_recursion_limit,
            home,
            source,
            warnings,
            shown: tree,
        }
    }
}

fn overlay(file: Node, overrides: Option<Value>, findings: &mut Findings) -> Node {
    match overrides {
        None | Some(Value::Null) => file,
        Some(map @ Value::Object(_)) => merge::merge(file, Node::from_json(map)),
        Some(_) => {
            findings.problem(&Mark::default(), "overrides must be a map of sections", "pass a JSON object");
            file
        }
    }
}

fn warn_unused(unused: &[String], findings: &mut Findings) {
    let (keys, sections): (Vec<&str>, Vec<&str>) =
        unused.iter().map(String::as_str).partition(|path| path.contains(['.', '[']));
    for (what, names) in [("sections", sections), ("keys", keys)] {
        if !names.is_empty() {
            let place = findings.whole_file();
            findings.warn(place, format!("{what} not used by this version: {}", names.join(", ")));
        }
    }
}

impl fmt::Debug for LoadOptions<'_> {
    /// Only says whether there are overrides: they may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("path", &self.path)
            .field("cwd", &self.cwd)
            .field("env", self.env)
            .field("overrides", &self.overrides.is_some())
            .finish()
    }
}

impl fmt::Debug for AppConfig {
    /// Shows the masked tree: the parts hold header values and variables that their own `Debug` does not hide.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppConfig")
            .field("source", &self.source)
            .field("home", &self.home)
            .field("tools", &self.tools)
            .field("log_level", &self.log_level)
            .field("max_recursion_limit", &self.max_recursion_limit)
            .field("set", &format_args!("{}", self.shown.to_json()))
            .finish_non_exhaustive()
    }
}
