//! Skills that are not hart's own: read, edited, deleted, taken back to an earlier version.
//!
//! Invariant: what is written goes the way that agents' own writing goes: scanned, reviewed, locked, and what was there
//! before is kept.

use axum::Json;
use axum::extract::State;
use hart_kernel::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::FileError;
use super::not_here;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get, post};
use crate::parse::{Body, Path};

/// Implemented where skills can be edited.
#[async_trait]
pub trait CustomSkills: Send + Sync {
    /// As DeerFlow's clients see them.
    async fn list(&self) -> Vec<Value>;

    /// The same with its `SKILL.md` as `content`.
    async fn read(&self, name: &str) -> Option<Value>;

    async fn edit(&self, name: &str, content: String) -> Result<(), FileError>;

    async fn delete(&self, name: &str) -> Result<(), FileError>;

    /// Its versions, the oldest first.
    async fn history(&self, name: &str) -> Result<Vec<Value>, FileError>;

    /// Undoes the change at this place of the history; -1 is the last one.
    async fn roll_back(&self, name: &str, index: i64) -> Result<(), FileError>;
}

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/skills/custom", get("The skills that are not hart's own", list))
        .route(
            "/api/skills/custom/{skill}",
            get("Read a skill with its text", read)
                .put("Change the text of a skill", edit)
                .delete("Delete a skill", delete),
        )
        .route(
            "/api/skills/custom/{skill}/history",
            get("The versions of a skill, the oldest first", history),
        )
        .route("/api/skills/custom/{skill}/rollback", post("Undo a change of a skill", roll_back))
}

async fn list(State(gateway): State<Gateway>) -> ApiResult<Json<Value>> {
    Ok(Json(json!({ "skills": skills(&gateway)?.list().await })))
}

async fn read(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    found(&gateway, &name).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SkillEdit")]
struct Edit {
    /// The whole `SKILL.md`.
    content: String,
}

async fn edit(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    Body(edit): Body<Edit>,
) -> ApiResult<Json<Value>> {
    skills(&gateway)?.edit(&name, edit.content).await.map_err(|error| about(error, &name))?;
    found(&gateway, &name).await
}

async fn delete(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    skills(&gateway)?.delete(&name).await.map_err(|error| about(error, &name))?;
    Ok(Json(json!({"success": true})))
}

async fn history(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    let history = skills(&gateway)?.history(&name).await.map_err(|error| about(error, &name))?;
    Ok(Json(json!({ "history": history })))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SkillRollback")]
struct RollBack {
    /// Which of the history is undone; from its end where it is negative.
    #[serde(default = "last")]
    history_index: i64,
}

fn last() -> i64 {
    -1
}

async fn roll_back(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    Body(asked): Body<RollBack>,
) -> ApiResult<Json<Value>> {
    let undone = skills(&gateway)?.roll_back(&name, asked.history_index).await;
    undone.map_err(|error| about(error, &name))?;
    found(&gateway, &name).await
}

async fn found(gateway: &Gateway, name: &str) -> ApiResult<Json<Value>> {
    let found = skills(gateway)?.read(name).await;
    found.map(Json).ok_or_else(|| missing(name))
}

fn skills(gateway: &Gateway) -> ApiResult<&dyn CustomSkills> {
    gateway.house.custom_skills().ok_or_else(|| not_here("editing skills"))
}

fn about(error: FileError, name: &str) -> ApiError {
    match error {
        FileError::NotFound => missing(name),
        FileError::Exists => {
            ApiError::conflict(format!("the skill `{name}` was changed meanwhile; read it again"))
        }
        // What speaks against it, as DeerFlow's clients are told.
        FileError::Refused(why) => ApiError::bad_request(why),
        error => error.about(&format!("the skill `{name}`")),
    }
}

fn missing(name: &str) -> ApiError {
    ApiError::not_found(format!("Custom skill '{name}' not found"))
}
