//! `skills`, `skill_scan`, `skill_evolution`: where skills are, how they are offered, who may write them.
//!
//! Invariant: what is switched off is `None` or `false`; a path is relative to where the configuration was looked for.

use std::path::{Path, PathBuf};

use hart_agent::SkillsConfig;
use serde::Deserialize;

use super::middleware::named_model;
use super::node::Node;
use super::problem::Findings;
use super::section::section;

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SkillsSettings {
    /// How they are offered; `None` is not at all.
    pub offered: Option<SkillsConfig>,
    /// The operator's own folder instead of the one in the data directory.
    pub path: Option<PathBuf>,
    pub lock: bool,
    pub scan: bool,
    /// Whether agents may write skills.
    pub evolution: bool,
    /// Who looks at what is written or taken in.
    pub review: ReviewSettings,
    /// `extensions_config.json`: which skills are on.
    pub states: PathBuf,
}

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReviewSettings {
    /// The model that reviews; without it the one that answers.
    pub model: Option<String>,
    pub fail_closed: bool,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Skills {
    enabled: bool,
    path: Option<PathBuf>,
    prompt_tokens: u32,
    deferred_discovery: bool,
    lock: bool,
}

impl Default for Skills {
    fn default() -> Self {
        let SkillsConfig { enabled, prompt_tokens, deferred_discovery } = SkillsConfig::default();
        Self { enabled, path: None, prompt_tokens, deferred_discovery, lock: true }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Scan {
    enabled: bool,
}

impl Default for Scan {
    fn default() -> Self {
        Self { enabled: true }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Evolution {
    enabled: bool,
    moderation_model_name: Option<String>,
    security_fail_closed: bool,
}

impl Default for Evolution {
    fn default() -> Self {
        Self { enabled: false, moderation_model_name: None, security_fail_closed: true }
    }
}

/// Where DeerFlow's own installation keeps it.
const STATES: &str = "extensions_config.json";

impl SkillsSettings {
    /// What was in the data directory is where that is now.
    pub(crate) fn moved(&mut self, from: &Path, to: &Path) {
        if self.states == from.join(STATES) {
            self.states = to.join(STATES);
        }
    }

    pub(super) fn read(
        tree: &Node,
        cwd: &Path,
        source: Option<&Path>,
        home: &Path,
        findings: &mut Findings,
    ) -> Self {
        let Skills { enabled, path, prompt_tokens, deferred_discovery, lock } =
            section(tree, "skills", findings);
        let scan: Scan = section(tree, "skill_scan", findings);
        let evolution: Evolution = section(tree, "skill_evolution", findings);
        let reviewer = evolution.moderation_model_name;
        named_model(tree, "skill_evolution", "moderation_model_name", reviewer.as_deref(), findings);
        let offered = SkillsConfig { enabled, prompt_tokens, deferred_discovery };
        let path = path.map(|path| cwd.join(path));
        if let Some(path) = path.as_ref().filter(|path| !path.is_dir()) {
            let place = findings.whole_file();
            findings.warn(
                place,
                format!("skills.path: there is no folder {}, so no skill is found", path.display()),
            );
        }
        // Beside the configuration, where DeerFlow has it; in the data directory where there is none yet.
        let beside = source.and_then(Path::parent).unwrap_or(cwd).join(STATES);
        Self {
            offered: enabled.then_some(offered),
            path,
            lock,
            scan: scan.enabled,
            evolution: evolution.enabled,
            review: ReviewSettings { model: reviewer, fail_closed: evolution.security_fail_closed },
            states: if beside.is_file() { beside } else { home.join(STATES) },
        }
    }
}
