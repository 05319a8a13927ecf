//! Finds out what an endpoint really does, by asking it.
//!
//! Invariant: a probe ends: every request is limited in tokens and time, and their number is known beforehand.

mod ask;
mod checks;
mod profile;

use hart_kernel::Timestamp;

pub use profile::{Check, Outcome, Profile};

use crate::config::ModelConfig;
use ask::Asker;

/// How large the prompt of the check of long contexts is unless told.
pub const DEFAULT_CONTEXT: u32 = 8_000;
/// No answer of a probe is longer; a model that thinks needs room for it.
const MAX_ANSWER: u32 = 2_048;
/// What the prompts of all other checks come to, roughly.
const PROMPTS: u32 = 4_000;
/// Requests when everything is asked and nothing repeated.
const REQUESTS: u32 = 17;

/// What a probe will cost at most, to be said before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    pub requests: u32,
    pub input_tokens: u32,
    /// Far more than most models use: their answers are short.
    pub output_tokens: u32,
}

/// How a probe is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Tokens of the long prompt.
    pub context: u32,
    pub now: Timestamp,
}

/// What [`probe`] will cost at most.
pub fn estimate(context: u32) -> Estimate {
    Estimate {
        requests: REQUESTS,
        input_tokens: context.saturating_add(PROMPTS),
        output_tokens: REQUESTS * MAX_ANSWER,
    }
}

/// Asks the model of `config` one thing after the other, telling each result as it comes.
pub async fn probe(
    config: &ModelConfig,
    http: &reqwest::Client,
    options: ProbeOptions,
    progress: &(dyn Fn(&Check) + Sync),
) -> Profile {
    let mut probing = Probing {
        profile: Profile::new(config, options.now.to_string()),
        asker: Asker::new(config, http),
        progress,
    };
    probing.run(options.context).await;
    probing.profile
}

/// A probe under way.
struct Probing<'a> {
    profile: Profile,
    asker: Asker,
    progress: &'a (dyn Fn(&Check) + Sync),
}

impl Probing<'_> {
    fn note(&mut self, name: &str, (outcome, evidence): (Outcome, String)) -> Outcome {
        let check = Check { name: name.to_owned(), outcome, evidence };
        (self.progress)(&check);
        self.profile.checks.push(check);
        outcome
    }
}
