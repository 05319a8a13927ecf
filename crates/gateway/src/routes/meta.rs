//! Whether the server is there, and what it is.
//!
//! Invariant: answers without asking anything else.

use axum::Json;
use serde_json::{Value, json};

pub(crate) async fn ok() -> Json<Value> {
    Json(json!({"ok": true, "services": {}}))
}

/// With the words that DeerFlow's deployments look for.
pub(crate) async fn health() -> Json<Value> {
    Json(json!({"ok": true, "services": {}, "status": "healthy", "service": "hart"}))
}

pub(crate) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": "hart",
        "flags": {
            "assistants": true, "crons": true, "langsmith": false, "langsmith_tracing_replicas": false,
            "langsmith_tracing_session_on_runs": false, "strict_resume": true,
        },
        "host": {
            "kind": "self-hosted", "project_id": null, "host_revision_id": null, "revision_id": null, "tenant_id": null
        },
    }))
}
