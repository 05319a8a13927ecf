//! A thread as LangGraph's clients see it.
//!
//! Invariant: a thread that nothing was run on has no values, which is not the same as empty ones.

use hart_runtime::{Thread, ThreadState};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{state, time};

/// `state` is what it has come to, for those who want its values.
pub(crate) fn json(thread: &Thread, reached: Option<&ThreadState>) -> Value {
    let reached = reached.filter(|state| state.step.is_some());
    let values: Option<Box<RawValue>> = reached.and_then(|state| serde_json::from_slice(&state.values).ok());
    let mut interrupts = Map::new();
    for task in reached.iter().flat_map(|state| &state.tasks) {
        if !task.interrupts.is_empty() {
            let asked: Vec<Value> = task.interrupts.iter().map(state::interrupt).collect();
            interrupts.insert(task.id.clone(), asked.into());
        }
    }
    json!({
        "thread_id": thread.id,
        "created_at": time(thread.created_at),
        "updated_at": time(thread.updated_at),
        "state_updated_at": time(thread.state_updated_at),
        "metadata": thread.metadata,
        "status": thread.status,
        "config": config(thread),
        "values": values,
        "error": thread.error,
        "interrupts": interrupts,
    })
}

/// A thread that something was run on can be configured, if only with nothing.
fn config(thread: &Thread) -> Map<String, Value> {
    let mut config = thread.config.clone();
    if thread.metadata.contains_key("assistant_id") {
        config.entry("configurable").or_insert_with(|| json!({}));
    }
    config
}

/// When it goes by itself, if it does.
pub(crate) fn ttl(thread: &Thread) -> Option<Value> {
    let lifetime = thread.lifetime?;
    let expires_at = thread.updated_at.checked_add(lifetime.unused).ok().map(time);
    Some(json!({
        "strategy": lifetime.remains,
        "ttl_minutes": lifetime.unused.as_secs_f64() / 60.0,
        "expires_at": expires_at,
    }))
}

pub(crate) const KEYS: &[&str] = &[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "status",
    "config",
    "values",
    "error",
    "interrupts",
    "context",
    "extracted",
];
