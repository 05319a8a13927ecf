//! Makes a super agent out of a model and a few choices.
//!
//! Invariant: everything that can be wrong with the choices is wrong here, not mid-run.

use std::sync::Arc;

use hart_kernel::{
    Agent, AgentBuilder, BuildError, ChatModel, Checkpointer, Middleware, ModelSettings, Placed, StateKey,
    Toggle, Tool,
};

use crate::middleware::{Sandbox, Subagents};
use crate::subagents::{Surroundings, assemble};
use crate::{Features, Mode, Prompt, Subagent, SubagentsConfig, WorkingDirectory, chain};

/// The name the lead agent's model calls go by.
const LEAD: &str = "lead";
/// What an agent without a name of its own is called.
const NAME: &str = "hart";

/// The entry point: `SuperAgent::builder(model)…build()`. Nothing is read that is not passed.
///
/// ```
/// use hart_agent::middleware::DanglingToolCall;
/// use hart_agent::{Features, SuperAgent};
/// use hart_kernel::{Middleware, PlaceExt};
/// # use std::sync::Arc;
/// # use hart_models::ScriptedModel;
/// # let model = Arc::new(ScriptedModel::new([hart_types::Message::ai("hi")]));
///
/// struct Mine;
/// impl Middleware for Mine {}
///
/// let agent = SuperAgent::builder(model)
///     .features(Features { tool_output: false.into(), ..Features::default() })
///     .with(Mine.after::<DanglingToolCall>())
///     .build()?;
/// let chain: Vec<&str> = agent.chain().collect();
/// assert!(chain.windows(2).any(|pair| pair == ["DanglingToolCall", "Mine"]));
/// # Ok::<(), hart_kernel::BuildError>(())
/// ```
///
/// A whole chain of your own is [`Agent::builder`], which has no features. Asking for both does not compile:
///
/// ```compile_fail,E0599
/// # use std::sync::Arc;
/// # use hart_agent::{Features, SuperAgent};
/// # use hart_models::ScriptedModel;
/// # let model = Arc::new(ScriptedModel::new([hart_types::Message::ai("hi")]));
/// SuperAgent::builder(model).features(Features::default()).middleware(vec![]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SuperAgent;

impl SuperAgent {
    pub fn builder(model: Arc<dyn ChatModel>) -> SuperAgentBuilder {
        SuperAgentBuilder {
            model: Arc::clone(&model),
            agent: Agent::builder(model).name(LEAD).settings(Mode::default().settings()),
            features: Features::default(),
            extras: Vec::new(),
            everywhere: Vec::new(),
            tools: Vec::new(),
            mode: None,
            plan_mode: None,
            delegates: None,
            subagents: Vec::new(),
            delegation: SubagentsConfig::default(),
            settings: Mode::default().settings(),
            prompt: Prompt::new(NAME),
            system: None,
        }
    }
}

const UNCOVERED: &str = "rules about paths do not hold for commands, and this agent has `bash`, which reads and writes \
    what they deny; leave `bash` out, or say that this is meant (`allow_bash`)";

#[must_use = "call `build`"]
pub struct SuperAgentBuilder {
    model: Arc<dyn ChatModel>,
    agent: AgentBuilder,
    features: Features,
    extras: Vec<Placed>,
    /// Those of the extras that subagents get, too.
    everywhere: Vec<Placed>,
    tools: Vec<Arc<dyn Tool>>,
    mode: Option<Mode>,
    plan_mode: Option<bool>,
    delegates: Option<bool>,
    subagents: Vec<Subagent>,
    delegation: SubagentsConfig,
    settings: ModelSettings,
    prompt: Prompt,
    system: Option<Arc<str>>,
}

