//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

use std::sync::Arc;

use hart_agent::middleware::{Sandbox, SandboxAudit};
use hart_agent::{Features, SuperAgent};
use hart_kernel::{Agent, BuildError, ChatModel, Clock, SystemClock, Timestamp};
use hart_models::{HttpError, Limits, ModelConfig};
use hart_sandbox::{LocalSandboxProvider, SandboxError};

use crate::audit_file::AuditFile;
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

/// What of the chain is on.
pub(crate) fn features(config: &AppConfig) -> Features {
    let mut features = Features::default();
    features.tool_output = config.tool_output.enabled.then(|| config.tool_output.clone());
    features.read_before_write = config.read_before_write;
    features.sandbox_audit = config.sandbox_audit.then(|| {
        let audit = SandboxAudit::new();
        if config.sandbox_audit_file { audit.with_log(Arc::new(AuditFile::new(&config.home))) } else { audit }
    });
    features
}

pub(crate) fn agent(app: &App, task: &Task) -> Result<Agent, BuildError> {
    let mut sandbox = Sandbox::new(app.sandboxes.clone(), app.config.sandbox.clone());
    if let Some(enabled) = app.config.tools.enabled() {
        sandbox = sandbox.only(enabled);
    }
    SuperAgent::builder(Arc::clone(&task.model.model))
        .mode(task.mode)
        .sandbox(sandbox)
        .features(features(&app.config))
        .checkpointer(Arc::new(app.log().clone()))
        .recursion_limit(app.config.max_recursion_limit)
        .build()
}
