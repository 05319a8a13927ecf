//! What helps a user between two messages: questions to ask next, better words for one.
//!
//! Invariant: help that cannot be given is no failure of the conversation: without suggestions there are none.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_kernel::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{not_here, workspace};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get, post};
use crate::parse::{Body, Path};

/// Implemented where there are models.
#[async_trait]
pub trait Helpers: Send + Sync {
    /// How many questions are suggested at most; `None` where none are.
    fn suggestions(&self) -> Option<u32>;

    /// Questions to ask next. The conversation is who spoke (`user`, `assistant`) and what was said.
    async fn suggest(
        &self,
        conversation: Vec<(String, String)>,
        count: u32,
        model: Option<&str>,
    ) -> Result<Vec<String>, String>;

    /// How many characters are polished at most; `None` where nothing is.
    fn polishes(&self) -> Option<usize>;

    async fn polish(&self, words: &str) -> Result<String, String>;
}

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/suggestions/config", get("Whether questions are suggested", config))
        .route("/api/threads/{thread}/suggestions", post("Questions to ask next", suggest))
        .route("/api/input-polish", post("Better words for a message", polish))
}

async fn config(State(gateway): State<Gateway>) -> Json<Value> {
    let most = gateway.house.helpers().and_then(Helpers::suggestions);
    Json(json!({"enabled": most.is_some(), "max_suggestions": most.unwrap_or_default()}))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SuggestionsRequest")]
struct Suggest {
    #[serde(default)]
    messages: Vec<Spoken>,
    n: Option<u32>,
    model_name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Spoken {
    /// `user` or `assistant`.
    role: String,
    content: String,
}

async fn suggest(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(asked): Body<Suggest>,
) -> ApiResult<Json<Value>> {
    workspace(&gateway, &thread).await?;
    let helpers = gateway.house.helpers();
    let Some((helpers, most)) = helpers.and_then(|helpers| Some((helpers, helpers.suggestions()?))) else {
        return Ok(Json(json!({"suggestions": []})));
    };
    let conversation: Vec<_> =
        asked.messages.into_iter().map(|spoken| (spoken.role, spoken.content)).collect();
    let count = asked.n.unwrap_or(most).min(most);
    if conversation.is_empty() || count == 0 {
        return Ok(Json(json!({"suggestions": []})));
    }
    let suggested = helpers.suggest(conversation, count, asked.model_name.as_deref()).await;
    let suggested = suggested.unwrap_or_else(|why| {
        tracing::warn!(thread, why, "no questions are suggested");
        Vec::new()
    });
    Ok(Json(json!({ "suggestions": suggested })))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "InputPolishRequest")]
struct Polish {
    text: String,
}

async fn polish(State(gateway): State<Gateway>, Body(asked): Body<Polish>) -> ApiResult<Json<Value>> {
    let helpers = gateway.house.helpers().and_then(|helpers| Some((helpers, helpers.polishes()?)));
    let (helpers, most) = helpers.ok_or_else(|| not_here("input polish"))?;
    let text = asked.text.trim();
    if text.is_empty() || text.chars().count() > most {
        return Err(ApiError::unprocessable(format!("`text` must have 1 to {most} characters")));
    }
    let polished = helpers.polish(text).await.map_err(|why| {
        let detail = format!("the words cannot be polished now: {why}");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    let changed = polished != text;
    Ok(Json(json!({"rewritten_text": polished, "changed": changed})))
}
