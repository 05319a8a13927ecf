//! The agents that runs are of, built anew for each run from what it chose.
//!
//! Invariant: a choice of the wrong type is an error that says what to write; one that nobody knows is passed over.

use std::sync::Arc;

use hart_agent::{Mode, SubagentsConfig};
use hart_kernel::{Agent, Checkpointer, Deck, Effort, Reasoning, async_trait};
use hart_runtime::recording::Recordable;
use hart_runtime::{AgentFactory, AgentInfo, AgentRequest, FactoryError};
use hart_types::Secrets;
use serde_json::{Map, Value};

use crate::agent_folders::{self, OwnAgent};
use crate::choice::{self, ModelChoice};
use crate::shelf::{self, SkillShelf};
use crate::workshop::Workshop;
use crate::{recording, wire};

/// The agent that is always there, as DeerFlow's clients call it. The others are in the data directory.
pub(crate) const LEAD_AGENT: &str = "lead_agent";

/// Builds what the configuration describes.
#[derive(Debug)]
pub(crate) struct ConfiguredAgents {
    workshop: Arc<Workshop>,
}

impl ConfiguredAgents {
    pub(crate) fn new(workshop: Arc<Workshop>) -> Self {
        Self { workshop }
    }
}

impl ConfiguredAgents {
    /// `stand_in` works where the model that the run names is not there.
    pub(crate) async fn build_or(
        &self,
        request: &AgentRequest,
        stand_in: Option<ModelChoice>,
    ) -> Result<Agent, FactoryError> {
        let making = self.making(request)?;
        let own = if making.is_some() { None } else { self.own(named(request)?)? };
        let mut choices = own.as_ref().map(|own| own.config.options()).unwrap_or_default();
        choices.extend(request.options.clone().into_iter().filter(|(_, value)| !value.is_null()));
        let options = Options::read(&choices)?;
        // First what another thread does meanwhile.
        let (mut skills, chosen) = tokio::join!(
            shelf::of(&self.workshop, &request.user),
            choice::choose(&self.workshop, options.model.as_deref())
        );
        let model = match (chosen, stand_in) {
            (Ok(model), _) | (Err(_), Some(model)) => model,
            (Err(error), None) => return Err(refused("UnknownModel", error.to_string())),
        };
        if let Some(names) = own.as_ref().and_then(|own| own.config.skills.as_deref()) {
            skills.catalogue = Arc::new(skills.catalogue.only(names));
        }
        let order = Order {
            model,
            mode: options.mode,
            reasoning: options.reasoning,
            plan_mode: options.plan_mode,
            delegation: options.delegation,
            own,
            making,
            skills,
            secrets: request.secrets.clone(),
            checkpointer: Some(Arc::clone(&request.checkpointer)),
        };
        build(&self.workshop, &order)
    }
}

/// What an agent for one run is made of, beyond what the configuration says.
pub(crate) struct Order {
    pub(crate) model: ModelChoice,
    pub(crate) mode: Mode,
    /// Instead of what the mode says.
    pub(crate) reasoning: Option<Reasoning>,
    /// Whether the agent keeps a list of steps; as its mode has it, without it.
    pub(crate) plan_mode: Option<bool>,
    pub(crate) delegation: DelegationChoice,
    /// The user's own, where it is one.
    pub(crate) own: Option<Arc<OwnAgent>>,
    /// The name of the one that the run is to make.
    pub(crate) making: Option<String>,
    /// What it may learn from.
    pub(crate) skills: SkillShelf,
    /// What came with the run for them.
    pub(crate) secrets: Secrets,
    /// Where its states are; none where it has none yet.
    pub(crate) checkpointer: Option<Arc<dyn Checkpointer>>,
}

/// What a run says about delegation; nothing is as its mode and the configuration have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DelegationChoice {
    pub(crate) enabled: Option<bool>,
    /// How many of one answer work at a time.
    pub(crate) at_a_time: Option<u32>,
    pub(crate) in_all: Option<u32>,
}

impl DelegationChoice {
    fn read(options: &Map<String, Value>) -> Result<Self, FactoryError> {
        Ok(Self {
            enabled: switch(options, "subagent_enabled")?,
            at_a_time: amount(options, "max_concurrent_subagents")?,
            in_all: amount(options, "max_total_subagents")?,
        })
    }

    /// A run may ask for less than is configured, not for more; one that delegates sends somebody.
    pub(crate) fn within(self, configured: &SubagentsConfig) -> SubagentsConfig {
        let least = |asked: Option<u32>, most: u32| asked.map_or(most, |asked| asked.clamp(1, most.max(1)));
        SubagentsConfig {
            max_concurrent: least(self.at_a_time, configured.max_concurrent),
            max_total_per_run: least(self.in_all, configured.max_total_per_run),
            ..configured.clone()
        }
    }
}

