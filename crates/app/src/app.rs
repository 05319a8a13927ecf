//! The running program: a frozen configuration, its parts, and the few things one can ask of them.
//!
//! Invariant: an `App` owns all it uses; two of them in one process do not see each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hart_client::id_of;
use hart_models::probe::{self, Check, ProbeOptions, Profile};
use hart_runtime::{Adopt, Runtime};
use hart_sandbox::{SandboxError, SandboxProvider, TierReport};
use hart_types::{ThreadId, UserId};
use tokio::sync::OnceCell;

use crate::choice::{self, ChooseError, ModelChoice, ModelListing};
use crate::config::{AppConfig, ConfigError, LoadOptions};
use crate::doctor::{self, Finding};
use crate::extensions::Extensions;
use crate::sheet::{self, ModelSheet};
use crate::workshop::Workshop;
use crate::{Env, wire};

#[derive(Debug)]
pub struct App {
    pub(crate) workshop: Arc<Workshop>,
    /// Opened when it is first needed: most commands need none.
    runtime: OnceCell<Runtime>,
}

/// Who a thread belongs to where nobody else is named.
pub(crate) const OWNER: &str = "default";

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the sandbox cannot be set up")]
    Sandbox(#[from] SandboxError),
    #[error("the network cannot be set up")]
    Http(#[from] hart_models::HttpError),
}

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("cannot use {}; check that the data directory is writable, or set HART_HOME to another", path.display())]
    Home {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot use {}: the disk is full; free some space and try again", path.display())]
    Full { path: PathBuf },
    #[error(transparent)]
    Store(#[from] hart_store::OpenError),
    #[error("the runs that are remembered cannot be read")]
    Runs(#[source] hart_runtime::port::StoreError),
    #[error("the copy cannot be written to {}", path.display())]
    Backup {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("opening the data directory was cut off")]
    Cut(#[source] tokio::task::JoinError),
}

/// Why a model could not be probed, or the result not be kept.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Model(#[from] ChooseError),
    #[error("the profile cannot be written to {}; set HART_HOME to a directory you may write to", home.join("models").display())]
    Save { home: PathBuf, source: std::io::Error },
}

impl App {
    pub fn open(options: LoadOptions<'_>) -> Result<Self, OpenError> {
        let env = options.env.clone();
        Self::with_config(AppConfig::load(options)?, env)
    }

    pub fn with_config(config: AppConfig, env: Env) -> Result<Self, OpenError> {
        Self::extended(config, env, Extensions::default())
    }

    pub(crate) fn extended(config: AppConfig, env: Env, extensions: Extensions) -> Result<Self, OpenError> {
        let workshop = Arc::new(Workshop::new(config, env, extensions)?);
        Ok(Self { workshop, runtime: OnceCell::new() })
    }

    pub fn config(&self) -> &AppConfig {
        &self.workshop.config
    }

    /// What runs agents and remembers it. The first call opens the data directory, and makes it where there is none.
    /// Other processes may have it open too.
    pub async fn runtime(&self) -> Result<&Runtime, StorageError> {
        self.runtime_adopting(Adopt::InTheWay).await
    }

    /// As [`App::runtime`]; `adopt` is what the first call does about runs whose process is gone.
    pub(crate) async fn runtime_adopting(&self, adopt: Adopt) -> Result<&Runtime, StorageError> {
        self.runtime.get_or_try_init(|| wire::runtime(&self.workshop, adopt)).await
    }

    /// Lets this model work where none is named, before all that are configured or found.
    pub fn set_model(&mut self, model: &ModelChoice) {
        // Nobody has a share in it before the first run.
        if let Some(workshop) = Arc::get_mut(&mut self.workshop) {
            workshop.extensions.model = Some(Arc::clone(&model.model));
        }
    }

    /// Copies the database with all threads and runs to a file that is not there yet.
    pub async fn backup(&self, to: &Path) -> Result<(), StorageError> {
        wire::backup(self.home().to_owned(), to.to_owned()).await
    }

    /// Whether anything was ever remembered here.
    pub fn has_data(&self) -> bool {
        // Where that cannot be seen, whoever opens it says why.
        self.workshop.extensions.store.is_some()
            || self.home().join(wire::DATABASE).try_exists().unwrap_or(true)
    }

    /// The text without keys: those that hart was told, those in its environment, and whatever looks like one. None where
    /// there is nothing to hide.
    pub fn without_keys(&self, text: &str) -> Option<String> {
        (self.workshop.mask)(text)
    }

    /// The named model, or the best there is: configured, by key in the environment, on loopback, the demo.
    pub async fn choose_model(&self, name: Option<&str>) -> Result<ModelChoice, ChooseError> {
        choice::choose(&self.workshop, name).await
    }

    /// The model that an agent of the user's own names, if it is one and does.
    pub fn model_of_agent(&self, name: &str) -> Option<String> {
        self.workshop.agents.get(name)?.config.model.clone()
    }

    /// All models there are to choose from, the default first.
    pub async fn models(&self) -> Result<Vec<ModelListing>, ChooseError> {
        choice::list(&self.workshop).await
    }

    /// Everything that is in force for the named model, or for the default one.
    pub async fn model_sheet(&self, name: Option<&str>) -> Result<ModelSheet, ChooseError> {
        let (config, reason) = choice::connected(&self.workshop, name).await?;
        let Workshop { config: all, env, profiles, .. } = &*self.workshop;
        Ok(sheet::of(all, env, profiles, &config, &reason))
    }

    /// Finds out what the named model's endpoint does and keeps it for later runs. `progress` hears each result.
    pub async fn probe_model(
        &self,
        name: Option<&str>,
        context: u32,
        progress: &(dyn Fn(&Check) + Sync),
    ) -> Result<(Profile, Option<PathBuf>), ProbeError> {
        let (config, _) = choice::connected(&self.workshop, name).await?;
        let options = ProbeOptions { context, now: wire::now() };
        let http = self.workshop.calls.client(&config).map_err(ChooseError::from)?;
        let profile = probe::probe(&config, &http, options, progress).await;
        // Nothing was learnt from one that does not talk, and what was known of it may still hold.
        let path = profile.talks().then(|| self.workshop.profiles.save(&config.name, &profile)).transpose();
        let path =
            path.map_err(|source| ProbeError::Save { home: self.workshop.config.home.clone(), source })?;
        Ok((profile, path))
    }

    pub async fn doctor(&self) -> Vec<Finding> {
        doctor::examine(&self.workshop).await
    }

    /// How commands are confined on this machine. The first call tries it out, in a few milliseconds.
    pub fn sandbox_tier(&self) -> TierReport {
        self.workshop.sandboxes.tier()
    }

    /// Where the thread's files are on this machine.
    pub fn thread_dir(&self, thread: &ThreadId) -> PathBuf {
        let user = UserId::from(OWNER);
        let (id, _) = id_of(&user, thread);
        self.workshop.sandboxes.thread_dirs(&id, &user).root().to_owned()
    }

    pub fn home(&self) -> &Path {
        &self.workshop.config.home
    }

    /// Ends what still runs.
    pub async fn close(&self) {
        if let Some(runtime) = self.runtime.get() {
            runtime.close(Duration::ZERO).await;
        }
        self.workshop.sandboxes.shutdown().await;
    }
}
