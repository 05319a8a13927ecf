//! What a key is set to, and who set it.
//!
//! Invariant: it reads the masked tree only, so no answer can hold a secret.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::catalogue::{self, Key, Kind};
use super::nearest::nearest;
use super::node::{Data, Mark, Node, Path, Step};
use super::problem::{Findings, Place, Problem};
use super::secret::{is_opaque_map, is_secret_name, shown};
use super::{AppConfig, ConfigError};

/// One key, for `hart config explain`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    pub path: String,
    /// The effective value, secrets masked; `None` when there is none.
    pub value: Option<Value>,
    pub origin: Origin,
    /// What the key means; empty for keys the user invented (variables, request options).
    pub doc: &'static str,
    /// What a value must be, in words.
    pub kind: String,
    pub used: bool,
}

/// Who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: u64 },
    Env(String),
    Override,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::Override => f.write_str("override"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}", self.path)?,
            None => write!(f, "{} (not set)", self.path)?,
        }
        write!(f, "\n  from: {}\n  type: {}", self.origin, self.kind)?;
        if !self.used {
            f.write_str("\n  not used by this version")?;
        }
        if !self.doc.is_empty() {
            write!(f, "\n  {}", self.doc)?;
        }
        Ok(())
    }
}

impl AppConfig {
    /// The value at `path` (`sandbox.mounts`, `models[0].api_key`, or the pattern `models[].api_key`).
    pub fn explain(&self, path: &str) -> Result<Explanation, ConfigError> {
        let parsed = Path::parse(path);
        if let Some(parsed) = &parsed {
            if let Some(node) = self.shown.find(parsed) {
                return Ok(self.explain_node(parsed, node));
            }
            if let Some(problem) = self.beyond_the_list(parsed) {
                return Err(problem.into());
            }
        }
        let pattern = parsed.map_or_else(|| path.to_owned(), |parsed| parsed.pattern());
        match catalogue::find(&pattern) {
            Some(key) => Ok(absent(path, key)),
            None => Err(unknown(path, &pattern).into()),
        }
    }

    /// The value at `path`, and below it every key that may stand there.
    pub fn explain_below(&self, path: &str) -> Result<Vec<Explanation>, ConfigError> {
        let mut all = vec![self.explain(path)?];
        let pattern = Path::parse(path).map_or_else(|| path.to_owned(), |parsed| parsed.pattern());
        for (parent, shown) in
            [(pattern.clone(), path.to_owned()), (format!("{pattern}[]"), format!("{path}[]"))]
        {
            for key in catalogue::children(&parent) {
                let name = format!("{shown}.{}", catalogue::split(&key.path).1);
                all.push(self.explain(&name).unwrap_or_else(|_| absent(&name, key)));
            }
        }
        Ok(all)
    }

    /// Every key with a value or a default, in the order of the catalogue.
    #[must_use]
    pub fn explain_all(&self) -> Vec<Explanation> {
        let mut all = Vec::new();
        let keys = catalogue::catalogue().iter().filter(|key| key.used && !key.path.contains("[]"));
        for key in keys.filter(|key| key.kind != Kind::Section) {
            let Some(path) = Path::parse(&key.path) else { continue };
            match self.shown.find(&path) {
                Some(node) => self.leaves(&path, node, &mut all),
                None => all.push(absent(&key.path, key)),
            }
        }
        all
    }

    fn leaves(&self, path: &Path, node: &Node, into: &mut Vec<Explanation>) {
        match &node.data {
            Data::List(items) if items.iter().any(|item| matches!(item.data, Data::Map(_))) => {
                for (index, item) in items.iter().enumerate() {
                    self.leaves(&path.index(index), item, into);
                }
            }
            Data::Map(entries) if !entries.is_empty() => {
                for entry in entries {
                    self.leaves(&path.key(&entry.key), &entry.value, into);
                }
            }
            _ => into.push(self.explain_node(path, node)),
        }
    }

    fn explain_node(&self, path: &Path, node: &Node) -> Explanation {
        let key = catalogue::find(&path.pattern());
        Explanation {
            path: path.to_string(),
            value: Some(node.to_json()),
            origin: self.origin(&node.mark),
            doc: key.map_or("", |key| key.doc),
            kind: key.map_or(Kind::Any, |key| key.kind).to_string(),
            used: key.is_none_or(|key| key.used),
        }
    }

