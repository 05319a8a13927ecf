//! Which paths an agent's file tools may read and write: ordered rules of globs.
//!
//! Invariant: the first rule that names the operation and matches the path decides; without one the answer is yes.
//!
//! A rule that denies or asks also covers what is below a directory it matches, and a leading dot in a name is matched
//! like any other character: a rule about `/mnt/user-data/uploads/*` must not be evaded by `.env` or by a folder.

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use crate::error::{Result, SandboxError};
use crate::path::VPath;

/// One rule, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesystemPermission {
    pub operations: Vec<Operation>,
    /// Absolute, with `*`, `?`, `[…]`, `{a,b}` and `**`.
    pub paths: Vec<String>,
    #[serde(default)]
    pub mode: PermissionMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Read,
    Write,
}

impl Operation {
    /// To follow "may not be".
    pub fn participle(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "changed",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PermissionMode {
    #[default]
    Allow,
    Deny,
    /// A person decides, call by call.
    Interrupt,
}

/// The rules, compiled.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<Operation>,
    mode: PermissionMode,
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: String,
    matcher: GlobMatcher,
    /// The directory above the first wildcard: everything that can match is below it.
    anchor: String,
}

impl Permissions {
    pub fn new(rules: Vec<FilesystemPermission>) -> Result<Self> {
        let rules =
            rules.into_iter().enumerate().map(|(at, rule)| Rule::compile(at, rule)).collect::<Result<_>>()?;
        Ok(Self { rules })
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What the rules say about one path.
    pub fn decide(&self, operation: Operation, path: &VPath) -> PermissionMode {
        self.deciding(operation, path).map_or(PermissionMode::Allow, |(mode, _)| mode)
    }

    /// Whether a person must be asked about something somewhere.
    pub fn asks(&self) -> bool {
        self.rules.iter().any(|rule| rule.mode == PermissionMode::Interrupt)
    }

    /// Whether a person must be asked before something that touches all below `dir` is done.
    pub fn asks_below(&self, operation: Operation, dir: &VPath) -> bool {
        self.may_match_below(operation, PermissionMode::Interrupt, dir).is_some()
    }

    /// Refuses what is denied.
    pub(crate) fn check(&self, operation: Operation, path: &VPath) -> Result<()> {
        match self.deciding(operation, path) {
            Some((PermissionMode::Deny, rule)) => Err(forbidden(operation, path, rule)),
            _ => Ok(()),
        }
    }

    /// Refuses an operation on a whole directory if a rule may protect something in it, whatever comes before it.
    pub(crate) fn check_below(&self, operation: Operation, dir: &VPath) -> Result<()> {
        match self.may_match_below(operation, PermissionMode::Deny, dir) {
            Some(rule) => Err(forbidden(operation, dir, rule)),
            None => Ok(()),
        }
    }

    fn deciding(&self, operation: Operation, path: &VPath) -> Option<(PermissionMode, &str)> {
        let rules = self.rules.iter().filter(|rule| rule.operations.contains(&operation));
        rules.into_iter().find_map(|rule| {
            let below = rule.mode != PermissionMode::Allow;
            let pattern = rule.patterns.iter().find(|pattern| pattern.matches(path.as_str(), below))?;
            Some((rule.mode, pattern.text.as_str()))
        })
    }

    fn may_match_below(&self, operation: Operation, mode: PermissionMode, dir: &VPath) -> Option<&str> {
        let rules =
            self.rules.iter().filter(|rule| rule.mode == mode && rule.operations.contains(&operation));
        let mut patterns = rules.flat_map(|rule| &rule.patterns);
        patterns.find(|pattern| pattern.may_match_below(dir)).map(|pattern| pattern.text.as_str())
    }
}

impl Rule {
    fn compile(at: usize, rule: FilesystemPermission) -> Result<Self> {
        let bad = |what: String, fix: &str| SandboxError::BadConfig {
            what: format!("rule {}: {what}", at + 1),
            fix: fix.to_owned(),
        };
        if rule.operations.is_empty() || rule.paths.is_empty() {
            return Err(bad(
                "it names no operation or no path".to_owned(),
                "give it `operations` and `paths`",
            ));
        }
        let patterns = rule.paths.into_iter().map(|text| {
            let parts = || text.split('/');
            if !text.starts_with('/') || parts().any(|part| part == ".." || part.starts_with('~')) {
                let what = format!("`{text}` is not an absolute path without `..` and `~`");
                return Err(bad(what, "write it from the root, such as /mnt/user-data/uploads/**"));
            }
            let glob = GlobBuilder::new(&text).literal_separator(true).build();
            let glob = glob.map_err(|error| bad(error.to_string(), "correct the pattern"))?;
            let anchor: Vec<&str> = parts().take_while(|part| !part.contains(['*', '?', '[', '{'])).collect();
            let anchor = anchor.join("/");
            Ok(Pattern { matcher: glob.compile_matcher(), anchor, text })
        });
        Ok(Self { operations: rule.operations, mode: rule.mode, patterns: patterns.collect::<Result<_>>()? })
    }
}

impl Pattern {
    fn matches(&self, path: &str, or_above: bool) -> bool {
        let mut path = path;
        loop {
            if self.matcher.is_match(path) {
                return true;
            }
            match path.rsplit_once('/') {
                Some((parent, _)) if or_above && !parent.is_empty() => path = parent,
                _ => return false,
            }
        }
    }

    fn may_match_below(&self, dir: &VPath) -> bool {
        let anchor = self.anchor.as_str();
        let anchor_below =
            anchor.strip_prefix(dir.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        anchor.is_empty() || anchor_below || dir.is_under(anchor)
    }
}

fn forbidden(operation: Operation, path: &VPath, rule: &str) -> SandboxError {
    SandboxError::Forbidden { path: path.clone(), operation, rule: rule.to_owned() }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
