//! To whom an agent can hand work: the built-in ones as configured, those of the configuration, of files, of the program.
//!
//! Invariant: of two with one name the later one stands: file, configuration, program.

use std::collections::BTreeMap;
use std::time::Duration;

use hart_agent::{Subagent, SubagentBuilder};
use hart_kernel::BuildError;

use super::helper;
use crate::config::SubagentEntry;
use crate::subagent_files;
use crate::workshop::Workshop;

pub(super) fn of(workshop: &Workshop) -> Result<Vec<Subagent>, BuildError> {
    let config = &workshop.config.delegation;
    let mut entries: BTreeMap<String, SubagentEntry> = BTreeMap::new();
    let (files, bad) = subagent_files::read(&workshop.config.home);
    for problem in bad {
        tracing::warn!("a subagent cannot be used: {problem}");
    }
    for (name, entry) in files {
        if let Some(model) = entry.model().filter(|name| workshop.config.model(name).is_none()) {
            let known: Vec<&str> = workshop.config.models.iter().map(|model| model.name.as_str()).collect();
            let known = known.join(", ");
            tracing::warn!(
                "the subagent `{name}` names the model `{model}`, which is not there; there is: {known}"
            );
            continue;
        }
        entries.insert(name, entry);
    }
    entries.extend(config.custom.clone());
    let mut all = Vec::new();
    for (name, entry) in &config.overrides {
        match (entries.get_mut(name), Subagent::built_in(name)) {
            (Some(own), _) => lay_over(own, entry),
            (None, Some(built_in)) => all.push(set(workshop, built_in, entry)?.build()?),
            (None, None) => {
                tracing::warn!("`subagents.agents.{name}` changes nothing: there is no such subagent");
            }
        }
    }
    for (name, entry) in &entries {
        let description = entry.description.clone().unwrap_or_default();
        let builder = Subagent::builder(name.as_str(), description).tolerant();
        match set(workshop, builder, entry)?.build() {
            Ok(subagent) => all.push(subagent),
            Err(error) => tracing::warn!("a subagent cannot be used: {error}"),
        }
    }
    for subagent in &workshop.extensions.subagents {
        all.retain(|other| other.name() != subagent.name());
        all.push(subagent.clone());
    }
    Ok(all)
}

fn set(
    workshop: &Workshop,
    mut builder: SubagentBuilder,
    entry: &SubagentEntry,
) -> Result<SubagentBuilder, BuildError> {
    if let Some(prompt) = &entry.system_prompt {
        builder = builder.prompt(prompt);
    }
    if let Some(tools) = &entry.tools {
        builder = builder.tools(tools);
    }
    if let Some(tools) = &entry.disallowed_tools {
        builder = builder.without_tools(tools);
    }
    if let Some(skills) = &entry.skills {
        builder = builder.skills(skills);
    }
    if let Some(model) = helper(workshop, entry.model())? {
        builder = builder.model(model);
    }
    if let Some(turns) = entry.max_turns {
        builder = builder.max_turns(turns);
    }
    if let Some(seconds) = entry.timeout_seconds {
        builder = builder.timeout(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    if let Some(budget) = entry.token_budget.as_ref().filter(|budget| budget.enabled) {
        builder = builder.max_tokens(budget.max_tokens);
    }
    Ok(builder)
}

/// What is said over again holds.
fn lay_over(own: &mut SubagentEntry, over: &SubagentEntry) {
    let over = over.clone();
    own.model = over.model.or(own.model.take());
    own.skills = over.skills.or(own.skills.take());
    own.max_turns = over.max_turns.or(own.max_turns);
    own.timeout_seconds = over.timeout_seconds.or(own.timeout_seconds);
    own.token_budget = over.token_budget.or(own.token_budget.take());
}
