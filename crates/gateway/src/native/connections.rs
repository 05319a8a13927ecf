//! Models that a person connects: tried, kept, forgotten.
//!
//! Invariant: a key comes in and never goes out again, neither in an answer nor into the log.

use std::fmt;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_kernel::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::FileError;
use super::not_here;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get, post, put};
use crate::parse::{Body, Path};

/// Implemented where models are chosen.
#[async_trait]
pub trait Connections: Send + Sync {
    /// Who can be connected to, with what that takes.
    fn providers(&self) -> Vec<Value>;

    /// What was connected, without keys.
    async fn connections(&self) -> Vec<Value>;

    /// Asks for one short answer: whether it came, or why not, in words. Nothing is kept.
    async fn test(&self, asked: Connect) -> Value;

    /// Keeps it under the name, for the runs that begin from now on. One of that name is replaced.
    async fn connect(&self, name: &str, asked: Connect) -> Result<Value, FileError>;

    async fn disconnect(&self, name: &str) -> Result<(), FileError>;
}

/// Where a model answers, and with which key.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connect {
    /// One of `providers`.
    pub provider: String,
    /// What the provider calls it; without it the provider's usual one, or the first that it lists.
    pub model: Option<String>,
    /// Where the API begins, if not at the provider's own address.
    pub base_url: Option<String>,
    /// Without it the one that is kept under the name, if that is for the same provider and address.
    pub api_key: Option<String>,
    /// The connection that is tried again.
    pub name: Option<String>,
}

impl fmt::Debug for Connect {
    /// The key is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/connections", get("The models that were connected, and whom one can connect to", list))
        .route("/api/connections/test", post("Ask a model for a short answer, keeping nothing", test))
        .route(
            "/api/connections/{name}",
            put("Connect a model", connect).delete("Forget a connection and its key", disconnect),
        )
}

async fn list(State(gateway): State<Gateway>) -> ApiResult<Json<Value>> {
    let connections = connections(&gateway)?;
    let (providers, connected) = (connections.providers(), connections.connections().await);
    Ok(Json(json!({"connections": connected, "providers": providers})))
}

async fn test(State(gateway): State<Gateway>, Body(asked): Body<Connect>) -> ApiResult<Json<Value>> {
    Ok(Json(connections(&gateway)?.test(asked).await))
}

async fn connect(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    Body(asked): Body<Connect>,
) -> ApiResult<Json<Value>> {
    let connections = connections(&gateway)?;
    let name = name_of(&name)?;
    let kept = connections.connect(name, asked).await;
    kept.map(Json).map_err(|error| about(error, name))
}

async fn disconnect(State(gateway): State<Gateway>, Path(name): Path<String>) -> ApiResult<StatusCode> {
    let connections = connections(&gateway)?;
    let gone = connections.disconnect(name_of(&name)?).await;
    gone.map(|()| StatusCode::NO_CONTENT).map_err(|error| about(error, &name))
}

fn connections(gateway: &Gateway) -> ApiResult<&dyn Connections> {
    gateway.house.connections().ok_or_else(|| not_here("connecting models"))
}

/// Models are called what providers like, `org/model:tag` too.
fn name_of(text: &str) -> ApiResult<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(&byte);
    match (1..=128).contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(text),
        false => Err(ApiError::unprocessable("a name has 1 to 128 letters, digits and `-_.:/@`")),
    }
}

fn about(error: FileError, name: &str) -> ApiError {
    match error {
        FileError::NotFound => ApiError::not_found(format!("Connection '{name}' not found")),
        FileError::Exists => ApiError::conflict(format!(
            "the configuration has a model `{name}`; choose another name, or change it there"
        )),
        error => error.about(&format!("the connection `{name}`")),
    }
}
