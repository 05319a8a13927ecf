//! Whether the server is there, and what it is.
//!
//! Invariant: answers without asking anything else.

use axum::Json;
use serde_json::{Value, json};

pub(crate) async fn ok() -> Json<Value> {
    Json(json!({"ok": true, "services": {}}))
}

pub(crate) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "name": "hart",
        "flags": {"assistants": true, "crons": true, "langsmith": false},
        "host": {
            "kind": "self-hosted", "project_id": null, "host_revision_id": null, "revision_id": null, "tenant_id": null
        },
    }))
}
