//! Makes subagents ready to work: each an agent with the short chain, a part of the lead agent's tools, its own prompt.
//!
//! Invariant: what is wrong with one is wrong here, before the lead agent runs.

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{Agent, BuildError, ChatModel, Middleware, ModelSettings, OutputFormat, Placed, Tool};
use hart_sandbox::Tier;

use super::{BASH, Kind, NEVER, Subagent, SubagentsConfig, parts};
use crate::middleware::{Sandbox, Skills};
use crate::{Features, WorkingDirectory, chain};

/// What subagents take over from the agent they work for.
pub(crate) struct Surroundings<'a> {
    pub(crate) model: &'a Arc<dyn ChatModel>,
    pub(crate) features: &'a Features,
    pub(crate) tools: &'a [Arc<dyn Tool>],
    pub(crate) settings: &'a ModelSettings,
    /// What was added to the lead agent's chain and theirs.
    pub(crate) everywhere: &'a [Placed],
}

/// The built-in ones, and those that were given; one that has a built-in's name takes its place.
pub(crate) fn assemble(
    around: &Surroundings<'_>,
    config: &SubagentsConfig,
    given: &[Subagent],
) -> Result<Vec<Kind>, BuildError> {
    let offered = offered(around.features, around.tools);
    let mut all = vec![Subagent::general_purpose()];
    if runs_commands(around.features, &offered) {
        all.push(Subagent::bash());
    }
    for subagent in given {
        let same = |other: &Subagent| other.name == subagent.name;
        if given.iter().filter(|other| same(other)).count() > 1 {
            return Err(BuildError::Refused(format!(
                "two subagents are called `{}`; rename one of them",
                subagent.name
            )));
        }
        match all.iter_mut().find(|other| same(other)) {
            Some(built_in) => *built_in = subagent.clone(),
            // One that was left out has its reason.
            None if subagent.is_built_in => {}
            None => all.push(subagent.clone()),
        }
    }
    all.into_iter().map(|subagent| kind(around, config, &offered, subagent)).collect()
}

/// Whether commands are confined here, or meant to run all the same.
fn runs_commands(features: &Features, offered: &[Arc<dyn Tool>]) -> bool {
    let rules_stand_alone = features.permissions.as_ref().is_some_and(|rules| !rules.allow_bash);
    let is_offered = offered.iter().any(|tool| tool.spec().name == BASH);
    let confined = |sandbox: &Sandbox| sandbox.provider().tier().tier != Tier::Refused;
    is_offered && !rules_stand_alone && features.sandbox.as_ref().is_some_and(confined)
}

/// All that subagents may have of the lead agent's tools.
fn offered(features: &Features, own: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
    let sandbox = match (features.sandbox.clone(), &features.permissions) {
        (Some(sandbox), Some(permissions)) => Some(sandbox.restricted_to(permissions.rules.clone())),
        (sandbox, _) => sandbox,
    };
    let mut all: Vec<Arc<dyn Tool>> = sandbox.iter().flat_map(Sandbox::tools).collect();
    all.extend(own.iter().cloned());
    if let Some(sandbox) = sandbox.filter(|_| !features.view_image.is_off()) {
        all.push(hart_tools::view_image(sandbox.permitted()));
    }
    all.retain(|tool| !NEVER.contains(&tool.spec().name.as_str()));
    all
}

