//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

use std::sync::Arc;

use hart_agent::middleware::{Sandbox, SandboxAudit};
use hart_agent::{Features, SuperAgent};
use hart_kernel::{Agent, BuildError, ChatModel};
use hart_models::ModelConfig;
use hart_sandbox::{LocalSandboxProvider, SandboxError};

use crate::audit_file::AuditFile;
use crate::config::AppConfig;
use crate::{App, Task};

pub(crate) fn http() -> Result<reqwest::Client, reqwest::Error> {
    hart_models::http::client()
}

pub(crate) fn sandboxes(config: &AppConfig) -> Result<LocalSandboxProvider, SandboxError> {
    let skills = config.home.join("skills");
    LocalSandboxProvider::new(config.sandbox.clone(), config.home.clone(), Some(skills))
}

pub(crate) fn model(config: &ModelConfig, http: &reqwest::Client) -> Arc<dyn ChatModel> {
    hart_models::build(config, http)
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