impl Order {
    /// An agent that is not run, so its model does not matter.
    pub(crate) fn reader(checkpointer: Option<Arc<dyn Checkpointer>>) -> Self {
        Self {
            model: ModelChoice::demo(),
            mode: Mode::default(),
            reasoning: None,
            plan_mode: None,
            delegation: DelegationChoice::default(),
            own: None,
            making: None,
            skills: SkillShelf::default(),
            secrets: Secrets::default(),
            checkpointer,
        }
    }
}

#[async_trait]
impl AgentFactory for ConfiguredAgents {
    fn agents(&self) -> Vec<AgentInfo> {
        let description = "Plans, runs code in a sandbox, reads and writes files, and hands over the result.";
        let lead = AgentInfo { name: LEAD_AGENT.to_owned(), description: Some(description.to_owned()) };
        let own = self.workshop.agents.all().into_iter().map(|agent| AgentInfo {
            name: agent.name.clone(),
            description: agent.config.description.clone(),
        });
        [lead].into_iter().chain(own).collect()
    }

    fn has(&self, name: &str) -> bool {
        name == LEAD_AGENT || self.workshop.agents.get(name).is_some()
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        self.build_or(request, None).await
    }

    fn deck(&self, run: &Recordable<'_>) -> Option<Arc<dyn Deck>> {
        recording::deck(&self.workshop, run).map(|deck| Arc::new(deck) as Arc<dyn Deck>)
    }

    fn reader(&self, agent: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        self.own(agent)?;
        build(&self.workshop, &Order::reader(Some(checkpointer)))
    }
}

impl ConfiguredAgents {
    /// The agent that the run is to make, where it is such a run: `agent_name` is then one that need not be there.
    fn making(&self, request: &AgentRequest) -> Result<Option<String>, FactoryError> {
        if switch(&request.options, "is_bootstrap")? != Some(true) {
            return Ok(None);
        }
        if !self.workshop.config.around.agents_api {
            let message = "agents are not made by clients here; set `agents_api.enabled: true`";
            return Err(refused("AgentsDisabled", message));
        }
        let name = text(&request.options, "agent_name")?.and_then(agent_folders::name_of);
        name.map(Some).ok_or_else(|| {
            let message = "`is_bootstrap` makes the agent that `agent_name` names: write its name, of letters, digits and `-`";
            refused("InvalidOption", message)
        })
    }

    /// None for the lead agent.
    fn own(&self, name: &str) -> Result<Option<Arc<OwnAgent>>, FactoryError> {
        if name == LEAD_AGENT {
            return Ok(None);
        }
        let found = self.workshop.agents.get(&name.to_lowercase());
        found.map(Some).ok_or_else(|| {
            let known: Vec<String> = self.agents().into_iter().map(|agent| agent.name).collect();
            let message = format!("there is no agent `{name}`; there is: {}", known.join(", "));
            refused("UnknownAgent", message)
        })
    }
}

/// DeerFlow's clients ask for the lead agent and name the one they mean beside it.
fn named(request: &AgentRequest) -> Result<&str, FactoryError> {
    let beside = text(&request.options, "agent_name")?.filter(|name| *name != LEAD_AGENT);
    Ok(beside.unwrap_or(&request.agent))
}

fn build(workshop: &Workshop, order: &Order) -> Result<Agent, FactoryError> {
    wire::agent(workshop, order)
        .map_err(|error| refused("BuildError", format!("the agent cannot be built: {error}")))
}

fn refused(error: &str, message: impl Into<String>) -> FactoryError {
    FactoryError { error: error.to_owned(), message: message.into() }
}

/// What a run may choose, by the names that DeerFlow's clients use.
#[derive(Debug, Default, PartialEq)]
struct Options {
    model: Option<String>,
    mode: Mode,
    reasoning: Option<Reasoning>,
    plan_mode: Option<bool>,
    delegation: DelegationChoice,
}

impl Options {
    fn read(options: &Map<String, Value>) -> Result<Self, FactoryError> {
        let mode = match text(options, "mode")? {
            Some(mode) => mode.parse().map_err(|message: String| refused("InvalidOption", message))?,
            None => Mode::default(),
        };
        text(options, "agent_name")?;
        Ok(Self {
            model: text(options, "model_name")?.or(text(options, "model")?).map(str::to_owned),
            mode,
            reasoning: reasoning(options, mode)?,
            plan_mode: switch(options, "is_plan_mode")?,
            delegation: DelegationChoice::read(options)?,
        })
    }
}

