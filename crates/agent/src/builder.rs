//! Makes a super agent out of a model and a few choices.
//!
//! Invariant: everything that can be wrong with the choices is wrong here, not mid-run.

use std::sync::Arc;

use hart_kernel::{Agent, BuildError, ChatModel, Checkpointer, Middleware, ModelSettings, Tool};
use hart_tools::ToolOutputConfig;

use crate::middleware::{Sandbox, SandboxAudit};
use crate::{Mode, chain};

/// The name the lead agent's model calls go by.
const LEAD: &str = "lead";

/// The entry point: `SuperAgent::builder(model)…build()`. For a chain of your own use [`Agent::builder`].
#[derive(Clone, Copy, Debug)]
pub struct SuperAgent;

impl SuperAgent {
    pub fn builder(model: Arc<dyn ChatModel>) -> SuperAgentBuilder {
        SuperAgentBuilder {
            model,
            system_prompt: include_str!("../prompts/lead.md").trim_end().into(),
            settings: Mode::default().settings(),
            sandbox: None,
            features: Features::default(),
            tools: Vec::new(),
            checkpointer: None,
            recursion_limit: None,
        }
    }
}

/// The parts of the chain that can be left out or set up, with what they are set up with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Features {
    /// Puts long tool results into files; `None` leaves them as they are.
    pub tool_output: Option<ToolOutputConfig>,
    /// Looks at commands before they run.
    pub sandbox_audit: Option<SandboxAudit>,
    /// Refuses to overwrite files that were not read.
    pub read_before_write: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            tool_output: Some(ToolOutputConfig::default()),
            sandbox_audit: Some(SandboxAudit::new()),
            read_before_write: true,
        }
    }
}

pub(crate) fn part<M: Middleware>(middleware: Option<M>) -> Option<Arc<dyn Middleware>> {
    middleware.map(|middleware| Arc::new(middleware) as Arc<dyn Middleware>)
}

#[must_use = "call `build`"]
pub struct SuperAgentBuilder {
    model: Arc<dyn ChatModel>,
    system_prompt: Arc<str>,
    settings: ModelSettings,
    sandbox: Option<Sandbox>,
    features: Features,
    tools: Vec<Arc<dyn Tool>>,
    checkpointer: Option<Arc<dyn Checkpointer>>,
    recursion_limit: Option<u32>,
}

impl SuperAgentBuilder {
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings = mode.settings();
        self
    }

    /// Gives the agent files and commands.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// All are on by default.
    pub fn features(mut self, features: Features) -> Self {
        self.features = features;
        self
    }

    pub fn system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system_prompt = prompt.into();
        self
    }

    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    pub fn checkpointer(mut self, checkpointer: Arc<dyn Checkpointer>) -> Self {
        self.checkpointer = Some(checkpointer);
        self
    }

    pub fn recursion_limit(mut self, limit: u32) -> Self {
        self.recursion_limit = Some(limit);
        self
    }

    pub fn build(self) -> Result<Agent, BuildError> {
        let mut agent = Agent::builder(self.model)
            .name(LEAD)
            .system_prompt(self.system_prompt)
            .settings(self.settings)
            .middleware(chain::lead(self.sandbox, self.features))
            .tools(self.tools);
        if let Some(checkpointer) = self.checkpointer {
            agent = agent.checkpointer(checkpointer);
        }
        if let Some(limit) = self.recursion_limit {
            agent = agent.recursion_limit(limit);
        }
        agent.build()
    }
}

impl std::fmt::Debug for SuperAgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuperAgentBuilder").field("settings", &self.settings).finish_non_exhaustive()
    }
}
