//! hart's own routes beside LangGraph's: runs by their id, what they changed, models, files.
//!
//! Invariant: a file goes out as something to keep, never as a page of this server.

use std::fmt;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use hart_kernel::async_trait;
use hart_runtime::Workspace;
use hart_runtime::port::RunQuery;
use hart_types::RunId;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::{Path, Query, limit_of, thread_id};
use crate::wire::run;

/// What a server can tell beyond threads and runs. Implemented where agents are configured.
#[async_trait]
pub trait House: fmt::Debug + Send + Sync + 'static {
    /// The models there are to choose from, the default first; or why that cannot be said.
    async fn models(&self) -> Result<Vec<Value>, String>;

    /// The content of a file that a thread's agent can see.
    async fn file(&self, of: &Workspace, path: &str) -> Result<Vec<u8>, FileError>;

    /// What a run did to the thread's files, as DeerFlow's clients are told; `None` where that is not known.
    async fn changes(&self, of: &Workspace, run: &RunId) -> Option<Value>;
}

/// Why there is no content of a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file")]
    NotFound,
    /// It is there, but not to be had like this: a directory, or too large.
    #[error("{0}")]
    Refused(String),
    /// It may be to be had later.
    #[error("{0}")]
    Failed(String),
}

/// For agents that bring their models and files with them.
#[derive(Clone, Copy, Debug)]
pub struct NoHouse;

#[async_trait]
impl House for NoHouse {
    async fn models(&self) -> Result<Vec<Value>, String> {
        Ok(Vec::new())
    }

    async fn file(&self, _: &Workspace, _: &str) -> Result<Vec<u8>, FileError> {
        Err(FileError::NotFound)
    }

    async fn changes(&self, _: &Workspace, _: &RunId) -> Option<Value> {
        None
    }
}

/// Served at these addresses alone, not below `/api/langgraph`.
pub(crate) fn table() -> Table {
    Table::default()
        .route(
            "/api/runs",
            get("Runs of all threads, newest first", runs).query(&[
                ("limit", "integer"),
                ("offset", "integer"),
                ("status", "string"),
            ]),
        )
        .route("/api/runs/{run}", get("Read a run by its id alone", one_run))
        .route("/api/models", get("The models there are to choose from, the default first", models))
        .route("/api/models/{model}", get("Read a model", one_model))
        .route("/api/threads/{thread}/token-usage", get("What the runs of a thread used", token_usage))
        .route(
            "/api/threads/{thread}/artifacts/{*path}",
            get("A file that the agent of a thread can see", artifact).query(&[("download", "boolean")]),
        )
        .route(
            "/api/threads/{thread}/runs/{run}/workspace-changes",
            get("What a run did to the files of its thread", workspace_changes),
        )
}

async fn runs(State(gateway): State<Gateway>, query: Query) -> ApiResult<Json<Value>> {
    let status =
        query.get("status").map(|status| status.parse().map_err(ApiError::unprocessable)).transpose()?;
    let query = RunQuery {
        thread: None,
        status: status.into_iter().collect(),
        limit: limit_of(Some(query.number("limit", 10)?), 10)?,
        offset: query.number("offset", 0)?,
    };
    let runs = gateway.runtime.store().runs(&query).await?;
    Ok(Json(runs.iter().map(run::json).collect()))
}

async fn one_run(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let found = gateway.runtime.store().run(&RunId::from(id.as_str())).await?;
    let found = found.ok_or_else(|| ApiError::not_found(format!("Run with ID {id} not found")))?;
    Ok(Json(run::json(&found)))
}

async fn models(State(gateway): State<Gateway>) -> ApiResult<Json<Value>> {
    let models = gateway.house.models().await.map_err(ApiError::conflict)?;
    Ok(Json(json!({ "models": models })))
}

async fn one_model(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    let models = gateway.house.models().await.map_err(ApiError::conflict)?;
    let found = models.into_iter().find(|model| model.get("name").is_some_and(|known| *known == *name));
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("Model '{name}' not found")))
}

/// As DeerFlow's clients are told, and what it cost.
async fn token_usage(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let (totals, runs) = gateway.runtime.store().thread_totals(&of.thread).await?;
    Ok(Json(json!({
        "thread_id": of.thread,
        "total_tokens": totals.usage.total_tokens,
        "total_input_tokens": totals.usage.input_tokens,
        "total_output_tokens": totals.usage.output_tokens,
        "total_runs": runs,
        "total_cost": totals.cost,
        "llm_call_count": totals.model_calls,
    })))
}

async fn artifact(
    State(gateway): State<Gateway>,
    Path((thread, path)): Path<(String, String)>,
    query: Query,
) -> ApiResult<impl IntoResponse> {
    let of = workspace(&gateway, &thread).await?;
    let path = format!("/{path}");
    let content = gateway.house.file(&of, &path).await.map_err(|error| match error {
        FileError::NotFound => ApiError::not_found(format!("Artifact not found: {path}")),
        FileError::Refused(why) => ApiError::unprocessable(why),
        FileError::Failed(why) => {
            tracing::error!(thread = %of.thread, path, why, "a file of a thread cannot be read");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
    })?;
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
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let run = gateway.runtime.store().run(&RunId::from(run.as_str())).await?;
    let run = run.filter(|run| run.thread == of.thread);
    let run = run.ok_or_else(|| ApiError::not_found("Run not found"))?;
    let changes = gateway.house.changes(&of, &run.id).await;
    Ok(Json(changes.unwrap_or_else(|| json!({"available": false, "version": 1, "files": []}))))
}

async fn workspace(gateway: &Gateway, thread: &str) -> ApiResult<Workspace> {
    let id = thread_id(thread)?;
    let row = gateway.runtime.store().thread(&id).await?;
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
