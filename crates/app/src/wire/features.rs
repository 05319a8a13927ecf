//! What of the chain is on, and how each part is set.
//!
//! Invariant: one line per feature; what is not configured here has the agent's default.

use std::sync::Arc;

use hart_agent::Features;
use hart_agent::middleware::{
    Budget, CallLimits, ContextEditing, DynamicContext, FinishReason, Goals, Guardrail, HumanInTheLoop,
    LoopDetection, ModelError, RemoteSubagents, Sandbox, SandboxAudit, Skills, Summarization, Title,
    ToolError, ToolOutputBudget, ToolRetry, ToolSelection, UntrustedContent, ViewImage,
};
use hart_kernel::{BuildError, Middleware, Toggle};
use hart_knowledge::skills::{Evolution, Reviewer};

use super::helper;
use crate::agents::Order;
use crate::audit_file::AuditFile;
use crate::config::AppConfig;
use crate::remote_agents::LangGraphServers;
use crate::workshop::Workshop;

pub(super) fn of(workshop: &Workshop, order: &Order, sandbox: Sandbox) -> Result<Features, BuildError> {
    let config = &workshop.config;
    let consent = &config.consent;
    let places = sandbox.provider();
    // Images are shown to the model as files are: within its rules.
    let shown = match &consent.permissions {
        Some(permissions) => sandbox.clone().restricted_to(permissions.rules.clone()).permitted(),
        None => sandbox.permitted(),
    };
    let guardrail = consent.guardrail.clone().map(|(lists, config)| Guardrail::new(lists).config(config));
    let tool_output = config.tool_output.enabled.then(|| config.tool_output.clone());
    let parts = config.middleware.clone();
    let (summarization, title) = (summarization(workshop, order, &sandbox)?, title(workshop)?);
    let goals = goals(workshop, order)?;
    Ok(Features {
        tool_output: part(tool_output, |config| ToolOutputBudget::new(config, Some(places.clone()))),
        read_before_write: config.read_before_write.into(),
        sandbox_audit: part(audit(config), |audit| audit),
        permissions: consent.permissions.clone(),
        guardrail: part(guardrail, |guardrail| guardrail),
        human_in_the_loop: review(config),
        input_sanitization: parts.input_sanitization.into(),
        untrusted_content: part(parts.untrusted_content, UntrustedContent::new),
        pii: part(parts.pii, |pii| pii),
        uploads: parts.uploads.into(),
        model_error: part(parts.model_error, ModelError::new),
        tool_error: part(parts.tool_error, ToolError::new),
        tool_retry: part(parts.tool_retry, ToolRetry::new),
        dynamic_context: part(parts.dynamic_context, DynamicContext::new),
        skills: skills(workshop, order)?,
        summarization: part(summarization, |summarization| summarization),
        context_editing: part(parts.context_editing, ContextEditing::new),
        token_usage: parts.token_usage.into(),
        budget: part(parts.budget, Budget::new),
        title: part(title, |title| title),
        goals: goals.into(),
        remote_subagents: remote(workshop),
        view_image: part(parts.view_image, |config| ViewImage::new(shown, config)),
        tool_selection: part(parts.tool_selection, ToolSelection::new),
        unsupported_content: parts.unsupported_content.into(),
        call_limits: part(parts.call_limits, CallLimits::new),
        loop_detection: part(parts.loop_detection, LoopDetection::new),
        finish_reason: part(parts.finish_reason, FinishReason::new),
        sandbox: Some(sandbox),
        ..Features::default()
    })
}

/// Off, or made of its settings.
fn part<C, M: Middleware>(settings: Option<C>, make: impl FnOnce(C) -> M) -> Toggle {
    settings.map_or(Toggle::Off, |settings| make(settings).into())
}

fn audit(config: &AppConfig) -> Option<SandboxAudit> {
    let log = || Arc::new(AuditFile::new(&config.home));
    let audit = || match config.sandbox_audit_file {
        true => SandboxAudit::new().with_log(log()),
        false => SandboxAudit::new(),
    };
    config.sandbox_audit.then(audit)
}

fn review(config: &AppConfig) -> Option<HumanInTheLoop> {
    let asked = &config.consent.interrupt_on;
    (!asked.is_empty()).then(|| HumanInTheLoop::new(asked.clone()))
}

fn summarization(
    workshop: &Workshop,
    order: &Order,
    sandbox: &Sandbox,
) -> Result<Option<Summarization>, BuildError> {
    let Some(config) = workshop.config.middleware.summarization.clone() else { return Ok(None) };
    let summariser = helper(workshop, config.model_name.as_deref())?;
    let made = Summarization::new(config)
        .agent_model(Arc::clone(&order.model.model))
        .sandboxes(Some(sandbox.provider()));
    Ok(Some(match summariser {
        Some(summariser) => made.model(summariser),
        None => made,
    }))
}

fn skills(workshop: &Workshop, order: &Order) -> Result<Option<Skills>, BuildError> {
    let Some(offered) = workshop.config.skills.offered.clone() else { return Ok(None) };
    let made = Skills::new(Arc::clone(&order.skills.catalogue), offered)
        .sharing(&workshop.skill_lists, &order.model.name)
        .with_secrets(order.secrets.clone());
    let (true, Some(user)) = (workshop.config.skills.evolution, &order.skills.user) else {
        return Ok(Some(made));
    };
    let review = &workshop.config.skills.review;
    let model = helper(workshop, review.model.as_deref())?;
    let model = model.unwrap_or_else(|| Arc::clone(&order.model.model));
    let reviewer = Reviewer::new(Some(model), review.fail_closed);
    Ok(Some(made.evolving(Evolution::new(Arc::clone(&workshop.skills), user.clone(), reviewer))))
}

/// Those on other servers are there whether or not the agent may send its own.
fn remote(workshop: &Workshop) -> Option<RemoteSubagents> {
    let agents = &workshop.config.delegation.remote;
    let servers = || LangGraphServers::new(workshop.http.clone(), agents.clone());
    (!agents.is_empty()).then(|| RemoteSubagents::new(Arc::new(servers())))
}

fn goals(workshop: &Workshop, order: &Order) -> Result<Goals, BuildError> {
    let config = workshop.config.middleware.goal.clone();
    let judge = helper(workshop, config.model_name.as_deref())?;
    Ok(Goals::new(config, judge.unwrap_or_else(|| Arc::clone(&order.model.model))))
}

fn title(workshop: &Workshop) -> Result<Option<Title>, BuildError> {
    let Some(config) = workshop.config.middleware.title.clone() else { return Ok(None) };
    let namer = helper(workshop, config.model_name.as_deref())?;
    let made = Title::new(config);
    Ok(Some(match namer {
        Some(namer) => made.with_model(namer),
        None => made,
    }))
}
