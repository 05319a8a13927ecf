//! What an assistant's agent is made of, in LangGraph's words.
//!
//! Invariant: hart's agents have one shape: a model that calls tools.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiResult;
use crate::parse::Path;

pub(crate) async fn graph(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let assistant = gateway.runtime.assistant(&id).await?;
    let node = |name: &str| json!({"id": name, "type": "runnable", "data": {"name": name}});
    // An agent that cannot be built now, for want of a key perhaps, has a shape nonetheless.
    let tools = match gateway.runtime.tools_of(&assistant).await {
        Ok(names) => {
            json!({"id": "tools", "type": "runnable", "data": {"name": "tools"}, "metadata": {"__tools": names}})
        }
        Err(_) => node("tools"),
    };
    Ok(Json(json!({
        "nodes": [node("__start__"), node("model"), node("after_model"), tools, {"id": "__end__"}],
        "edges": [
            {"source": "__start__", "target": "model"},
            {"source": "model", "target": "after_model"},
            {"source": "after_model", "target": "model", "conditional": true},
            {"source": "after_model", "target": "tools", "conditional": true},
            {"source": "after_model", "target": "__end__", "conditional": true},
            {"source": "tools", "target": "model", "conditional": true},
            {"source": "tools", "target": "__end__", "conditional": true},
        ],
    })))
}

pub(crate) async fn schemas(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let assistant = gateway.runtime.assistant(&id).await?;
    let messages = json!({
        "type": "object",
        "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
    });
    Ok(Json(json!({
        "graph_id": assistant.graph,
        "input_schema": messages,
        "output_schema": messages,
        "state_schema": messages,
        "config_schema": {"type": "object"},
        "context_schema": {"type": "object"},
    })))
}

/// There are none, in any namespace.
pub(crate) async fn subgraphs(
    State(gateway): State<Gateway>,
    Path(path): Path<Vec<(String, String)>>,
) -> ApiResult<Json<Value>> {
    let id = path.first().map(|(_, id)| id.as_str()).unwrap_or_default();
    gateway.runtime.assistant(id).await?;
    Ok(Json(json!({})))
}
