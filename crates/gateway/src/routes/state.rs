//! What a thread has come to, at each of its steps.
//!
//! Invariant: reading changes nothing, and a change is a new step.

use axum::Json;
use axum::extract::State;
use hart_runtime::port::HistoryQuery;
use hart_runtime::{Thread, ThreadState};
use hart_types::CheckpointId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::threads::known;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::owned;
use crate::parse::{Body, Path, Query, checkpoint};
use crate::wire::state;

pub(crate) async fn get(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    read(&gateway, &id, None).await
}

pub(crate) async fn at(
    State(gateway): State<Gateway>,
    Path((id, checkpoint)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    read(&gateway, &id, Some(checkpoint.into())).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "StateAtCheckpoint")]
pub(crate) struct AtCheckpoint {
    checkpoint: Map<String, Value>,
}

pub(crate) async fn at_checkpoint(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(body): Body<AtCheckpoint>,
) -> ApiResult<Json<Value>> {
    read(&gateway, &id, checkpoint(None, Some(&body.checkpoint))).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "StateUpdate")]
pub(crate) struct UpdateState {
    values: Option<Value>,
    as_node: Option<String>,
    checkpoint: Option<Map<String, Value>>,
    checkpoint_id: Option<String>,
}

pub(crate) async fn update(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(body): Body<UpdateState>,
) -> ApiResult<Json<Value>> {
    let thread = known(&gateway, &id).await?;
    if !thread.metadata.contains_key("graph_id") {
        return Err(ApiError::bad_request(format!(
            "Thread {id} has no graph ID; run an agent on it, or create it with `metadata.graph_id`"
        )));
    }
    let as_node = body.as_node.as_deref();
    if let Some(node) = as_node
        && !["model", "tools", "__start__", "__input__", "__end__"].contains(&node)
        && !gateway.runtime.knows_node(&thread, node)
    {
        return Err(ApiError::bad_request(format!("Node {node} does not exist")));
    }
    let mut values = match body.values {
        None => Map::new(),
        Some(Value::Object(map)) => map,
        Some(_) => return Err(ApiError::bad_request("`values` must be an object")),
    };
    owned::strip(&mut values);
    let at = checkpoint(body.checkpoint_id, body.checkpoint.as_ref());
    let step = gateway.runtime.update_state(&thread.id, values, as_node, at).await?;
    let place = json!({"thread_id": thread.id, "checkpoint_ns": "", "checkpoint_id": step});
    Ok(Json(json!({"checkpoint": place, "configurable": place, "checkpoint_id": step})))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "StateHistory")]
pub(crate) struct History {
    limit: Option<u64>,
    before: Option<Value>,
    #[serde(default)]
    metadata: Map<String, Value>,
    checkpoint: Option<Map<String, Value>>,
}

pub(crate) async fn history(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(body): Body<History>,
) -> ApiResult<Json<Value>> {
    let before = match &body.before {
        None => None,
        // DeerFlow's clients send the id itself.
        Some(Value::String(id)) => Some(CheckpointId::from(id.as_str())),
        Some(object) => {
            let inside =
                object.pointer("/configurable/checkpoint_id").or_else(|| object.get("checkpoint_id"));
            let inside = inside.and_then(Value::as_str);
            Some(inside.map(CheckpointId::from).ok_or_else(|| {
                ApiError::unprocessable("`before` must be a config with `configurable.checkpoint_id`")
            })?)
        }
    };
    let only = checkpoint(None, body.checkpoint.as_ref());
    let run = body.metadata.get("run_id").and_then(Value::as_str).map(Into::into);
    let query = HistoryQuery { before, only, run, limit: body.limit.unwrap_or(10) };
    states(&gateway, &id, query).await
}

pub(crate) async fn history_get(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let before = query.get("before").map(CheckpointId::from);
    let query = HistoryQuery { before, limit: query.number("limit", 10)?, ..HistoryQuery::default() };
    states(&gateway, &id, query).await
}

async fn read(gateway: &Gateway, id: &str, at: Option<CheckpointId>) -> ApiResult<Json<Value>> {
    let thread = known(gateway, id).await?;
    let reached = gateway.runtime.state(&thread.id, at.as_ref()).await?;
    Ok(Json(shown(&thread, &reached)))
}

/// With why the last run failed, at the step it failed at.
fn shown(thread: &Thread, reached: &ThreadState) -> Value {
    let mut json = state::json(&thread.id, reached);
    let is_head = reached.step.as_ref().is_some_and(|step| thread.head.as_ref() == Some(&step.id));
    if let (true, Some(failure), Some(task)) = (is_head, &thread.error, json.pointer_mut("/tasks/0/error")) {
        *task = format!("{}({:?})", failure.error, failure.message).into();
    }
    json
}

async fn states(gateway: &Gateway, id: &str, query: HistoryQuery) -> ApiResult<Json<Value>> {
    let thread = known(gateway, id).await?;
    if !(1..=1000).contains(&query.limit) {
        return Err(ApiError::unprocessable("`limit` must be between 1 and 1000"));
    }
    let states = gateway.runtime.history(&thread.id, &query).await?;
    Ok(Json(states.iter().map(|reached| shown(&thread, reached)).collect()))
}
