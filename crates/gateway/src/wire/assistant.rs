//! An assistant as LangGraph's clients see it.
//!
//! Invariant: `context` and `config.configurable` say the same, whichever of them it was made with.

use hart_runtime::port::Assistant;
use serde_json::{Map, Value, json};

use super::time;

pub(crate) fn json(assistant: &Assistant) -> Value {
    json!({
        "assistant_id": assistant.id,
        "graph_id": assistant.graph,
        "config": assistant.config,
        "context": assistant.context,
        "metadata": assistant.metadata,
        "name": assistant.name,
        "created_at": time(assistant.created_at),
        "updated_at": time(assistant.updated_at),
        "version": assistant.version,
        "description": assistant.description,
    })
}

/// A version is never updated, so nothing is said of when.
pub(crate) fn version(assistant: &Assistant) -> Value {
    match json(assistant) {
        Value::Object(map) => {
            map.into_iter().filter(|(key, _)| key != "updated_at").collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

pub(crate) const KEYS: &[&str] = &[
    "assistant_id",
    "graph_id",
    "config",
    "context",
    "metadata",
    "name",
    "created_at",
    "updated_at",
    "version",
    "description",
];
