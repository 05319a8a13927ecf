//! hart's own routes beside LangGraph's: runs by their id, what they changed, models, files.
//!
//! Invariant: what a server does not have is refused by its name; nothing is pretended.

mod agents;
mod archive;
mod artifacts;
pub(crate) mod auth;
mod branches;
mod connections;
mod console;
mod custom_skills;
mod delegated;
mod feedback;
mod files;
mod goals;
mod helpers;
mod messages;
mod missing;
mod range;
mod skills;
mod uploads;
mod usage;

use std::fmt;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_kernel::async_trait;
use hart_runtime::port::RunQuery;
use hart_runtime::{Run, Workspace};
use hart_types::RunId;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::{Path, Query, limit_of, thread_id};
use crate::wire::run;

pub use agents::Agents;
pub use connections::{Connect, Connections};
pub use custom_skills::CustomSkills;
pub use files::{FileError, FileInfo, Files, Incoming, OpenFile};
pub use goals::Goals;
pub use helpers::Helpers;
pub(crate) use missing::subsystem;
pub use skills::Skills;

/// What a server can tell beyond threads and runs. Implemented where agents are configured.
#[async_trait]
pub trait House: fmt::Debug + Send + Sync + 'static {
    /// The models there are to choose from, the default first; or why that cannot be said.
    async fn models(&self) -> Result<Vec<Value>, String>;

    /// The content of a file that a thread's agent can see.
    async fn file(&self, of: &Workspace, path: &str) -> Result<Vec<u8>, FileError>;

    /// What a run did to the thread's files, as DeerFlow's clients are told; `None` where that is not known.
    async fn changes(&self, of: &Workspace, run: &RunId) -> Option<Value>;

    /// How many tokens a model takes at once.
    async fn window(&self, _model: &str) -> Option<u64> {
        None
    }

    /// Whether agents write down what their calls take.
    fn counts_tokens(&self) -> bool {
        false
    }

    /// The files of threads, where agents have any.
    fn files(&self) -> Option<&dyn Files> {
        None
    }

    /// Skills, where there are any.
    fn skills(&self) -> Option<&dyn Skills> {
        None
    }

    /// Editing skills, where that is possible.
    fn custom_skills(&self) -> Option<&dyn CustomSkills> {
        None
    }

    /// Agents of the user's own, where there are such.
    fn agents(&self) -> Option<&dyn Agents> {
        None
    }

    /// How agents are held to the goals of threads, where they can be.
    fn goals(&self) -> Option<Goals> {
        None
    }

    /// Models that were connected over HTTP, where they can be.
    fn connections(&self) -> Option<&dyn Connections> {
        None
    }

    /// Models that help around a conversation.
    fn helpers(&self) -> Option<&dyn Helpers> {
        None
    }
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
        .route(
            "/api/threads/{thread}/runs/{run}/workspace-changes",
            get("What a run did to the files of its thread", workspace_changes),
        )
        .route("/api/features", get("Which parts this server has", features))
        .and(agents::table())
        .and(artifacts::table())
        .and(auth::table())
        .and(branches::table())
        .and(connections::table())
        .and(console::table())
        .and(custom_skills::table())
        .and(feedback::table())
        .and(goals::table())
        .and(helpers::table())
        .and(messages::table())
        .and(skills::table())
        .and(uploads::table())
        .and(usage::table())
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
    Ok(Json(json!({"models": models, "token_usage": {"enabled": gateway.house.counts_tokens()}})))
}

async fn one_model(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    let models = gateway.house.models().await.map_err(ApiError::conflict)?;
    let found = models.into_iter().find(|model| model.get("name").is_some_and(|known| *known == *name));
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("Model '{name}' not found")))
}

async fn workspace_changes(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let changes = match run_of(&gateway, &thread, &run).await {
        Ok(run) => gateway.house.changes(&of, &run.id).await,
        // What a branch took over was said by runs of its original, and did nothing to the branch's files.
        Err(_) if took_over(&gateway, &of, &run).await? => None,
        Err(error) => return Err(error),
    };
    Ok(Json(changes.unwrap_or_else(|| json!({"available": false, "version": 1, "files": []}))))
}

async fn took_over(gateway: &Gateway, of: &Workspace, run: &str) -> ApiResult<bool> {
    let said = gateway.runtime.transcript(&of.thread).await?;
    Ok(said.iter().any(|said| said.run.as_str() == run))
}

/// DeerFlow's frontend shows what is on.
async fn features(State(gateway): State<Gateway>) -> Json<Value> {
    let on = |enabled: bool| json!({ "enabled": enabled });
    let agents = gateway.house.agents().is_some_and(Agents::enabled);
    let polishes = gateway.house.helpers().is_some_and(|helpers| helpers.polishes().is_some());
    Json(json!({
        "agents_api": on(agents), "browser_control": on(false), "mcp_tasks": on(false),
        "input_polish": on(polishes),
    }))
}

/// A run of this thread.
async fn run_of(gateway: &Gateway, thread: &str, run: &str) -> ApiResult<Run> {
    let of = workspace(gateway, thread).await?;
    let run = gateway.runtime.store().run(&RunId::from(run)).await?;
    run.filter(|run| run.thread == of.thread).ok_or_else(|| ApiError::not_found("Run not found"))
}

fn files(gateway: &Gateway) -> ApiResult<&dyn Files> {
    gateway.house.files().ok_or_else(|| not_here("files"))
}

/// What this server has nothing for. It is no failure: asking again is of no use.
pub(crate) fn not_here(subsystem: &str) -> ApiError {
    let detail = format!("`{subsystem}` is not a part of this server");
    ApiError::new(StatusCode::NOT_IMPLEMENTED, detail)
}

async fn workspace(gateway: &Gateway, thread: &str) -> ApiResult<Workspace> {
    let id = thread_id(thread)?;
    let row = gateway.runtime.store().thread(&id).await?;
    let row = row.ok_or_else(|| ApiError::not_found(format!("Thread with ID {id} not found")))?;
    Ok(Workspace { thread: row.id, user: row.user })
}
