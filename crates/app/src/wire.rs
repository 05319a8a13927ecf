//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

mod features;

use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_agent::middleware::Sandbox;
use hart_kernel::{Agent, BuildError, ChatModel, Clock, SystemClock, Timestamp};
use hart_models::{HttpError, Limits, ModelConfig};
use hart_sandbox::{LocalSandboxProvider, SandboxError};

use crate::config::AppConfig;
use crate::{App, Task};

/// What all models share. One per `App`.
pub(crate) fn calls(config: &AppConfig) -> Result<hart_models::Context, HttpError> {
    hart_models::Context::new(config.network.clone(), Limits::new(config.calls.clone()))
}

pub(crate) fn sandboxes(config: &AppConfig) -> Result<LocalSandboxProvider, SandboxError> {
    let skills = config.home.join("skills");
    LocalSandboxProvider::new(config.sandbox.clone(), config.home.clone(), Some(skills))
}

/// A model that asks again and falls back, as its entry says.
pub(crate) fn model(app: &App, config: &ModelConfig) -> Result<Arc<dyn ChatModel>, HttpError> {
    let fallbacks = config.fallbacks.iter().filter_map(|name| app.config.model(name));
    let fallbacks: Vec<_> = fallbacks.map(|config| app.profiles.apply(config.clone())).collect();
    app.calls.model(config, &fallbacks)
}

pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

/// The configured model that a part of the chain asks, if it was given one.
fn helper(app: &App, name: Option<&str>) -> Result<Option<Arc<dyn ChatModel>>, BuildError> {
    // A name that is not there was refused when the configuration was loaded.
    let Some(config) = name.and_then(|name| app.config.model(name)) else { return Ok(None) };
    let built = model(app, &app.profiles.apply(config.clone()));
    built.map(Some).map_err(|error| {
        BuildError::Refused(format!("the model `{}` cannot be reached: {error}", config.name))
    })
}

pub(crate) fn agent(app: &App, task: &Task) -> Result<Agent, BuildError> {
    let mut sandbox = Sandbox::new(app.sandboxes.clone(), app.config.sandbox.clone());
    if let Some(enabled) = app.config.tools.enabled() {
        sandbox = sandbox.only(enabled);
    }
    let most = app.config.max_recursion_limit;
    let features = features::of(app, task, sandbox)?;
    let mut agent = SuperAgent::builder(Arc::clone(&task.model.model))
        .mode(task.mode)
        .features(app.extensions.shape(features))
        .checkpointer(app.checkpointer(&task.user))
        .recursion_limit(task.recursion_limit.map_or(most, |limit| limit.min(most)));
    if let Some(on) = task.plan_mode {
        agent = agent.plan_mode(on);
    }
    app.extensions.install(agent).build()
}
