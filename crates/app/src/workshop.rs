//! What agents are made of: the configuration and the parts that were chosen by it.
//!
//! Invariant: it is complete when it is made and never changes; all agents of one `App` share it.

use std::sync::Arc;

use hart_knowledge::skills::Library;
use hart_sandbox::LocalSandboxProvider;

use crate::agent_folders::AgentFolders;
use crate::app::OpenError;
use crate::config::AppConfig;
use crate::extensions::Extensions;
use crate::profiles::Profiles;
use crate::{Env, wire};

#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) config: AppConfig,
    pub(crate) env: Env,
    pub(crate) http: reqwest::Client,
    pub(crate) calls: hart_models::Context,
    pub(crate) sandboxes: Arc<LocalSandboxProvider>,
    pub(crate) skills: Arc<Library>,
    pub(crate) profiles: Profiles,
    /// The user's own.
    pub(crate) agents: Arc<AgentFolders>,
    pub(crate) extensions: Extensions,
}

impl Workshop {
    pub(crate) fn new(config: AppConfig, env: Env, extensions: Extensions) -> Result<Self, OpenError> {
        let calls = wire::calls(&config)?;
        Ok(Self {
            http: calls.http().clone(),
            calls,
            sandboxes: Arc::new(wire::sandboxes(&config)?),
            skills: Arc::new(wire::skills(&config)),
            profiles: Profiles::new(&config.home),
            agents: Arc::new(AgentFolders::in_home(&config.home)),
            extensions,
            env,
            config,
        })
    }
}
