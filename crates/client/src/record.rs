//! What is remembered: threads, runs, files, models, as a client lists them.
//!
//! Invariant: each is read from LangGraph's JSON; what that does not have is hart's own beside it.

use std::path::PathBuf;

use hart_types::{Interrupt, RunId, RunStatus, ThreadId, ThreadStatus, UsageMetadata};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::values::Values;

/// One line of a list of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ThreadSummary {
    /// The name it was begun under, or its id.
    pub id: ThreadId,
    /// Where a middleware gave it one.
    pub title: Option<String>,
    pub status: ThreadStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ThreadSummary {
    pub fn new(id: ThreadId, status: ThreadStatus, created_at: Timestamp, updated_at: Timestamp) -> Self {
        Self { id, title: None, status, created_at, updated_at }
    }
}

/// A thread, looked at without running it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThreadState {
    pub id: ThreadId,
    /// What it has come to; [`Values::to_json`] is the `values` object.
    pub values: Values,
    /// What it waits to be told; empty unless it paused.
    pub interrupts: Vec<Interrupt>,
}

impl ThreadState {
    pub fn new(id: ThreadId, values: Values, interrupts: Vec<Interrupt>) -> Self {
        Self { id, values, interrupts }
    }

    pub fn interrupts(&self) -> &[Interrupt] {
        &self.interrupts
    }
}

/// One execution of an agent on a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunInfo {
    #[serde(rename = "run_id")]
    pub id: RunId,
    #[serde(rename = "thread_id")]
    pub thread: ThreadId,
    /// What its user calls the thread, if that is not its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_name: Option<ThreadId>,
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(rename = "usage_metadata", default)]
    pub usage: UsageMetadata,
    #[serde(rename = "llm_call_count", default)]
    pub model_calls: u64,
    /// In the currency of the models' prices, where they are known.
    #[serde(rename = "total_cost", default)]
    pub cost: Option<f64>,
}

impl RunInfo {
    pub fn new(id: RunId, thread: ThreadId, status: RunStatus, at: (Timestamp, Timestamp)) -> Self {
        let (created_at, updated_at) = at;
        let usage = UsageMetadata::default();
        let (thread_name, error, model_calls, cost) = Default::default();
        Self { id, thread, thread_name, status, error, created_at, updated_at, usage, model_calls, cost }
    }

    /// Its thread, as its user calls it.
    pub fn called(&self) -> &ThreadId {
        self.thread_name.as_ref().unwrap_or(&self.thread)
    }
}

/// A file the agent handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// As the agent calls it.
    pub path: String,
    pub location: Location,
}

/// Where to get a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    File(PathBuf),
    Url(String),
}

impl Artifact {
    pub fn new(path: impl Into<String>, location: Location) -> Self {
        Self { path: path.into(), location }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

/// A model to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    pub name: String,
    pub provider: String,
    /// What the provider calls it.
    pub model: String,
    #[serde(default)]
    pub description: Option<String>,
    /// Why it can be had.
    pub reason: String,
    pub is_default: bool,
}

impl ModelInfo {
    pub fn new(name: impl Into<String>, provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: provider.into(),
            model: model.into(),
            description: None,
            reason: String::new(),
            is_default: false,
        }
    }
}
