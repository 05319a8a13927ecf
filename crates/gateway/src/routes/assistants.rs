//! Agents under the name of assistants.
//!
//! Invariant: an assistant is found by its id and by its agent's name alike.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use hart_runtime::AgentInfo;
use hart_types::AssistantId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::threads::pagination;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::parse::Body;
use crate::wire::assistant;

#[derive(Debug, Deserialize)]
pub(crate) struct Search {
    graph_id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default = "ten")]
    limit: usize,
    #[serde(default)]
    offset: usize,
}

fn ten() -> usize {
    10
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<(HeaderMap, Json<Value>)> {
    let found = matching(&gateway, &search)?;
    let page: Vec<Value> = found.iter().skip(search.offset).take(search.limit).cloned().collect();
    let headers =
        pagination(search.offset, search.limit, page.len(), search.offset + page.len() < found.len());
    Ok((headers, Json(page.into())))
}

pub(crate) async fn count(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<Json<Value>> {
    Ok(Json(matching(&gateway, &search)?.len().into()))
}

pub(crate) async fn get(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let (agent, _) = find(&gateway, &id)?;
    Ok(Json(assistant::json(&agent, &started(&gateway))))
}

/// hart's agents have one shape: a model that calls tools.
pub(crate) async fn graph(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    find(&gateway, &id)?;
    let node = |name: &str| json!({"id": name, "type": "runnable", "data": {"name": name}});
    Ok(Json(json!({
        "nodes": [node("__start__"), node("model"), node("tools"), {"id": "__end__"}],
        "edges": [
            {"source": "__start__", "target": "model"},
            {"source": "model", "target": "tools", "conditional": true},
            {"source": "model", "target": "__end__", "conditional": true},
            {"source": "tools", "target": "model"},
        ],
    })))
}

pub(crate) async fn schemas(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let (agent, _) = find(&gateway, &id)?;
    let messages = json!({
        "type": "object",
        "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
    });
    Ok(Json(json!({
        "graph_id": agent.name,
        "input_schema": messages,
        "output_schema": messages,
        "state_schema": messages,
        "config_schema": {"type": "object"},
        "context_schema": {"type": "object"},
    })))
}

pub(crate) async fn subgraphs(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    find(&gateway, &id)?;
    Ok(Json(json!({})))
}

/// The agent an assistant's id or name means.
pub(crate) fn find(gateway: &Gateway, id: &str) -> ApiResult<(AgentInfo, AssistantId)> {
    let agents = gateway.runtime.agents().agents();
    let found = agents.into_iter().map(|agent| (assistant::id(&agent.name), agent));
    let mut found = found.filter(|(own, agent)| own.as_str() == id || agent.name == id);
    match found.next() {
        Some((own, agent)) => Ok((agent, own)),
        None if uuid::Uuid::parse_str(id).is_ok() => {
            Err(ApiError::not_found("Thread or assistant not found."))
        }
        None => Err(ApiError::unprocessable(format!(
            "Invalid assistant: '{id}'. Must be either an assistant's ID or the name of an agent"
        ))),
    }
}

fn matching(gateway: &Gateway, search: &Search) -> ApiResult<Vec<Value>> {
    let agents = gateway.runtime.agents().agents();
    if let Some(graph) = &search.graph_id
        && agents.iter().all(|agent| agent.name != *graph)
    {
        return Err(ApiError::not_found(format!("Graph '{graph}' not found")));
    }
    let wanted = |agent: &&AgentInfo| {
        search.graph_id.as_ref().is_none_or(|graph| agent.name == *graph)
            && search
                .name
                .as_ref()
                .is_none_or(|name| agent.name.to_lowercase().contains(&name.to_lowercase()))
            && search.metadata.iter().all(|(key, value)| key == "created_by" && value == "system")
    };
    let at = started(gateway);
    Ok(agents.iter().filter(wanted).map(|agent| assistant::json(agent, &at)).collect())
}

fn started(gateway: &Gateway) -> String {
    crate::wire::time(gateway.started)
}
