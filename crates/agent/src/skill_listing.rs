//! What the prompt says of skills: all of them while that is short, the fitting ones when it is not.
//!
//! Invariant: the text stays within its budget, and the same choice is written the same way each time.

use std::collections::BTreeSet;
use std::sync::Arc;

use hart_knowledge::skills::{Catalogue, Skill};
use serde::Deserialize;

use crate::prompt::{Listed, line};

/// How skills are offered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsConfig {
    pub enabled: bool,
    /// How many tokens the list in the prompt may take.
    pub prompt_tokens: u32,
    /// Only names are listed, and tools tell the rest; DeerFlow's key.
    pub deferred_discovery: bool,
}

impl Default for SkillsConfig {
    fn default() -> Self {
        Self { enabled: true, prompt_tokens: 3000, deferred_discovery: false }
    }
}

/// The part of the prompt, and what is described in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Nothing, where there are no skills.
    pub(crate) text: Option<Arc<str>>,
    /// The names that are described, where not all are.
    pub(crate) chosen: Option<BTreeSet<String>>,
}

/// Whether the tools that find skills are needed: when the list is not all there is to know.
pub(crate) fn needs_tools(catalogue: &Catalogue, config: &SkillsConfig) -> bool {
    // Bytes, not tokens: no model is known here. Few texts have fewer than two to a token.
    let bytes: usize = offered(catalogue).map(|skill| entry(skill).len() + 1).sum();
    config.deferred_discovery || bytes + FRAME.len() > config.prompt_tokens as usize * 2
}

/// `kept` are the names that were described to this thread before.
pub(crate) fn listing(
    catalogue: &Catalogue,
    config: &SkillsConfig,
    question: &str,
    kept: Option<&BTreeSet<String>>,
    count: &dyn Fn(&str) -> u64,
) -> Listing {
    let all: Vec<&Arc<Skill>> = offered(catalogue).collect();
    if all.is_empty() {
        return Listing::default();
    }
    let tools = needs_tools(catalogue, config);
    let budget = u64::from(config.prompt_tokens).saturating_sub(count(FRAME) + count(MORE) + 16);
    // A line end is a token at most.
    let cost = |text: &str| count(text) + 1;
    let mut spent = 0;
    let mut described = BTreeSet::new();
    if !config.deferred_discovery {
        let whole = all.iter().map(|skill| cost(&entry(skill))).sum::<u64>() <= budget;
        let order: Vec<&Arc<Skill>> = match (whole, kept) {
            (true, _) => all.clone(),
            (false, Some(kept)) => all.iter().filter(|skill| kept.contains(skill.name())).copied().collect(),
            (false, None) => ranked(catalogue, &all, question),
        };
        // Where not all can be described, a part is left for the names of the others.
        let names = || all.iter().map(|skill| cost(skill.name())).sum::<u64>();
        let reserve = if whole { 0 } else { names().min(budget / 4) };
        for skill in order {
            let cost = cost(&entry(skill));
            if spent + cost + reserve <= budget {
                spent += cost;
                described.insert(skill.name().to_owned());
            }
        }
    }
    let others = || all.iter().filter(|skill| !described.contains(skill.name()));
    let mut named: Vec<&str> = Vec::new();
    for skill in others() {
        spent += cost(skill.name());
        if spent > budget {
            break;
        }
        named.push(skill.name());
    }
    let complete = described.len() == all.len();
    let mut entries: Vec<String> =
        all.iter().filter(|skill| described.contains(skill.name())).map(|skill| entry(skill)).collect();
    if !named.is_empty() {
        entries.push(format!("- by name only: {}", named.join(", ")));
    }
    let unnamed = others().count() - named.len();
    if unnamed > 0 {
        entries.push(format!("- and {unnamed} more"));
    }
    if tools {
        entries.push(MORE.to_owned());
    }
    let text = FRAME.replace("{entries}", &entries.join("\n"));
    Listing { text: Some(text.trim().into()), chosen: (!complete).then_some(described) }
}

const FRAME: &str = include_str!("../prompts/skills.md");
const MORE: &str = "`skill_search` finds skills by topic, `describe_skill` tells what one is for.";

/// What the model may choose by itself.
fn offered(catalogue: &Catalogue) -> impl Iterator<Item = &Arc<Skill>> {
    catalogue.enabled().filter(|skill| !skill.manifest.user_only)
}

fn ranked<'a>(catalogue: &Catalogue, all: &[&'a Arc<Skill>], question: &str) -> Vec<&'a Arc<Skill>> {
    let order = catalogue.ranked(question);
    let find = |name: &str| all.iter().find(|skill| skill.name() == name).copied();
    order.iter().filter_map(|(skill, _)| find(skill.name())).collect()
}

fn entry(skill: &Skill) -> String {
    line(&Listed {
        name: skill.name().to_owned(),
        description: skill.manifest.description.clone(),
        path: Some(skill.location.clone()),
    })
}