    fn origin(&self, mark: &Mark) -> Origin {
        match (mark, &self.source) {
            (Mark { var: Some(var), .. }, _) => Origin::Env(var.clone()),
            (Mark { pos: Some(pos), .. }, Some(path)) => Origin::File { path: path.clone(), line: pos.line },
            _ => Origin::Override,
        }
    }

    fn beyond_the_list(&self, path: &Path) -> Option<Problem> {
        let at = path.0.iter().position(|step| matches!(step, Step::Index(_)))?;
        let list = Path(path.0.iter().take(at).cloned().collect());
        let length = self.shown.find(&list).map_or(0, |node| node.items().len());
        let Some(Step::Index(index)) = path.0.get(at) else { return None };
        let missing = *index >= length && catalogue::find(&list.pattern()).is_some();
        missing.then(|| {
            Problem::new(format!("{list}[{index}]: there is no such element"), Place::Nowhere)
                .help(format!("`{list}` has {length}; write `{list}[]` to read about its keys"))
        })
    }
}

fn absent(path: &str, key: &Key) -> Explanation {
    let value = (!key.default.is_empty() && !key.path.contains("[]"))
        .then(|| serde_json::from_str(key.default).unwrap_or_else(|_| Value::from(key.default)));
    Explanation {
        path: path.to_owned(),
        value,
        origin: Origin::Default,
        doc: key.doc,
        kind: key.kind.to_string(),
        used: key.used,
    }
}

fn unknown(path: &str, pattern: &str) -> Problem {
    let (parent, name) = catalogue::split(pattern);
    let named = |near: &str| catalogue::children(parent).find(|key| catalogue::split(&key.path).1 == near);
    let near = nearest(name, catalogue::children(parent).map(|key| catalogue::split(&key.path).1))
        .and_then(named)
        .map(|key| &*key.path)
        .or_else(|| nearest(pattern, catalogue::catalogue().iter().map(|key| &*key.path)));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Problem::new(format!("{}: unknown key{hint}", path.escape_debug()), Place::Nowhere)
        .help("`hart config explain` lists all keys")
}

/// Replaces what must not be shown; `hidden` when a map above hides all it holds.
pub(super) fn mask(node: &mut Node, path: &Path, hidden: bool) {
    let secret = hidden || is_secret(node, path);
    match &mut node.data {
        Data::List(items) => {
            items.iter_mut().enumerate().for_each(|(index, item)| mask(item, &path.index(index), hidden));
        }
        Data::Map(entries) => {
            for entry in entries {
                mask(&mut entry.value, &path.key(&entry.key), hidden || is_opaque_map(&entry.key));
            }
        }
        Data::Scalar(value) => *value = shown(value, secret),
    }
}

/// Remembers every literal secret, so that no message of a lower layer can repeat it.
pub(super) fn collect_secrets(node: &Node, path: &Path, findings: &mut Findings) {
    match &node.data {
        Data::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_secrets(item, &path.index(index), findings);
            }
        }
        Data::Map(entries) => {
            for entry in entries {
                collect_secrets(&entry.value, &path.key(&entry.key), findings);
            }
        }
        Data::Scalar(value) => {
            let in_opaque = path.0.iter().any(|step| matches!(step, Step::Key(key) if is_opaque_map(key)));
            let masked = shown(value, in_opaque || is_secret(node, path));
            if let (Value::String(text), Value::String(masked)) = (value, masked)
                && *text != masked
            {
                findings.secrets.push((text.clone(), masked));
            }
        }
    }
}

/// By its name or its variable's, unless it can only be a number or a word hart knows; and any value from a variable
/// where the catalogue does not vouch for the field.
fn is_secret(node: &Node, path: &Path) -> bool {
    let named = path.0.iter().any(|step| matches!(step, Step::Key(key) if is_secret_name(key)));
    let known = catalogue::find(&path.pattern()).filter(|key| key.used);
    let plain = |key: &Key| {
        matches!(key.kind, Kind::Bool | Kind::Int { .. } | Kind::Number | Kind::Seconds | Kind::Choice(_))
    };
    let var = node.mark.var.as_deref();
    (named && !known.is_some_and(plain)) || var.is_some_and(|var| known.is_none() || is_secret_name(var))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
