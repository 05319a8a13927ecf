//! hart's own routes beside LangGraph's: runs by their id, what they changed, models, files.
//!
//! Invariant: a file goes out as something to keep, never as a page of this server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use hart_kernel::async_trait;
use hart_runtime::port::RunQuery;
use hart_runtime::{Runtime, Workspace};
use hart_types::RunId;
use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};
use crate::guard::{self, Access};
use crate::parse::{Path, Query, limit_of, thread_id};
use crate::request;
use crate::settings::Settings;
use crate::wire::run;

/// What a server can tell beyond threads and runs. Implemented where agents are configured.
#[async_trait]
pub trait House: Send + Sync + 'static {
    /// The models there are to choose from, the default first; or why that cannot be said.
    async fn models(&self) -> Result<Vec<Value>, String>;

    /// The content of a file that a thread's agent can see.
    async fn file(&self, of: &Workspace, path: &str) -> Option<Vec<u8>>;

    /// What a run did to the thread's files, as DeerFlow's clients are told; `None` where that is not known.
    async fn changes(&self, of: &Workspace, run: &RunId) -> Option<Value>;
}

#[derive(Clone)]
struct Native {
    runtime: Runtime,
    house: Arc<dyn House>,
}

/// To be merged with [`router`](crate::router); it lets in whom that lets in.
pub fn native(runtime: Runtime, house: Arc<dyn House>, access: Access, settings: Settings) -> Router {
    Router::new()
        .route("/api/runs", get(runs))
        .route("/api/runs/{run}", get(one_run))
        .route("/api/models", get(models))
        .route("/api/models/{model}", get(one_model))
        .route("/api/threads/{thread}/artifacts/{*path}", get(artifact))
        .route("/api/threads/{thread}/runs/{run}/workspace-changes", get(workspace_changes))
        .method_not_allowed_fallback(crate::error::method_not_allowed)
        .with_state(Native { runtime, house })
        .layer(axum::middleware::from_fn_with_state(Arc::new(access), guard::watch))
        .layer(axum::middleware::from_fn_with_state(settings, request::attend))
}

async fn runs(State(native): State<Native>, query: Query) -> ApiResult<Json<Value>> {
    let status =
        query.get("status").map(|status| status.parse().map_err(ApiError::unprocessable)).transpose()?;
    let query = RunQuery {
        thread: None,
        status: status.into_iter().collect(),
        limit: limit_of(Some(query.number("limit", 10)?), 10)?,
        offset: query.number("offset", 0)?,
    };
    let runs = native.runtime.store().runs(&query).await?;
    Ok(Json(runs.iter().map(run::json).collect()))
}

async fn one_run(State(native): State<Native>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let found = native.runtime.store().run(&RunId::from(id.as_str())).await?;
    let found = found.ok_or_else(|| ApiError::not_found(format!("Run with ID {id} not found")))?;
    Ok(Json(run::json(&found)))
}

async fn models(State(native): State<Native>) -> ApiResult<Json<Value>> {
    let models = native.house.models().await.map_err(ApiError::conflict)?;
    Ok(Json(json!({ "models": models })))
}

async fn one_model(State(native): State<Native>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    let models = native.house.models().await.map_err(ApiError::conflict)?;
    let found = models.into_iter().find(|model| model.get("name").is_some_and(|known| *known == *name));
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("Model '{name}' not found")))
}

async fn artifact(
    State(native): State<Native>,
    Path((thread, path)): Path<(String, String)>,
    query: Query,
) -> ApiResult<impl IntoResponse> {
    let of = workspace(&native, &thread).await?;
    let path = format!("/{path}");
    let file = native.house.file(&of, &path).await;
    let content = file.ok_or_else(|| ApiError::not_found(format!("Artifact not found: {path}")))?;
    let (kind, active) = kind_of(&path);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    if active || query.flag("download") {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    Ok((StatusCode::OK, headers, content))
}

async fn workspace_changes(
    State(native): State<Native>,
    Path((thread, run)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&native, &thread).await?;
    let run = native.runtime.store().run(&RunId::from(run.as_str())).await?;
    let run = run.filter(|run| run.thread == of.thread);
    let run = run.ok_or_else(|| ApiError::not_found("Run not found"))?;
    let changes = native.house.changes(&of, &run.id).await;
    Ok(Json(changes.unwrap_or_else(|| json!({"available": false, "version": 1, "files": []}))))
}

async fn workspace(native: &Native, thread: &str) -> ApiResult<Workspace> {
    let id = thread_id(thread)?;
    let row = native.runtime.store().thread(&id).await?;
    let row = row.ok_or_else(|| ApiError::not_found(format!("Thread with ID {id} not found")))?;
    Ok(Workspace { thread: row.id, user: row.user })
}

/// What a browser may take it for, and whether it could act there.
fn kind_of(path: &str) -> (&'static str, bool) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "txt" | "md" | "log" | "py" | "rs" | "js" | "ts" | "sh" | "yaml" | "yml" | "toml" => {
            ("text/plain; charset=utf-8", false)
        }
        "csv" => ("text/csv; charset=utf-8", false),
        "json" => ("application/json", false),
        "png" => ("image/png", false),
        "jpg" | "jpeg" => ("image/jpeg", false),
        "gif" => ("image/gif", false),
        "webp" => ("image/webp", false),
        "pdf" => ("application/pdf", false),
        "html" | "htm" => ("text/html; charset=utf-8", true),
        "xhtml" => ("application/xhtml+xml", true),
        "svg" => ("image/svg+xml", true),
        "xml" => ("application/xml", true),
        _ => ("application/octet-stream", true),
    }
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn what_could_act_in_a_browser_is_kept_instead() {
        for (path, active) in [
            ("/mnt/user-data/outputs/a.png", false),
            ("/a.TXT", false),
            ("/page.HTML", true),
            ("/drawing.svg", true),
            ("/no.ending/file", true),
        ] {
            assert_eq!(kind_of(path).1, active, "{path}");
        }
    }
}