impl SuperAgentBuilder {
    /// How hard it thinks, and whether it plans and delegates: `pro` and `ultra` switch plan mode on, `ultra` delegation,
    /// unless [`SuperAgentBuilder::plan_mode`] or [`SuperAgentBuilder::delegates`] says otherwise.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self.settings(mode.settings())
    }

    /// Whether it keeps a list of steps, whatever the mode and [`Features::todo`] say.
    pub fn plan_mode(mut self, on: bool) -> Self {
        self.plan_mode = Some(on);
        self
    }

    /// Whether it hands work to others, whatever the mode and [`Features::subagents`] say.
    pub fn delegates(mut self, on: bool) -> Self {
        self.delegates = Some(on);
        self
    }

    /// To whom it can hand work, beside the built-in `general-purpose` and `bash`.
    pub fn subagent(mut self, subagent: Subagent) -> Self {
        self.subagents.push(subagent);
        self
    }

    /// How much is delegated, and how long it may take.
    pub fn delegation(mut self, config: SubagentsConfig) -> Self {
        self.delegation = config;
        self
    }

    /// How the model is asked, where a mode is too coarse.
    pub fn settings(mut self, settings: ModelSettings) -> Self {
        self.agent = self.agent.settings(settings.clone());
        self.settings = settings;
        self
    }

    /// What it is made of. Call it before [`SuperAgentBuilder::sandbox`], which changes a part of it.
    pub fn features(mut self, features: Features) -> Self {
        self.features = features;
        self
    }

    /// Gives the agent files and commands.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.features.sandbox = Some(sandbox);
        self
    }

    /// Adds a middleware: where it or the caller says, or inside all built-ins but the last ones. One that has a
    /// built-in's name takes its place. It is this agent's alone: subagents get theirs by [`crate::SubagentBuilder::with`]
    /// or by [`Self::with_everywhere`].
    pub fn with(mut self, middleware: impl Into<Placed>) -> Self {
        self.extras.push(middleware.into());
        self
    }

    /// As [`Self::with`], for this agent and every subagent: the same instance sees the calls of all. A place next to a
    /// built-in that subagents do not have is an error when the agent is built.
    pub fn with_everywhere(mut self, middleware: impl Into<Placed>) -> Self {
        let placed = middleware.into();
        self.everywhere.push(placed.clone());
        self.with(placed)
    }

    /// What it is called, in its prompt and as the one whose calls the model answers.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        self.prompt.name = name.to_string();
        self.agent = self.agent.name(name);
        self
    }

    /// Who it is: character, manners, priorities, as the content of a `SOUL.md`. It becomes a section of the built-in
    /// prompt, escaped.
    pub fn soul(mut self, soul: impl Into<String>) -> Self {
        self.prompt.soul = Some(soul.into());
        self
    }

    /// What the prompt lists beyond what the features bring: deferred tools, subagents. What depends on the
    /// agent's tools (clarification, plan mode, working directory, citations) is decided when it is built.
    pub fn prompt(mut self, change: impl FnOnce(&mut Prompt)) -> Self {
        change(&mut self.prompt);
        self
    }

    /// Instead of the built-in prompt: exactly this text, without soul and sections.
    pub fn system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system = Some(prompt.into());
        self
    }

    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Declares a state key of the caller's own.
    pub fn state<K: StateKey>(mut self) -> Self {
        self.agent = self.agent.state::<K>();
        self
    }

    pub fn checkpointer(mut self, checkpointer: Arc<dyn Checkpointer>) -> Self {
        self.agent = self.agent.checkpointer(checkpointer);
        self
    }

    pub fn recursion_limit(mut self, limit: u32) -> Self {
        self.agent = self.agent.recursion_limit(limit);
        self
    }

    pub fn build(mut self) -> Result<Agent, BuildError> {
        self.features.todo = chosen(self.plan_mode, self.features.todo, self.mode.is_some_and(Mode::plans));
        self.features.subagents =
            chosen(self.delegates, self.features.subagents, self.mode.is_some_and(Mode::delegates));
        let subagents = self.subagents()?;
        if let Some(subagents) = &subagents {
            self.prompt.subagents = Some(subagents.delegation());
        }
        let consent = Consent::of(&self.features);
        self.prompt.working_directory = WorkingDirectory::of(&self.features);
        let chain = chain::lead(&self.model, self.features, subagents, self.extras)?;
        let system = self.system.unwrap_or_else(|| fitting(self.prompt, &self.tools, &chain).render());
        consent.check(self.agent.system_prompt(system).tools(self.tools).middleware(chain).build()?)
    }
}

impl SuperAgentBuilder {
    /// Made ready, if the built-in delegation is on.
    fn subagents(&self) -> Result<Option<Subagents>, BuildError> {
        if !matches!(self.features.subagents, Toggle::On) {
            return Ok(None);
        }
        let around = Surroundings {
            model: &self.model,
            features: &self.features,
            tools: &self.tools,
            settings: &self.settings,
            everywhere: &self.everywhere,
        };
        let kinds = assemble(&around, &self.delegation, &self.subagents)?;
        Ok(Some(Subagents::new(kinds, self.delegation.clone())))
    }
}

/// What somebody said outright, what was chosen among the features, or what the mode has.
fn chosen(said: Option<bool>, feature: Toggle, by_mode: bool) -> Toggle {
    match (said, feature) {
        (Some(false), _) => Toggle::Off,
        (Some(true), Toggle::Off) => Toggle::On,
        (None, Toggle::Off) => by_mode.into(),
        (_, chosen) => chosen,
    }
}

/// The prompt speaks of the tools that are there, whoever brought them.
fn fitting(mut prompt: Prompt, own: &[Arc<dyn Tool>], chain: &[Arc<dyn Middleware>]) -> Prompt {
    let contributed = chain.iter().flat_map(|middleware| middleware.tools());
    let names: Vec<String> =
        own.iter().cloned().chain(contributed).map(|tool| tool.spec().name.clone()).collect();
    let has = |name: &str| names.iter().any(|have| have == name);
    (prompt.clarification, prompt.plan_mode) = (has(ASK), has(PLAN));
    prompt.citations = names.iter().any(|name| name != ASK && name != PLAN);
    prompt
}

const ASK: &str = "ask_clarification";
const PLAN: &str = "write_todos";

/// What the features promise about tools, to be held against the tools there are.
struct Consent {
    rules_cover_all: bool,
    reviewed: Vec<String>,
}

impl Consent {
    fn of(features: &Features) -> Self {
        let review = features.human_in_the_loop.iter();
        Self {
            rules_cover_all: features.permissions.as_ref().is_none_or(|rules| rules.allow_bash),
            reviewed: review.flat_map(|review| review.tools().map(str::to_owned)).collect(),
        }
    }

    fn check(self, agent: Agent) -> Result<Agent, BuildError> {
        let has = |name: &str| agent.tools().iter().any(|tool| tool.name == name);
        if !self.rules_cover_all && has("bash") {
            return Err(BuildError::Refused(UNCOVERED.to_owned()));
        }
        for name in self.reviewed.iter().filter(|name| !has(name) && !agent.is_alias(name)) {
            tracing::warn!(tool = %name, "approval is asked for a tool this agent does not have");
        }
        Ok(agent)
    }
}

impl std::fmt::Debug for SuperAgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuperAgentBuilder")
            .field("agent", &self.agent)
            .field("features", &self.features)
            .field("extras", &self.extras)
            .finish()
    }
}
