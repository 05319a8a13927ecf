//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

mod features;
mod subagents;

use std::path::PathBuf;
use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_agent::middleware::Sandbox;
use hart_kernel::{Agent, BuildError, ChatModel, Clock, ModelSettings, SystemClock, Timestamp};
use hart_models::{HttpError, Limits, ModelConfig};
use hart_runtime::port::Store;
use hart_runtime::{Adopt, Parts, Retention, Runtime, Settings, Workspaces};
use hart_sandbox::{LocalSandboxProvider, SandboxError};
use hart_store::SqliteStore;

use crate::agents::{ConfiguredAgents, Order};
use crate::app::StorageError;
use crate::config::AppConfig;
use crate::home;
use crate::workshop::Workshop;
use crate::workspaces::ThreadFiles;

/// What all models share. One per `App`.
pub(crate) fn calls(config: &AppConfig) -> Result<hart_models::Context, HttpError> {
    hart_models::Context::new(config.network.clone(), Limits::new(config.calls.clone()))
}

pub(crate) fn sandboxes(config: &AppConfig) -> Result<LocalSandboxProvider, SandboxError> {
    let skills = config.home.join("skills");
    LocalSandboxProvider::new(config.sandbox.clone(), config.home.clone(), Some(skills))
}

/// Runs, and where they are remembered. Makes the data directory where there is none.
pub(crate) async fn runtime(workshop: &Arc<Workshop>, adopt: Adopt) -> Result<Runtime, StorageError> {
    let store: Arc<dyn Store> = match &workshop.extensions.store {
        Some(own) => Arc::clone(own),
        None => Arc::new(store(workshop.config.home.clone()).await?),
    };
    let parts = Parts {
        store,
        agents: Arc::new(ConfiguredAgents::new(Arc::clone(workshop))),
        workspaces: workspaces(workshop),
        clock: Arc::new(SystemClock),
    };
    let retention = Retention { age: workshop.config.server.keep_streams, ..Retention::default() };
    let resume = workshop.config.server.resume;
    let settings = Settings { adopt, retention, resume, ..Settings::default() };
    Runtime::open_with(parts, settings).await.map_err(StorageError::Runs)
}

/// Makes the directory where there is none.
pub(crate) async fn store(home: PathBuf) -> Result<SqliteStore, StorageError> {
    let opened = tokio::task::spawn_blocking(move || {
        let path = home.join(DATABASE);
        home::prepare(&home)
            .and_then(|()| home::create_private_file(&path))
            .map_err(|source| StorageError::Home { path: home, source })?;
        Ok(SqliteStore::open(&path)?)
    });
    opened.await.unwrap_or_else(|error| Err(StorageError::Cut(error)))
}

/// Copies the database, for the owner alone.
pub(crate) async fn backup(home: PathBuf, to: PathBuf) -> Result<(), StorageError> {
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| StorageError::Backup { path: to.clone(), source };
    home::create_private_file(&to).map_err(|error| failed(error.into()))?;
    store(home).await?.backup(to.clone()).await.map_err(|error| failed(error.into()))
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
    if let Some(enabled) = workshop.config.tools.enabled() {
        sandbox = sandbox.only(enabled);
    }
    let most = workshop.config.max_recursion_limit;
    let features = features::of(workshop, order, sandbox)?;
    let mut agent = SuperAgent::builder(Arc::clone(&order.model.model))
        .mode(order.mode)
        .features(workshop.extensions.shape(features))
        .recursion_limit(order.recursion_limit.map_or(most, |limit| limit.min(most)));
    if let Some(checkpointer) = &order.checkpointer {
        agent = agent.checkpointer(Arc::clone(checkpointer));
    }
    if let Some(reasoning) = order.reasoning {
        agent = agent.settings(ModelSettings { reasoning, ..order.mode.settings() });
    }
    if let Some(on) = order.plan_mode {
        agent = agent.plan_mode(on);
    }
    let delegation = &workshop.config.delegation;
    // Whoever configured that nobody is sent has the last word; a run may do without.
    let delegates = match delegation.enabled {
        Some(false) => Some(false),
        configured => order.delegates.or(configured),
    };
    if let Some(on) = delegates {
        agent = agent.delegates(on);
    }
    if delegates.unwrap_or(order.mode.delegates()) {
        agent = agent.delegation(delegation.limits.clone());
        for subagent in subagents::of(workshop)? {
            agent = agent.subagent(subagent);
        }
    }
    workshop.extensions.install(agent).build()
}
