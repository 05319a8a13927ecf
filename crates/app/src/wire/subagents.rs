//! To whom an agent can hand work: the built-in ones as configured, those of skills, of files, of the configuration, of the
//! program.
//!
//! Invariant: of two with one name the later one stands: file, configuration, program. A skill takes nobody's place.

use std::collections::BTreeMap;
use std::time::Duration;

use hart_agent::{Subagent, SubagentBuilder};
use hart_kernel::BuildError;
use hart_knowledge::skills::Catalogue;
use serde_json::Value;

use super::helper;
use crate::config::{FileRules, SubagentEntry};
use crate::subagent_files;
use crate::workshop::Workshop;

pub(super) fn of(workshop: &Workshop, skills: &Catalogue) -> Result<Vec<Subagent>, BuildError> {
    let config = &workshop.config.delegation;
    let mut entries: BTreeMap<String, SubagentEntry> = BTreeMap::new();
    let (files, bad) = subagent_files::read(&workshop.config.home);
    for problem in bad {
        let message = problem.to_string();
        if workshop.told.is_new(&problem.path, &message) {
            tracing::warn!("a subagent cannot be used: {message}");
        }
    }
    entries.extend(files.into_iter().filter(|(name, entry)| is_usable(workshop, name, entry)));
    entries.extend(config.custom.clone());
    of_skills(workshop, skills, &mut entries);
    let mut all = Vec::new();
    for (name, entry) in &config.overrides {
        match (entries.get_mut(name), Subagent::built_in(name)) {
            (Some(own), _) => lay_over(own, entry),
            (None, Some(built_in)) => all.push(set(workshop, built_in, entry)?.build()?),
            (None, None) => {
                let message = format!("`subagents.agents.{name}` changes nothing: there is no such subagent");
                warn_once(workshop, name, message);
            }
        }
    }
    for (name, entry) in &entries {
        let description = entry.description.clone().unwrap_or_default();
        let builder = Subagent::builder(name.as_str(), description).tolerant();
        match set(workshop, builder, entry)?.build() {
            Ok(subagent) => all.push(subagent),
            Err(error) => warn_once(workshop, name, format!("a subagent cannot be used: {error}")),
        }
    }
    for subagent in &workshop.extensions.subagents {
        all.retain(|other| other.name() != subagent.name());
        all.push(subagent.clone());
    }
    Ok(all)
}

/// Those that enabled skills bring along, where nobody has their name.
fn of_skills(workshop: &Workshop, skills: &Catalogue, entries: &mut BTreeMap<String, SubagentEntry>) {
    let mut brought: BTreeMap<&str, &str> = BTreeMap::new();
    for (skill, agent) in
        skills.enabled().flat_map(|skill| skill.agents.iter().map(move |agent| (skill, agent)))
    {
        let (name, of) = (agent.name.as_str(), skill.name());
        let of_program = workshop.extensions.subagents.iter().any(|other| other.name() == name);
        let taken_by = match brought.get(name) {
            Some(other) => Some(format!("the skill `{other}` brings one of that name")),
            None if Subagent::built_in(name).is_some() => Some("it is the name of a built-in one".to_owned()),
            None if of_program || entries.contains_key(name) => Some("you have one of that name".to_owned()),
            None => None,
        };
        if let Some(why) = taken_by {
            let message = format!(
                "the subagent `{name}` of the skill `{of}` is left out: {why}; rename it in its agents.yaml"
            );
            warn_once(workshop, name, message);
            continue;
        }
        let entry = SubagentEntry::from_skill(skill, agent);
        if is_usable(workshop, name, &entry) {
            entries.insert(name.to_owned(), entry);
            brought.insert(name, of);
        }
    }
}

/// One that has no time, or names a model that is not there, is told of and left out.
fn is_usable(workshop: &Workshop, name: &str, entry: &SubagentEntry) -> bool {
    if let Some(seconds) = entry.timeout_seconds.filter(|seconds| seconds.is_nan() || *seconds <= 0.0) {
        let message =
            format!("the subagent `{name}` has {seconds} seconds and is left out; write a number above zero");
        warn_once(workshop, name, message);
        return false;
    }
    if let Some(Err((what, fix))) = entry.permissions.as_ref().map(FileRules::read) {
        let message = format!("the subagent `{name}` is left out: its permissions: {what}; {fix}");
        warn_once(workshop, name, message);
        return false;
    }
    if let Err(unknown) = entry.parts() {
        let (what, help) = (unknown.what(), unknown.help());
        warn_once(
            workshop,
            name,
            format!("the subagent `{name}` is left out: its middleware: {what}; {help}"),
        );
        return false;
    }
    if entry.passes_its_rules() {
        let message = format!(
            "the subagent `{name}` is left out: its rules for files do not hold for commands; leave bash out of its \
             tools, or set `allow_bash: true` if this is meant"
        );
        warn_once(workshop, name, message);
        return false;
    }
    let Some(model) = entry.model().filter(|name| workshop.config.model(name).is_none()) else { return true };
    let known: Vec<&str> = workshop.config.models.iter().map(|model| model.name.as_str()).collect();
    let known = known.join(", ");
    let message =
        format!("the subagent `{name}` names the model `{model}`, which is not there; there is: {known}");
    warn_once(workshop, name, message);
    false
}

/// Runs are many; what is wrong with the one subagent is told once, and again when the file it may be in changed.
fn warn_once(workshop: &Workshop, name: &str, message: String) {
    let file = workshop.config.home.join("agents").join(format!("{name}.md"));
    if workshop.told.is_new(&file, &message) {
        tracing::warn!("{message}");
    }
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
    // What is wrong with them was told before.
    if let Some(Ok(permissions)) = entry.permissions.as_ref().map(FileRules::read) {
        builder = builder.permissions(permissions);
    }
    for (part, on) in entry.parts().unwrap_or_default() {
        builder = builder.part(part, on);
    }
    if let Some(schema) = &entry.response_format {
        builder = builder.result_schema(Value::Object(schema.clone()));
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
    own.middleware.extend(over.middleware);
}
