//! What agents are made of: the configuration and the parts that were chosen by it.
//!
//! Invariant: it is complete when it is made and never changes; all agents of one `App` share it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_agent::SkillLists;
use hart_knowledge::skills::Library;
use hart_models::ModelConfig;
use hart_models::discover::{self, EnvError};
use hart_runtime::recording::Mask;
use hart_sandbox::{LocalSandboxProvider, ThreadDirs};
use hart_types::UserId;

use crate::agent_folders::AgentFolders;
use crate::app::OpenError;
use crate::config::AppConfig;
use crate::connections::Connections;
use crate::extensions::Extensions;
use crate::profiles::Profiles;
use crate::told::Told;
use crate::{Env, recording, wire};

pub(crate) struct Workshop {
    pub(crate) config: Arc<AppConfig>,
    pub(crate) env: Env,
    /// The models that keys in the environment give.
    pub(crate) with_keys: Vec<Result<ModelConfig, EnvError>>,
    pub(crate) http: reqwest::Client,
    pub(crate) calls: hart_models::Context,
    pub(crate) sandboxes: Arc<LocalSandboxProvider>,
    pub(crate) skills: Arc<Library>,
    pub(crate) skill_lists: SkillLists,
    pub(crate) profiles: Profiles,
    /// The user's own.
    pub(crate) agents: Arc<AgentFolders>,
    /// Models that were connected over HTTP.
    pub(crate) connections: Arc<Connections>,
    pub(crate) extensions: Extensions,
    /// Hides keys in what is written down.
    pub(crate) mask: Mask,
    /// What the log knows of files that cannot be used.
    pub(crate) told: Told,
}

impl Workshop {
    pub(crate) fn new(config: AppConfig, env: Env, extensions: Extensions) -> Result<Self, OpenError> {
        let sandboxes = wire::sandboxes(&config, &config.home)?;
        Self::with(Arc::new(config), env, extensions, sandboxes)
    }

    /// The same, with the files of threads in another place.
    pub(crate) fn elsewhere(&self, home: &Path) -> Result<Self, OpenError> {
        let sandboxes = wire::sandboxes(&self.config, home)?;
        Self::with(Arc::clone(&self.config), self.env.clone(), self.extensions.clone(), sandboxes)
    }

    /// Where a user's own skills are: in the data directory, also where a run is played again in another place.
    pub(crate) fn user_skills(&self, user: &UserId) -> PathBuf {
        ThreadDirs::user_skills_in(&self.config.home, user)
    }

    fn with(
        config: Arc<AppConfig>,
        env: Env,
        extensions: Extensions,
        sandboxes: LocalSandboxProvider,
    ) -> Result<Self, OpenError> {
        let calls = wire::calls(&config)?;
        let connections = Arc::new(Connections::in_home(&config.home));
        Ok(Self {
            http: calls.http().clone(),
            calls,
            sandboxes: Arc::new(sandboxes),
            skills: Arc::new(wire::skills(&config)),
            skill_lists: SkillLists::default(),
            profiles: Profiles::new(&config.home),
            agents: Arc::new(AgentFolders::in_home(&config.home)),
            mask: recording::mask(&config, &env, &connections),
            told: Told::default(),
            with_keys: discover::from_env(&|name| env.get(name).map(str::to_owned)),
            connections,
            extensions,
            env,
            config,
        })
    }
}

impl fmt::Debug for Workshop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workshop")
            .field("config", &self.config)
            .field("env", &self.env)
            .field("sandboxes", &self.sandboxes)
            .field("profiles", &self.profiles)
            .field("extensions", &self.extensions)
            .finish_non_exhaustive()
    }
}