fn kind(
    around: &Surroundings<'_>,
    config: &SubagentsConfig,
    shared: &[Arc<dyn Tool>],
    it: Subagent,
) -> Result<Kind, BuildError> {
    let mut features = parts::features(around.features, &it.parts);
    let tools = match it.permissions.clone() {
        None => chosen(shared.to_vec(), &it)?,
        Some(permissions) => {
            features.permissions = Some(permissions);
            chosen(offered(&features, around.tools), &it)?
        }
    };
    if it.review.is_some() {
        features.human_in_the_loop.clone_from(&it.review);
    }
    let model = it.model.as_ref().unwrap_or(around.model);
    let has = |name: &str| tools.iter().any(|tool| tool.spec().name == name);
    if has(BASH) && features.permissions.as_ref().is_some_and(|rules| !rules.allow_bash) {
        return Err(BuildError::Refused(format!(
            "rules about paths do not hold for commands, and the subagent `{}` has `bash`; leave it out of its tools, or \
             say that this is meant (`allow_bash`)",
            it.name
        )));
    }
    features.skills = skills(around.features, &it, has(READ_FILE));
    let sees = has(VIEW_IMAGE);
    let middleware = it.middleware.iter().chain(around.everywhere).cloned().collect();
    // The middleware brings it along.
    let tools: Vec<_> = tools.into_iter().filter(|tool| tool.spec().name != VIEW_IMAGE).collect();
    let chain = chain::child(model, features, sees, middleware)?;
    let mut settings = around.settings.clone();
    if let Some(schema) = &it.result {
        settings.output = OutputFormat::Json { name: "report".to_owned(), schema: schema.clone() };
    }
    let max_turns = it.max_turns.or(config.max_turns).unwrap_or(it.usual_turns);
    let agent = Agent::builder(Arc::clone(model))
        .name(format!("subagent:{}", it.name))
        .signature(it.name.as_str())
        .system_prompt(prompt(around.features, &it))
        .settings(settings)
        .tools(tools)
        .middleware(chain)
        // A turn is a model call and its tools; a few hooks may send the model back.
        .recursion_limit(max_turns.saturating_mul(2).saturating_add(16))
        .build()?;
    let seconds = Duration::try_from_secs_f64(config.timeout_seconds).unwrap_or(Duration::MAX);
    let shared_tokens = config.token_budget.enabled.then_some(config.token_budget.max_tokens);
    Ok(Kind {
        description: it.description,
        agent,
        model: model.profile().name.clone(),
        max_turns,
        timeout: it.timeout.unwrap_or(seconds),
        max_tokens: it.max_tokens.or(shared_tokens),
        result: it.result,
        knows_skills: around.features.skills.is_some(),
        name: it.name,
    })
}

const VIEW_IMAGE: &str = "view_image";
const READ_FILE: &str = "read_file";

/// Of the lead agent's skills those it may use, and what it is held to.
fn skills(features: &Features, it: &Subagent, reads: bool) -> Option<Skills> {
    let all = features.skills.as_ref()?;
    let names = it.skills.as_deref();
    for missing in names.unwrap_or_default().iter().filter(|name| !all.offers(name)) {
        // They come and go; whoever sends it may still want the rest.
        let (name, skill) = (&it.name, missing.escape_debug());
        tracing::warn!("the subagent `{name}` names the skill `{skill}`, which is not there or switched off");
    }
    if !reads && names.is_some_and(|names| !names.is_empty()) {
        tracing::warn!("the subagent `{}` has skills and no `{READ_FILE}` to read them with", it.name);
    }
    Some(all.lent(names, reads))
}

/// Those it may use, and its own.
fn chosen(all: Vec<Arc<dyn Tool>>, it: &Subagent) -> Result<Vec<Arc<dyn Tool>>, BuildError> {
    let names: Vec<&str> = all.iter().map(|tool| tool.spec().name.as_str()).collect();
    for wanted in it.allowed.iter().flatten().chain(&it.denied) {
        // What a built-in one would use is not always there, and nobody wrote it down wrong.
        if it.is_built_in || names.contains(&wanted.as_str()) || NEVER.contains(&wanted.as_str()) {
            continue;
        }
        let message = format!(
            "the subagent `{}` names the tool `{}`, which it cannot have; there is: {}",
            it.name,
            wanted.escape_debug(),
            names.join(", ")
        );
        match it.tolerant {
            true => tracing::warn!("{message}"),
            false => return Err(BuildError::Refused(message)),
        }
    }
    let may_use = |name: &String| {
        it.allowed.as_ref().is_none_or(|allowed| allowed.contains(name)) && !it.denied.contains(name)
    };
    let mut tools: Vec<_> = all.into_iter().filter(|tool| may_use(&tool.spec().name)).collect();
    tools.extend(it.own_tools.iter().cloned());
    Ok(tools)
}

fn prompt(features: &Features, it: &Subagent) -> String {
    let mut prompt = it.prompt.trim().to_owned();
    if let Some(place) = WorkingDirectory::of(features) {
        for part in ["\n\n", PLACES, "\n", &place.places(), "\n", place.commands()] {
            prompt.push_str(part);
        }
    }
    prompt
}

const PLACES: &str = "\
You share your files with whoever sent you: `/mnt/user-data/workspace` is the desk you both work at, \
`/mnt/user-data/uploads` holds what the user gave, `/mnt/user-data/outputs` what is handed over. Others may work there at \
the same time: write to files of your own, and name them in your report.";
