//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_agent::middleware::Sandbox;
use hart_kernel::{Agent, BuildError, ChatModel};
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
    app.calls.model(config, fallbacks)
}

pub(crate) fn agent(app: &App, task: &Task) -> Result<Agent, BuildError> {
    let mut sandbox = Sandbox::new(app.sandboxes.clone(), app.config.sandbox.clone());
    if let Some(enabled) = app.config.tools.enabled() {
        sandbox = sandbox.only(enabled);
    }
    SuperAgent::builder(Arc::clone(&task.model.model))
        .mode(task.mode)
        .sandbox(sandbox)
        .checkpointer(Arc::new(app.log().clone()))
        .recursion_limit(app.config.max_recursion_limit)
        .build()
}
