//! A run as LangGraph's clients see it.
//!
//! Invariant: `kwargs` holds what the run was asked with, as it was asked.

use hart_runtime::Run;
use serde_json::{Map, Value, json};

use super::time;

/// What can be selected of it.
pub(crate) const KEYS: &[&str] = &[
    "run_id",
    "thread_id",
    "assistant_id",
    "metadata",
    "status",
    "kwargs",
    "multitask_strategy",
    "created_at",
    "updated_at",
    "langsmith_session_name",
];

pub(crate) fn json(run: &Run) -> Value {
    json!({
        "run_id": run.id,
        "thread_id": run.thread,
        "assistant_id": run.assistant,
        "metadata": run.metadata,
        "status": run.status,
        "kwargs": kwargs(run),
        "multitask_strategy": run.multitask,
        "created_at": time(run.start_at.max(run.created_at)),
        "updated_at": time(run.updated_at),
        "langsmith_session_name": null,
        "error": run.error.as_ref().map(|failure| failure.message.as_str()),
        "total_input_tokens": run.totals.usage.input_tokens,
        "total_output_tokens": run.totals.usage.output_tokens,
        "total_tokens": run.totals.usage.total_tokens,
        "total_cost": run.totals.cost,
        "usage_metadata": run.totals.usage,
        "llm_call_count": run.totals.model_calls,
    })
}

/// With what the one who asked left to us.
fn kwargs(run: &Run) -> Map<String, Value> {
    let mut all = Map::new();
    for nothing in ["interrupt_before", "interrupt_after", "webhook", "feedback_keys"] {
        all.insert(nothing.to_owned(), Value::Null);
    }
    let is_kept_at_the_end = run.kwargs.get("checkpoint_during") == Some(&Value::Bool(false));
    let durability = if is_kept_at_the_end { "exit" } else { "sync" };
    for (key, value) in [
        ("temporary", Value::Bool(false)),
        ("subgraphs", Value::Bool(false)),
        ("resumable", Value::Bool(true)),
        ("checkpoint_during", Value::Bool(run.kwargs.get("durability") != Some(&"exit".into()))),
        ("durability", durability.into()),
    ] {
        all.insert(key.to_owned(), value);
    }
    all.extend(run.kwargs.clone());
    all.insert("config".to_owned(), config(run).into());
    all
}

/// As it was sent, with what the run is known by.
fn config(run: &Run) -> Map<String, Value> {
    let inside = |config: &Map<String, Value>, key: &str| {
        config.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut config = run.kwargs.get("config").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut configurable = inside(&config, "configurable");
    configurable.insert("run_id".to_owned(), json!(run.id));
    configurable.insert("thread_id".to_owned(), json!(run.thread));
    for key in ["graph_id", "assistant_id"] {
        configurable.extend(run.metadata.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let mut metadata = inside(&config, "metadata");
    metadata.extend(run.metadata.clone());
    config.insert("configurable".to_owned(), configurable.into());
    config.insert("metadata".to_owned(), metadata.into());
    config
}
