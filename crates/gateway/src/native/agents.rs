//! Agents of the user's own: listed, made, changed, deleted.
//!
//! Invariant: what is written can be used: an agent that could not be read again is refused before anything changes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_kernel::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::files::FileError;
use super::not_here;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::{Body, Path, Query};

/// Implemented where agents are folders.
#[async_trait]
pub trait Agents: Send + Sync {
    /// Whether they may be managed over HTTP.
    fn enabled(&self) -> bool;

    /// As DeerFlow's clients see them.
    async fn agents(&self) -> Vec<Value>;

    async fn agent(&self, name: &str) -> Option<Value>;

    /// Makes one, or changes what is named of one that is there.
    async fn save(
        &self,
        name: &str,
        settings: Map<String, Value>,
        soul: Option<String>,
        new: bool,
    ) -> Result<Value, FileError>;

    async fn delete(&self, name: &str) -> Result<(), FileError>;
}

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/agents", get("The agents of the user's own", list).post("Make an agent", create))
        .route(
            "/api/agents/check",
            get("Whether a name is free for an agent", check).query(&[("name", "string")]),
        )
        .route(
            "/api/agents/{agent}",
            get("Read an agent", read).put("Change an agent", update).delete("Delete an agent", delete),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AgentCreate")]
struct Create {
    /// Letters, digits and `-`.
    name: String,
    #[serde(flatten)]
    settings: Settings,
}

/// What is left out is as the lead agent has it, or stays as it was.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "AgentSettings")]
struct Settings {
    description: Option<String>,
    model: Option<String>,
    tool_groups: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    model_settings: Option<Map<String, Value>>,
    thinking_enabled: Option<bool>,
    reasoning_effort: Option<String>,
    /// Who it is: character, manners, priorities.
    soul: Option<String>,
}

impl Settings {
    fn into_parts(self) -> (Map<String, Value>, Option<String>) {
        let pairs = [
            ("description", self.description.map(Value::from)),
            ("model", self.model.map(Value::from)),
            ("tool_groups", self.tool_groups.map(Value::from)),
            ("skills", self.skills.map(Value::from)),
            ("model_settings", self.model_settings.map(Value::from)),
            ("thinking_enabled", self.thinking_enabled.map(Value::from)),
            ("reasoning_effort", self.reasoning_effort.map(Value::from)),
        ];
        let given = pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        (given.collect(), self.soul)
    }
}

async fn list(State(gateway): State<Gateway>) -> ApiResult<Json<Value>> {
    let agents = agents(&gateway)?.agents().await;
    Ok(Json(json!({ "agents": agents })))
}

async fn check(State(gateway): State<Gateway>, query: Query) -> ApiResult<Json<Value>> {
    let name = name_of(query.get("name").unwrap_or_default())?;
    let taken = agents(&gateway)?.agent(&name).await.is_some();
    Ok(Json(json!({"available": !taken, "name": name})))
}

async fn read(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<Json<Value>> {
    let found = agents(&gateway)?.agent(&name_of(&name)?).await;
    found.map(Json).ok_or_else(|| missing(&name))
}

async fn create(
    State(gateway): State<Gateway>,
    Body(create): Body<Create>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    let (settings, soul) = create.settings.into_parts();
    let name = name_of(&create.name)?;
    let made = agents(&gateway)?.save(&name, settings, soul, true).await;
    made.map(|made| (StatusCode::CREATED, Json(made))).map_err(|error| about(error, &name))
}

async fn update(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    Body(settings): Body<Settings>,
) -> ApiResult<Json<Value>> {
    let (settings, soul) = settings.into_parts();
    let name = name_of(&name)?;
    let changed = agents(&gateway)?.save(&name, settings, soul, false).await;
    changed.map(Json).map_err(|error| about(error, &name))
}

async fn delete(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<StatusCode> {
    let name = name_of(&name)?;
    let gone = agents(&gateway)?.delete(&name).await;
    gone.map(|()| StatusCode::NO_CONTENT).map_err(|error| about(error, &name))
}

fn agents(gateway: &Gateway) -> ApiResult<&dyn Agents> {
    let agents = gateway.house.agents().ok_or_else(|| not_here("custom agents"))?;
    match agents.enabled() {
        true => Ok(agents),
        false => {
            let detail = "agents are not managed over HTTP here; set `agents_api.enabled: true`";
            Err(ApiError::new(StatusCode::FORBIDDEN, detail))
        }
    }
}

/// In lower case, and one that can be a folder's.
fn name_of(text: &str) -> ApiResult<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match (1..=64).contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(ApiError::unprocessable("an agent's name has 1 to 64 letters, digits and `-`")),
    }
}

fn about(error: FileError, name: &str) -> ApiError {
    match error {
        FileError::NotFound => missing(name),
        FileError::Exists => ApiError::conflict(format!("Agent '{name}' already exists")),
        error => error.about(&format!("the agent `{name}`")),
    }
}

fn missing(name: &str) -> ApiError {
    ApiError::not_found(format!("Agent '{name}' not found"))
}
