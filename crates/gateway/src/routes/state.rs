//! What a thread has come to, at each of its steps.
//!
//! Invariant: reading changes nothing, and a change is a new step.

use axum::Json;
use axum::extract::State;
use hart_runtime::port::{HistoryQuery, StepInfo, contains};
use hart_runtime::{Thread, ThreadState};
use hart_types::CheckpointId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::run_request::there_is;
use super::threads::known;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::owned;
use crate::parse::{Body, Path, Query, checkpoint};
use crate::wire::state::{self, StateJson};

pub(crate) async fn get(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
) -> ApiResult<Json<StateJson>> {
    read(&gateway, &id, None).await
}

pub(crate) async fn at(
    State(gateway): State<Gateway>,
    Path((id, checkpoint)): Path<(String, String)>,
) -> ApiResult<Json<StateJson>> {
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
) -> ApiResult<Json<StateJson>> {
    of_the_thread_itself(Some(&body.checkpoint))?;
    read(&gateway, &id, checkpoint(None, Some(&body.checkpoint))?).await
}

/// Agents inside of calls leave no states behind: whoever means one of theirs is not given the thread's.
fn of_the_thread_itself(place: Option<&Map<String, Value>>) -> ApiResult<()> {
    match place.and_then(|place| place.get("checkpoint_ns")?.as_str()) {
        None | Some("") => Ok(()),
        Some(inside) => Err(ApiError::bad_request(format!("Subgraph {inside} not found"))),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "StateUpdate")]
pub(crate) struct UpdateState {
    #[serde(flatten)]
    write: StateWrite,
    checkpoint: Option<Map<String, Value>>,
    checkpoint_id: Option<String>,
}

/// Values, and the node that they are said to be of.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StateWrite {
    values: Option<Value>,
    as_node: Option<String>,
}

impl StateWrite {
    /// What comes in as `__input__` is not in the state until `__start__`, which then says it again, has taken it in.
    pub(super) fn say_input_once(writes: &mut [Self]) {
        let mut is_said_again = false;
        for write in writes.iter_mut().rev() {
            let node = write.as_node.as_deref();
            if is_said_again && node == Some("__input__") {
                write.values = None;
            }
            is_said_again = node == Some("__start__");
        }
    }

    /// Behind a step, or behind the newest one.
    pub(super) async fn apply(
        self,
        gateway: &Gateway,
        thread: &Thread,
        at: Option<CheckpointId>,
    ) -> ApiResult<CheckpointId> {
        let as_node = self.as_node.as_deref();
        if let Some(node) = as_node
            && !["model", "after_model", "tools", "__start__", "__input__", "__end__"].contains(&node)
            && !gateway.runtime.knows_node(thread, node)
        {
            return Err(ApiError::bad_request(format!("Node {node} does not exist")));
        }
        let mut values = match self.values {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(ApiError::bad_request("`values` must be an object")),
        };
        owned::strip(&mut values);
        Ok(gateway.runtime.update_state(&thread.id, values, as_node, at).await?)
    }
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
    of_the_thread_itself(body.checkpoint.as_ref())?;
    let at = checkpoint(body.checkpoint_id, body.checkpoint.as_ref())?;
    if let Some(at) = &at {
        there_is(&gateway, Some(&thread.id), at).await?;
    }
    let step = body.write.apply(&gateway, &thread, at).await?;
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
) -> ApiResult<Json<Vec<StateJson>>> {
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
    let place = body.checkpoint.as_ref();
    let inside = place.and_then(|place| place.get("checkpoint_ns")).and_then(Value::as_str);
    if inside.is_some_and(|namespace| !namespace.is_empty()) {
        // Agents inside of calls leave no states behind.
        known(&gateway, &id).await?;
        return Ok(Json(Vec::new()));
    }
    let query = HistoryQuery {
        before,
        only: checkpoint(None, place)?,
        run: body.metadata.get("run_id").and_then(Value::as_str).map(Into::into),
        limit: body.limit.unwrap_or(DEFAULT_LIMIT),
    };
    states(&gateway, &id, query, &body.metadata).await
}

/// As LangGraph has it; its clients say how many they want.
const DEFAULT_LIMIT: u64 = 1;

pub(crate) async fn history_get(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    query: Query,
) -> ApiResult<Json<Vec<StateJson>>> {
    let before = query.get("before").map(CheckpointId::from);
    let limit = query.number("limit", DEFAULT_LIMIT)?;
    states(&gateway, &id, HistoryQuery { before, limit, ..HistoryQuery::default() }, &Map::new()).await
}

async fn read(gateway: &Gateway, id: &str, at: Option<CheckpointId>) -> ApiResult<Json<StateJson>> {
    let thread = known(gateway, id).await?;
    let reached = gateway.runtime.state(&thread.id, at.as_ref()).await?;
    Ok(Json(match (at, &reached.step) {
        (Some(at), None) => state::nowhere(&thread, &reached, at),
        _ => shown(&thread, &reached),
    }))
}

/// With why the last run failed, at the step it failed at.
fn shown(thread: &Thread, reached: &ThreadState) -> StateJson {
    let mut json = state::json(thread, reached);
    let is_head = reached.at.is_some() && reached.at == thread.head;
    if let (true, Some(failure), Some(task)) = (is_head, &thread.error, json.tasks.first_mut()) {
        task["error"] = format!("{}({:?})", failure.error, failure.message).into();
    }
    json
}

async fn states(
    gateway: &Gateway,
    id: &str,
    query: HistoryQuery,
    metadata: &Map<String, Value>,
) -> ApiResult<Json<Vec<StateJson>>> {
    let thread = known(gateway, id).await?;
    if !(1..=1000).contains(&query.limit) {
        return Err(ApiError::unprocessable("`limit` must be between 1 and 1000"));
    }
    let wanted = Value::Object(metadata.clone());
    let is_wanted = |step: &StepInfo| contains(&state::metadata(&thread, step), &wanted);
    let states = gateway.runtime.history(&thread.id, &query, is_wanted).await?;
    Ok(Json(states.iter().map(|reached| shown(&thread, reached)).collect()))
}
