//! Which tools a person is asked about, and how: the configuration `interrupt_on`.
//!
//! Invariant: a tool that is not named, or named with `false`, runs unasked; whether a call is asked about depends on
//! the call alone, so that it is the same when the run is resumed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use globset::{Glob, GlobMatcher};
use hart_types::ToolCall;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::DecisionKind;

/// Tool → `true`, `false`, or `{allowed_decisions, description, when}`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct InterruptOn {
    tools: BTreeMap<String, ToolReview>,
}

/// How a tool's calls are reviewed.
#[derive(Clone)]
pub struct ToolReview {
    allowed: Vec<DecisionKind>,
    description: Option<Description>,
    when: Option<When>,
}

type Description = Arc<dyn Fn(&ToolCall) -> String + Send + Sync>;
type When = Arc<dyn Fn(&ToolCall) -> bool + Send + Sync>;

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tool}: {why}")]
pub struct InterruptOnError {
    pub tool: String,
    pub why: String,
}

impl InterruptOn {
    /// Asks about calls of this tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, review: ToolReview) -> Self {
        self.tools.insert(name.into(), review);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tools that are asked about.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// The review of a call, if it needs one. `own` gives a tool's own name for any it goes by: neither the model nor
    /// the configuration need use that one.
    pub(crate) fn review(&self, call: &ToolCall, own: impl Fn(&str) -> String) -> Option<&ToolReview> {
        let called = own(&call.name);
        let named = self.tools.iter().filter(|(name, _)| **name == call.name || own(name) == called);
        named.map(|(_, review)| review).find(|review| review.holds(call))
    }
}

impl ToolReview {
    /// Everything may be decided, about every call.
    pub fn new() -> Self {
        Self::allowing(DecisionKind::ALL)
    }

    pub fn allowing(decisions: impl IntoIterator<Item = DecisionKind>) -> Self {
        Self { allowed: decisions.into_iter().collect(), description: None, when: None }
    }

    /// What the person reads beside the call.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.description = Some(Arc::new(move |_| text.clone()));
        self
    }

    /// The same, made from the call.
    #[must_use]
    pub fn describe(mut self, describe: impl Fn(&ToolCall) -> String + Send + Sync + 'static) -> Self {
        self.description = Some(Arc::new(describe));
        self
    }

    /// Asks only about calls for which this holds. It is called again when the run is resumed, and must say the same.
    #[must_use]
    pub fn when(mut self, holds: impl Fn(&ToolCall) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(holds));
        self
    }

    pub(crate) fn allowed(&self) -> &[DecisionKind] {
        &self.allowed
    }

    pub(crate) fn describes(&self, call: &ToolCall) -> String {
        match &self.description {
            Some(describe) => describe(call),
            None => format!("`{}` needs approval before it runs.", call.name),
        }
    }

    pub(crate) fn holds(&self, call: &ToolCall) -> bool {
        self.when.as_ref().is_none_or(|when| when(call))
    }
}

impl Default for ToolReview {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ToolReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolReview").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl TryFrom<Map<String, Value>> for InterruptOn {
    type Error = InterruptOnError;

    fn try_from(entries: Map<String, Value>) -> Result<Self, InterruptOnError> {
        let mut all = Self::default();
        for (tool, entry) in entries {
            if let Some(review) = read(&entry).map_err(|why| InterruptOnError { tool: tool.clone(), why })? {
                all.tools.insert(tool, review);
            }
        }
        Ok(all)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    allowed_decisions: Vec<DecisionKind>,
    description: Option<String>,
    /// Argument → glob, or several of which one must match.
    #[serde(default)]
    when: BTreeMap<String, Globs>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Globs {
    One(String),
    Any(Vec<String>),
}

fn read(entry: &Value) -> Result<Option<ToolReview>, String> {
    match entry {
        Value::Bool(false) => Ok(None),
        Value::Bool(true) => Ok(Some(ToolReview::new())),
        Value::Object(map) if !map.contains_key("allowed_decisions") => {
            Err("a map needs `allowed_decisions`, such as [approve, reject]; or write `true` for all of them"
                .to_owned())
        }
        Value::Object(_) => {
            let Entry { allowed_decisions, description, when } =
                Entry::deserialize(entry).map_err(|error| error.to_string())?;
            if allowed_decisions.is_empty() {
                return Err(
                    "`allowed_decisions` is empty, so nobody could ever answer; name at least one".to_owned()
                );
            }
            let mut review = ToolReview::allowing(allowed_decisions);
            if let Some(text) = description {
                review = review.description(text);
            }
            if !when.is_empty() {
                let when = compile(when)?;
                review = review.when(move |call| when.iter().all(|(name, globs)| matches(call, name, globs)));
            }
            Ok(Some(review))
        }
        other => Err(format!("expected true, false or a map, found {other}")),
    }
}

fn compile(when: BTreeMap<String, Globs>) -> Result<Vec<(String, Vec<GlobMatcher>)>, String> {
    let compile =
        |text: &String| Glob::new(text).map(|glob| glob.compile_matcher()).map_err(|error| error.to_string());
    when.into_iter()
        .map(|(name, globs)| {
            let globs = match globs {
                Globs::One(text) => vec![text],
                Globs::Any(texts) => texts,
            };
            Ok((name, globs.iter().map(compile).collect::<Result<_, String>>()?))
        })
        .collect()
}

/// An argument that is not there is asked about: nobody can say that it is harmless.
fn matches(call: &ToolCall, name: &str, globs: &[GlobMatcher]) -> bool {
    match call.args.get(name) {
        None => true,
        Some(Value::String(text)) => globs.iter().any(|glob| glob.is_match(text)),
        Some(other) => globs.iter().any(|glob| glob.is_match(other.to_string())),
    }
}
