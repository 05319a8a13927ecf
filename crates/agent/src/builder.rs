//! Makes a super agent out of a model and a few choices.
//!
//! Invariant: everything that can be wrong with the choices is wrong here, not mid-run.

use std::sync::Arc;

use hart_kernel::{
    Agent, AgentBuilder, BuildError, ChatModel, Checkpointer, ModelSettings, Placed, StateKey, Tool,
};

use crate::middleware::Sandbox;
use crate::{Features, Mode, chain};

/// The name the lead agent's model calls go by.
const LEAD: &str = "lead";

/// The entry point: `SuperAgent::builder(model)…build()`. For a chain of your own use [`Agent::builder`].
#[derive(Clone, Copy, Debug)]
pub struct SuperAgent;

impl SuperAgent {
    pub fn builder(model: Arc<dyn ChatModel>) -> SuperAgentBuilder {
        SuperAgentBuilder {
            agent: Agent::builder(model)
                .name(LEAD)
                .system_prompt(include_str!("../prompts/lead.md").trim_end())
                .settings(Mode::default().settings()),
            features: Features::default(),
            extras: Vec::new(),
        }
    }
}

const UNCOVERED: &str = "rules about paths do not hold for commands, and this agent has `bash`, which reads and writes \
    what they deny; leave `bash` out, or say that this is meant (`allow_bash`)";

#[must_use = "call `build`"]
pub struct SuperAgentBuilder {
    agent: AgentBuilder,
    features: Features,
    extras: Vec<Placed>,
}

impl SuperAgentBuilder {
    pub fn mode(mut self, mode: Mode) -> Self {
        self.agent = self.agent.settings(mode.settings());
        self
    }

    /// How the model is asked, where a mode is too coarse.
    pub fn settings(mut self, settings: ModelSettings) -> Self {
        self.agent = self.agent.settings(settings);
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
    /// built-in's name takes its place.
    pub fn with(mut self, middleware: impl Into<Placed>) -> Self {
        self.extras.push(middleware.into());
        self
    }

    /// Who the model's calls come from.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.agent = self.agent.name(name);
        self
    }

    /// Instead of the built-in prompt.
    pub fn system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.agent = self.agent.system_prompt(prompt);
        self
    }

    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.agent = self.agent.tools([tool]);
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

    pub fn build(self) -> Result<Agent, BuildError> {
        let Self { agent, features, extras } = self;
        let rules_cover_all = features.permissions.as_ref().is_none_or(|rules| rules.allow_bash);
        let reviewed: Vec<String> =
            features.human_in_the_loop.iter().flat_map(|review| review.tools().map(str::to_owned)).collect();
        let agent = agent.middleware(chain::lead(features, extras)?).build()?;
        let has = |name: &str| agent.tools().iter().any(|tool| tool.name == name);
        if !rules_cover_all && has("bash") {
            return Err(BuildError::Refused(UNCOVERED.to_owned()));
        }
        for name in reviewed.iter().filter(|name| !has(name) && !agent.is_alias(name)) {
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
