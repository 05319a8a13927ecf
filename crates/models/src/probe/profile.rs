//! What a probe found, as it is kept.
//!
//! Invariant: a profile holds for one model at one address; anywhere else it is ignored.

use serde::{Deserialize, Serialize};

use crate::catalogue::Facts;
use crate::config::ModelConfig;

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Without a password that it may hold.
    pub base_url: String,
    /// What the provider calls it.
    pub model: String,
    pub provider: String,
    /// RFC 3339.
    pub probed_at: String,
    pub checks: Vec<Check>,
    /// What follows from the checks.
    pub facts: Facts,
}

/// One check and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub outcome: Outcome,
    /// What was seen.
    pub evidence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Yes,
    No,
    /// Nothing can be concluded.
    Unclear,
}

impl Profile {
    pub(super) fn new(config: &ModelConfig, probed_at: String) -> Self {
        Self {
            base_url: config.base_url.to_string(),
            model: config.model.clone(),
            provider: config.provider.to_owned(),
            probed_at,
            checks: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// Whether it is of this model at this address.
    pub fn is_of(&self, config: &ModelConfig) -> bool {
        self.model == config.model && self.base_url == config.base_url.to_string()
    }

    /// The day of the probe.
    pub fn day(&self) -> &str {
        self.probed_at.split('T').next().unwrap_or_default()
    }

    /// Whether the model answered at all.
    pub fn talks(&self) -> bool {
        self.outcome("answers") == Some(Outcome::Yes)
    }

    pub fn outcome(&self, name: &str) -> Option<Outcome> {
        self.checks.iter().find(|check| check.name == name).map(|check| check.outcome)
    }
}
