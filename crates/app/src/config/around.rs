//! The sections of what the server does around conversations: files that come in, questions to ask next, polished
//! words, agents that are managed.
//!
//! Invariant: what is switched off is `None`.

use hart_gateway::UploadLimits;
use serde::Deserialize;

use super::middleware::named_model;
use super::node::Node;
use super::problem::Findings;
use super::section::{Invalid, checked, section};

#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AroundConfig {
    /// `uploads`.
    pub uploads: UploadLimits,
    pub suggestions: Option<SuggestionsConfig>,
    pub input_polish: Option<InputPolishConfig>,
    /// Whether agents of one's own are managed over HTTP.
    pub agents_api: bool,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AgentsApi {
    enabled: bool,
}

impl Default for AgentsApi {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// DeerFlow's `suggestions`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SuggestionsConfig {
    pub enabled: bool,
    /// How many at most.
    pub max_suggestions: u32,
    /// The model that is asked, one of `models`; the default one, without it.
    pub model_name: Option<String>,
}

impl Default for SuggestionsConfig {
    fn default() -> Self {
        Self { enabled: true, max_suggestions: 3, model_name: None }
    }
}

/// DeerFlow's `input_polish`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InputPolishConfig {
    pub enabled: bool,
    /// How long the words may be.
    pub max_chars: usize,
    pub model_name: Option<String>,
}

impl Default for InputPolishConfig {
    fn default() -> Self {
        Self { enabled: true, max_chars: 4000, model_name: None }
    }
}

impl AroundConfig {
    pub(super) fn read(tree: &Node, findings: &mut Findings) -> Self {
        let Uploads { max_files, max_file_size, max_total_size } = section(tree, "uploads", findings);
        let suggestions: SuggestionsConfig = checked(tree, "suggestions", findings, few);
        named_model(tree, "suggestions", "model_name", suggestions.model_name.as_deref(), findings);
        let input_polish: InputPolishConfig = section(tree, "input_polish", findings);
        named_model(tree, "input_polish", "model_name", input_polish.model_name.as_deref(), findings);
        Self {
            uploads: UploadLimits { max_files, max_file_size, max_total_size },
            suggestions: suggestions.enabled.then_some(suggestions),
            input_polish: input_polish.enabled.then_some(input_polish),
            agents_api: section::<AgentsApi>(tree, "agents_api", findings).enabled,
        }
    }
}

/// The limits in `uploads`; whether the model is told of uploads is the chain's.
#[derive(Deserialize)]
#[serde(default)]
struct Uploads {
    max_files: u32,
    max_file_size: u64,
    max_total_size: u64,
}

impl Default for Uploads {
    fn default() -> Self {
        let UploadLimits { max_files, max_file_size, max_total_size } = UploadLimits::default();
        Self { max_files, max_file_size, max_total_size }
    }
}

fn few(suggestions: &SuggestionsConfig) -> Result<(), Invalid> {
    const MOST: u32 = 5;
    match suggestions.max_suggestions {
        1..=MOST => Ok(()),
        count => Err(Invalid {
            key: "max_suggestions",
            what: format!("{count} suggestions are asked for, and there are 1 to {MOST}"),
            help: None,
        }),
    }
}
