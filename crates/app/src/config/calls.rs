//! How models are called and reached: `llm_call`, `circuit_breaker`, `network`, and what models say of each other.
//!
//! Invariant: the tree has been checked, so that a value of the wrong type cannot be here.

use std::path::Path as FsPath;
use std::time::Duration;

use hart_models::config::ModelConfig;
use hart_models::{HttpSettings, LimitSettings, Proxy, RetryPolicy};
use serde_json::Value;

use super::nearest::nearest;
use super::node::{Data, Node};
use super::problem::Findings;
use crate::Env;

pub(super) fn limits(tree: &Node) -> LimitSettings {
    let mut limits = LimitSettings::default();
    if let Some(section) = tree.get("circuit_breaker") {
        limits.failure_threshold = count(section, "failure_threshold").unwrap_or(limits.failure_threshold);
        let seconds = section.get("recovery_timeout_sec").and_then(number).and_then(Value::as_f64);
        let recovery = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        limits.recovery = recovery.unwrap_or(limits.recovery);
    }
    if let Some(section) = tree.get("llm_call") {
        let millis = |key: &str, default: Duration| {
            count(section, key).map_or(default, |millis| Duration::from_millis(millis.into()))
        };
        let RetryPolicy { base, cap, burst_base, .. } = limits.retry;
        limits.retry.base = millis("retry_base_delay_ms", base);
        limits.retry.cap = millis("retry_cap_delay_ms", cap);
        limits.retry.burst_base = millis("burst_retry_base_delay_ms", burst_base);
        limits.retry.attempts = count(section, "retry_max_attempts").unwrap_or(limits.retry.attempts);
        limits.max_concurrent_calls = count(section, "max_concurrent_calls").unwrap_or(0);
    }
    limits
}

/// What the file does not say, the usual variables do.
pub(super) fn network(tree: &Node, env: &Env, cwd: &FsPath, findings: &mut Findings) -> HttpSettings {
    let mut settings = HttpSettings::from_env(&|name| env.get(name).map(str::to_owned));
    let Some(section) = tree.get("network") else { return settings };
    let text = |key: &str| section.get(key).and_then(Node::as_str);
    if let Some(proxy) = text("proxy") {
        match Proxy::parse(proxy) {
            Ok(proxy) => settings = settings.with_proxy(proxy),
            Err(problem) => {
                let mark = section.get("proxy").unwrap_or(section).mark.clone();
                findings.problem(&mark, format!("network.proxy: {problem}"), "correct the address");
            }
        }
    }
    settings.no_proxy = text("no_proxy").map(str::to_owned).or(settings.no_proxy);
    settings.ca_file = text("ca_file").map(|path| cwd.join(path));
    settings
}

/// What entries leave to the sections, and what they say of each other.
pub(super) fn finish(
    models: &mut [ModelConfig],
    tree: &Node,
    retry: &RetryPolicy,
    cwd: &FsPath,
    findings: &mut Findings,
) {
    let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
    let entries = tree.get("models").map(Node::items).unwrap_or_default();
    let entry_of = |name: &str| {
        let called = |entry: &&Node, key: &str| entry.get(key).and_then(Node::as_str) == Some(name);
        entries
            .iter()
            .find(|entry| called(entry, "name"))
            .or_else(|| entries.iter().find(|entry| entry.get("name").is_none() && called(entry, "model")))
    };
    for model in models {
        model.ca_file = model.ca_file.take().map(|path| cwd.join(path));
        let Some(entry) = entry_of(&model.name) else { continue };
        if entry.get("max_retries").is_none() {
            model.max_retries = retry.attempts.saturating_sub(1);
        }
        for (position, fallback) in model.fallbacks.iter().enumerate() {
            let known = names.contains(fallback) && *fallback != model.name;
            if known {
                continue;
            }
            let field = entry.get("fallbacks").and_then(|list| list.items().get(position)).unwrap_or(entry);
            let mark = field.mark.clone();
            let others = || names.iter().map(String::as_str).filter(|name| *name != model.name);
            let near = nearest(fallback, others()).map(|near| format!("; did you mean `{near}`?"));
            let what = format!(
                "models: `{}` falls back to `{}`, which is no other model here{}",
                model.name.escape_debug(),
                fallback.escape_debug(),
                near.unwrap_or_default()
            );
            findings.problem(&mark, what, "name another entry of `models`");
        }
    }
}

fn number(node: &Node) -> Option<&Value> {
    match &node.data {
        Data::Scalar(value @ Value::Number(_)) => Some(value),
        _ => None,
    }
}

fn count(section: &Node, key: &str) -> Option<u32> {
    section.get(key).and_then(number).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok())
}
