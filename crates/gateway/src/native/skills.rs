//! Skills: what there are, which are on, and taking one in.
//!
//! Invariant: a package is taken in by the same door as everywhere: read, scanned, locked.

use axum::Json;
use axum::extract::State;
use hart_kernel::async_trait;
use hart_runtime::Workspace;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::FileError;
use super::{not_here, workspace};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get, post};
use crate::parse::{Body, Path};

/// Implemented where there are skills.
#[async_trait]
pub trait Skills: Send + Sync {
    /// As DeerFlow's clients see them.
    async fn skills(&self) -> Vec<Value>;

    async fn skill(&self, name: &str) -> Option<Value>;

    /// For the runs that begin from now on.
    async fn enable(&self, name: &str, enabled: bool) -> Result<(), FileError>;

    /// Takes in a package that is a file of a thread; what it is called.
    async fn install(&self, of: &Workspace, path: &str) -> Result<String, FileError>;
}

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/skills", get("The skills there are", list))
        .route("/api/skills/{skill}", get("Read a skill", read).put("Switch a skill on or off", switch))
        .route("/api/skills/install", post("Take in a skill that is a file of a thread", install))
        .route("/api/skills/reload", post("Nothing to do: skills are read as they are", reload))
}

async fn list(State(gateway): State<Gateway>) -> ApiResult<Json<Value>> {
    let skills = skills(&gateway)?.skills().await;
    Ok(Json(json!({ "skills": skills })))
}

async fn read(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    let found = skills(&gateway)?.skill(&name).await;
    found.map(Json).ok_or_else(|| missing(&name))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SkillSwitch")]
struct Switch {
    enabled: bool,
}

async fn switch(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    Body(switch): Body<Switch>,
) -> ApiResult<Json<Value>> {
    let skills = skills(&gateway)?;
    skills.enable(&name, switch.enabled).await.map_err(|error| about(error, &name))?;
    skills.skill(&name).await.map(Json).ok_or_else(|| missing(&name))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SkillInstall")]
struct Install {
    thread_id: String,
    /// As the agent sees it, such as `/mnt/user-data/outputs/poems.skill`.
    path: String,
}

async fn install(State(gateway): State<Gateway>, Body(asked): Body<Install>) -> ApiResult<Json<Value>> {
    let skills = skills(&gateway)?;
    let of = workspace(&gateway, &asked.thread_id).await?;
    if !asked.path.to_ascii_lowercase().ends_with(".skill") {
        return Err(ApiError::bad_request("a skill comes as a file that ends in `.skill`"));
    }
    let path = format!("/{}", asked.path.trim_start_matches('/'));
    let name = skills.install(&of, &path).await.map_err(|error| match error {
        // DeerFlow's frontend shows what speaks against it.
        FileError::Refused(why) => ApiError::bad_request(why),
        error => error.about(&format!("the skill `{path}`")),
    })?;
    let message = format!("Skill '{name}' installed successfully");
    Ok(Json(json!({"success": true, "skill_name": name, "message": message})))
}

async fn reload(State(gateway): State<Gateway>) -> ApiResult<Json<Value>> {
    skills(&gateway)?;
    let message = "Skills are read as they are when a run begins";
    Ok(Json(json!({"success": true, "scope": "process", "message": message})))
}

fn skills(gateway: &Gateway) -> ApiResult<&dyn Skills> {
    gateway.house.skills().ok_or_else(|| not_here("skills"))
}

fn about(error: FileError, name: &str) -> ApiError {
    match error {
        FileError::NotFound => missing(name),
        error => error.about(&format!("the skill `{name}`")),
    }
}

fn missing(name: &str) -> ApiError {
    ApiError::not_found(format!("Skill '{name}' not found"))
}