/// What `thinking_enabled` and `reasoning_effort` make of a mode.
fn reasoning(options: &Map<String, Value>, mode: Mode) -> Result<Option<Reasoning>, FactoryError> {
    let effort = match text(options, "reasoning_effort")? {
        None => None,
        Some("minimal" | "low") => Some(Effort::Low),
        Some("medium") => Some(Effort::Medium),
        Some("high") => Some(Effort::High),
        Some(other) => {
            let message = format!("`reasoning_effort` is `{other}`; write low, medium or high");
            return Err(refused("InvalidOption", message));
        }
    };
    Ok(match (switch(options, "thinking_enabled")?, effort) {
        (Some(false), _) => Some(Reasoning::Off),
        (_, Some(effort)) => Some(Reasoning::On(effort)),
        (Some(true), None) if mode == Mode::Flash => Some(Reasoning::On(Effort::Low)),
        (_, None) => None,
    })
}

fn text<'a>(options: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, FactoryError> {
    match options.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mistyped(key, "a string", other)),
    }
}

fn switch(options: &Map<String, Value>, key: &str) -> Result<Option<bool>, FactoryError> {
    match options.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(*on)),
        Some(other) => Err(mistyped(key, "true or false", other)),
    }
}

fn amount(options: &Map<String, Value>, key: &str) -> Result<Option<u32>, FactoryError> {
    match options.get(key) {
        None | Some(Value::Null) => Ok(None),
        // Whatever is too large or too small becomes what is allowed.
        Some(Value::Number(number)) if number.is_u64() || number.is_i64() => {
            Ok(Some(number.as_u64().map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX))))
        }
        Some(Value::Number(_)) => Err(refused("InvalidOption", format!("`{key}` is no whole number"))),
        Some(other) => Err(mistyped(key, "a whole number", other)),
    }
}

fn mistyped(key: &str, wanted: &str, found: &Value) -> FactoryError {
    let found = match found {
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Bool(_) => "a boolean",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        Value::Null => "null",
    };
    refused("InvalidOption", format!("`{key}` is {found}; write {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(options: Value) -> Result<Options, String> {
        Options::read(options.as_object().unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn a_run_chooses_by_the_names_that_clients_use() {
        let ours = Options { model: Some("m".into()), mode: Mode::Ultra, ..Options::default() };
        assert_eq!(read(json!({"model_name": "m", "mode": "ultra", "agent_name": "lead_agent"})), Ok(ours));
        let theirs =
            read(json!({"model": "n", "is_plan_mode": false, "thread_id": 7, "thinking_enabled": null}));
        let wanted = Options { model: Some("n".into()), plan_mode: Some(false), ..Options::default() };
        assert_eq!(theirs, Ok(wanted));
    }

    #[test]
    fn thinking_is_chosen_over_what_the_mode_says() {
        for (options, reasoning) in [
            (json!({}), None),
            (json!({"thinking_enabled": true}), None),
            (json!({"thinking_enabled": true, "mode": "flash"}), Some(Reasoning::On(Effort::Low))),
            (json!({"thinking_enabled": false, "reasoning_effort": "high"}), Some(Reasoning::Off)),
            (json!({"reasoning_effort": "high"}), Some(Reasoning::On(Effort::High))),
        ] {
            assert_eq!(read(options.clone()).unwrap().reasoning, reasoning, "{options}");
        }
    }

    #[test]
    fn a_run_asks_for_less_than_is_configured() {
        let most = SubagentsConfig { max_concurrent: 3, max_total_per_run: 6, ..SubagentsConfig::default() };
        for (options, bounds) in [
            (json!({}), (3, 6)),
            (json!({"max_concurrent_subagents": 2, "max_total_subagents": 4}), (2, 4)),
            (json!({"max_concurrent_subagents": 50, "max_total_subagents": u64::MAX}), (3, 6)),
            (json!({"max_concurrent_subagents": 0, "max_total_subagents": -3}), (1, 1)),
        ] {
            let within = read(options.clone()).unwrap().delegation.within(&most);
            assert_eq!((within.max_concurrent, within.max_total_per_run), bounds, "{options}");
        }
    }

    #[test]
    fn what_cannot_be_understood_says_what_to_write() {
        for (options, says) in [
            (json!({"mode": "warp"}), "the modes are flash, thinking, pro, ultra"),
            (json!({"mode": 3}), "`mode` is a number; write a string"),
            (json!({"is_plan_mode": "yes"}), "`is_plan_mode` is a string; write true or false"),
            (json!({"subagent_enabled": 1}), "`subagent_enabled` is a number"),
            (
                json!({"max_total_subagents": "six"}),
                "`max_total_subagents` is a string; write a whole number",
            ),
            (json!({"max_concurrent_subagents": 1.5}), "`max_concurrent_subagents` is no whole number"),
            (json!({"reasoning_effort": "extreme"}), "write low, medium or high"),
            (json!({"agent_name": 7}), "`agent_name` is a number; write a string"),
        ] {
            let error = read(options).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
