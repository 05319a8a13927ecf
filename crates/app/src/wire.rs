//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

mod features;
mod subagents;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_agent::middleware::Sandbox;
use hart_kernel::{Agent, BuildError, ChatModel, Clock, ModelSettings, SystemClock, Timestamp};
use hart_knowledge::skills::{INSTALLED_SHOWN_AT, Library, LibraryConfig};
use hart_models::{HttpError, Limits, ModelConfig};
use hart_runtime::port::Store;
use hart_runtime::{Adopt, AgentFactory, NoWorkspaces, Parts, Retention, Runtime, Settings, Workspaces};
use hart_sandbox::{LocalSandboxProvider, Mount, SandboxError};
use hart_store::SqliteStore;

use crate::agent_folders::OwnAgent;
use crate::agents::{ConfiguredAgents, Order};
use crate::app::StorageError;
use crate::config::AppConfig;
use crate::home;
use crate::setup_agent::SetupAgent;
use crate::workshop::Workshop;
use crate::workspaces::ThreadFiles;

/// What all models share. One per `App`.
pub(crate) fn calls(config: &AppConfig) -> Result<hart_models::Context, HttpError> {
    hart_models::Context::new(config.network.clone(), Limits::new(config.calls.clone()))
}

/// The files of threads are below `home`.
pub(crate) fn sandboxes(config: &AppConfig, home: &Path) -> Result<LocalSandboxProvider, SandboxError> {
    let (mut sandbox, skills) = (config.sandbox.clone(), library(config));
    if !skills.own {
        // `/mnt/skills` is another's; what hart installs is beside it.
        let (host_path, container_path) = (skills.installs(), INSTALLED_SHOWN_AT.to_owned());
        sandbox.mounts.push(Mount { host_path, container_path, read_only: true });
    }
    LocalSandboxProvider::new(sandbox, home.to_owned(), Some(skills.skills))
}

/// All skills; nothing is read yet.
pub(crate) fn skills(config: &AppConfig) -> Library {
    Library::new(library(config))
}

fn library(config: &AppConfig) -> LibraryConfig {
    let own = config.home.join("skills");
    let whole = |path: &Path| std::path::absolute(path).ok();
    LibraryConfig {
        home: config.home.clone(),
        states: config.skills.states.clone(),
        // Naming hart's own folder gives it to nobody else.
        own: config.skills.path.as_deref().is_none_or(|path| whole(path) == whole(&own)),
        skills: config.skills.path.clone().unwrap_or(own),
        scan: config.skills.scan,
        lock: config.skills.lock,
    }
}

/// Runs, and where they are remembered. Makes the data directory where there is none.
pub(crate) async fn runtime(workshop: &Arc<Workshop>, adopt: Adopt) -> Result<Runtime, StorageError> {
    let agents = Arc::new(ConfiguredAgents::new(Arc::clone(workshop)));
    let store = remembered(workshop).await?;
    runtime_of(workshop, agents, store, adopt).await
}

/// What is remembered, wherever that is.
async fn remembered(workshop: &Workshop) -> Result<Arc<dyn Store>, StorageError> {
    Ok(match &workshop.extensions.store {
        Some(own) => Arc::clone(own),
        None => Arc::new(store(workshop.config.home.clone()).await?),
    })
}

/// Runs of other agents than the configured ones, remembered with all others.
pub(crate) async fn runtime_of(
    workshop: &Workshop,
    agents: Arc<dyn AgentFactory>,
    store: Arc<dyn Store>,
    adopt: Adopt,
) -> Result<Runtime, StorageError> {
    let parts = Parts { store, agents, workspaces: workspaces(workshop), clock: Arc::new(SystemClock) };
    let retention = Retention { age: workshop.config.server.keep_streams, ..Retention::default() };
    let resume = workshop.config.server.resume;
    let settings = Settings { adopt, retention, resume, ..Settings::default() };
    Runtime::open_with(parts, settings).await.map_err(StorageError::Runs)
}

/// Runs that leave nothing behind.
pub(crate) async fn passing_runtime(
    agents: Arc<dyn AgentFactory>,
    store: Arc<dyn Store>,
) -> Result<Runtime, StorageError> {
    let parts = Parts { store, agents, workspaces: Arc::new(NoWorkspaces), clock: Arc::new(SystemClock) };
    let settings = Settings { adopt: Adopt::InTheWay, ..Settings::default() };
    Runtime::open_with(parts, settings).await.map_err(StorageError::Runs)
}

/// A place that forgets everything.
pub(crate) fn passing_store() -> Result<Arc<dyn Store>, StorageError> {
    Ok(Arc::new(SqliteStore::in_memory()?))
}

/// Makes the directory where there is none.
pub(crate) async fn store(home: PathBuf) -> Result<SqliteStore, StorageError> {
    let opened = tokio::task::spawn_blocking(move || {
        let path = home.join(DATABASE);
        home::prepare(&home).and_then(|()| home::create_private_file(&path)).map_err(
            |source| match source.kind() {
                io::ErrorKind::StorageFull => StorageError::Full { path: home },
                _ => StorageError::Home { path: home, source },
            },
        )?;
        Ok(SqliteStore::open(&path)?)
    });
    opened.await.unwrap_or_else(|error| Err(StorageError::Cut(error)))
}

