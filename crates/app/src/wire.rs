//! Where concrete meets abstract: one function per subsystem.
//!
//! Invariant: no other file of hart chooses an implementation.

use std::sync::Arc;

use hart_agent::middleware::{Guardrail, HumanInTheLoop, Sandbox, SandboxAudit, ToolOutputBudget};
use hart_agent::{Features, SuperAgent};
use hart_kernel::{Agent, BuildError, ChatModel, Clock, SystemClock, Timestamp, Toggle};
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
pub(crate) fn features(config: &AppConfig, sandbox: Sandbox) -> Features {
    let places = sandbox.provider();
    let audit = || match config.sandbox_audit_file {
        true => SandboxAudit::new().with_log(Arc::new(AuditFile::new(&config.home))),
        false => SandboxAudit::new(),
    };
    let consent = &config.consent;
    let guardrail = consent.guardrail.clone().map(|(lists, config)| Guardrail::new(lists).config(config));
    let review = || HumanInTheLoop::new(consent.interrupt_on.clone());
    let tool_output = || ToolOutputBudget::new(config.tool_output.clone(), Some(places));
    Features {
        sandbox: Some(sandbox),
        tool_output: config.tool_output.enabled.then(tool_output).map_or(Toggle::Off, Toggle::from),
        read_before_write: config.read_before_write.into(),
        sandbox_audit: config.sandbox_audit.then(audit).map_or(Toggle::Off, Toggle::from),
        permissions: consent.permissions.clone(),
        guardrail: guardrail.map_or(Toggle::Off, Toggle::from),
        human_in_the_loop: (!consent.interrupt_on.is_empty()).then(review),
        ..Features::default()
    }
}

pub(crate) fn agent(app: &App, task: &Task) -> Result<Agent, BuildError> {
    let mut sandbox = Sandbox::new(app.sandboxes.clone(), app.config.sandbox.clone());
    if let Some(enabled) = app.config.tools.enabled() {
        sandbox = sandbox.only(enabled);
    }
    let most = app.config.max_recursion_limit;
    let agent = SuperAgent::builder(Arc::clone(&task.model.model))
        .mode(task.mode)
        .features(app.extensions.shape(features(&app.config, sandbox)))
        .checkpointer(app.checkpointer(&task.user))
        .recursion_limit(task.recursion_limit.map_or(most, |limit| limit.min(most)));
    app.extensions.install(agent).build()
}