/// Looks at the database without changing it; none is no fault.
pub(crate) async fn examine_store(home: PathBuf) -> Result<(), StorageError> {
    let examined = tokio::task::spawn_blocking(move || {
        let path = home.join(DATABASE);
        if path.exists() { Ok(SqliteStore::examine(&path)?) } else { Ok(()) }
    });
    examined.await.unwrap_or_else(|error| Err(StorageError::Cut(error)))
}

/// Copies the database, for the owner alone.
pub(crate) async fn backup(home: PathBuf, to: PathBuf) -> Result<(), StorageError> {
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| StorageError::Backup { path: to.clone(), source };
    let store = store(home).await?;
    home::create_new_private_file(&to).map_err(|error| failed(error.into()))?;
    store.backup(to.clone()).await.map_err(|error| {
        // Half a copy is none, and it is ours to remove.
        let _ = std::fs::remove_file(&to);
        failed(error.into())
    })
}

/// In the data directory.
pub(crate) const DATABASE: &str = "hart.db";

/// The files of threads, for runs that are undone and threads that are copied or deleted.
fn workspaces(workshop: &Workshop) -> Arc<dyn Workspaces> {
    Arc::new(ThreadFiles::new(Arc::clone(&workshop.sandboxes)))
}

/// A model that asks again and falls back, as its entry says.
pub(crate) fn model(workshop: &Workshop, config: &ModelConfig) -> Result<Arc<dyn ChatModel>, HttpError> {
    let fallbacks = config.fallbacks.iter().filter_map(|name| workshop.config.model(name));
    let fallbacks: Vec<_> = fallbacks.map(|config| workshop.profiles.apply(config.clone())).collect();
    workshop.calls.model(config, &fallbacks)
}

pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

/// The configured model that a part of the chain asks, if it was given one.
fn helper(workshop: &Workshop, name: Option<&str>) -> Result<Option<Arc<dyn ChatModel>>, BuildError> {
    // A name that is not there was refused when the configuration was loaded.
    let Some(config) = name.and_then(|name| workshop.config.model(name)) else { return Ok(None) };
    let built = model(workshop, &workshop.profiles.apply(config.clone()));
    built.map(Some).map_err(|error| {
        BuildError::Refused(format!("the model `{}` cannot be reached: {error}", config.name))
    })
}

pub(crate) fn agent(workshop: &Workshop, order: &Order) -> Result<Agent, BuildError> {
    let mut sandbox = Sandbox::new(workshop.sandboxes.clone(), workshop.config.sandbox.clone());
    let narrowed = order.own.as_ref().and_then(|own| own.config.tools());
    let tools = narrowed.map(|groups| workshop.config.tools.narrowed(&groups));
    if let Some(enabled) = tools.as_ref().unwrap_or(&workshop.config.tools).enabled() {
        sandbox = sandbox.only(enabled);
    }
    let features = features::of(workshop, order, sandbox)?;
    let mut agent = SuperAgent::builder(Arc::clone(&order.model.model))
        .mode(order.mode)
        .features(workshop.extensions.shape(features))
        .recursion_limit(workshop.config.max_recursion_limit);
    if let Some(checkpointer) = &order.checkpointer {
        agent = agent.checkpointer(Arc::clone(checkpointer));
    }
    let own = order.own.as_deref();
    let mut settings = order.mode.settings();
    if let Some(reasoning) = order.reasoning {
        settings.reasoning = reasoning;
    }
    if let Some(OwnAgent { name, soul, config }) = own {
        settings = ModelSettings {
            temperature: config.model_settings.temperature.or(settings.temperature),
            max_tokens: config.model_settings.max_tokens.or(settings.max_tokens),
            ..settings
        };
        agent = agent.name(name.as_str()).soul(soul.clone().unwrap_or_default());
    }
    if let Some(name) = &order.making {
        let (folders, skills) = (Arc::clone(&workshop.agents), Arc::clone(&order.skills.catalogue));
        agent = agent
            .soul(SetupAgent::soul_of_the_maker(name))
            .tool(Arc::new(SetupAgent::new(folders, name, skills)));
    }
    agent = agent.settings(settings);
    if let Some(on) = order.plan_mode {
        agent = agent.plan_mode(on);
    }
    let delegation = &workshop.config.delegation;
    // Whoever configured that nobody is sent has the last word; a run may do without.
    let delegates = match delegation.enabled {
        Some(false) => Some(false),
        configured => order.delegation.enabled.or(configured),
    };
    if let Some(on) = delegates {
        agent = agent.delegates(on);
    }
    if delegates.unwrap_or(order.mode.delegates()) {
        agent = agent.delegation(order.delegation.within(&delegation.limits));
        for subagent in subagents::of(workshop, &order.skills.catalogue)? {
            agent = agent.subagent(subagent);
        }
    }
    workshop.extensions.install(agent).build()
}
