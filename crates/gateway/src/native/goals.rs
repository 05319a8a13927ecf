//! What a thread is to reach: read, set, cleared.
//!
//! Invariant: a goal is set as any value of the state is, by a step of its own; never while a run works on the thread.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_runtime::Thread;
use hart_runtime::port::Created;
use hart_types::ThreadId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{not_here, workspace};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::{Body, Path, thread_id};

/// How agents are held to goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goals {
    pub enabled: bool,
    /// How often an agent is sent on in a run, at most.
    pub max_continuations: u32,
}

pub(super) fn table() -> Table {
    Table::default().route(
        "/api/threads/{thread}/goal",
        get("What a thread is to reach", read)
            .put("Say what a thread is to reach", set)
            .delete("Let a thread have no goal", clear),
    )
}

async fn read(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    thread_id(&thread)?;
    on(&gateway)?;
    let of = workspace(&gateway, &thread).await?;
    Ok(Json(reached(&gateway, &of.thread).await?))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadGoal")]
struct Set {
    /// 1 to 4000 characters.
    objective: String,
    /// How often the agent is sent on in a run, 0 to 8; the server may allow less.
    max_continuations: Option<u32>,
}

async fn set(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(asked): Body<Set>,
) -> ApiResult<Json<Value>> {
    let thread = thread_id(&thread)?;
    let most = on(&gateway)?.max_continuations;
    let objective = asked.objective.trim();
    if !(1..=OBJECTIVE_CHARS).contains(&objective.chars().count()) {
        let detail = format!("`objective` has 1 to {OBJECTIVE_CHARS} characters");
        return Err(ApiError::unprocessable(detail));
    }
    let times = asked.max_continuations.unwrap_or(CONTINUATIONS);
    if times > CONTINUATIONS {
        return Err(ApiError::unprocessable(format!("`max_continuations` is 0 to {CONTINUATIONS}")));
    }
    let now = gateway.runtime.now();
    // Clients choose a thread's id and may set its goal before its first message.
    let row = Thread::new(thread, "default".into(), now);
    let (Created::New(row) | Created::Existing(row)) = gateway.runtime.store().create_thread(row).await?;
    let goal = json!({
        "objective": objective, "max_continuations": times.min(most), "created_at": now, "updated_at": now,
    });
    write(&gateway, &row.id, goal).await
}

async fn clear(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    thread_id(&thread)?;
    on(&gateway)?;
    let of = workspace(&gateway, &thread).await?;
    write(&gateway, &of.thread, Value::Null).await
}

/// DeerFlow's bounds.
const OBJECTIVE_CHARS: usize = 4000;
const CONTINUATIONS: u32 = 8;

fn on(gateway: &Gateway) -> ApiResult<Goals> {
    let goals = gateway.house.goals().ok_or_else(|| not_here("goals"))?;
    match goals.enabled {
        true => Ok(goals),
        false => {
            let detail = "threads have no goals here; set `goal.enabled: true`";
            Err(ApiError::new(StatusCode::FORBIDDEN, detail))
        }
    }
}

async fn write(gateway: &Gateway, thread: &ThreadId, goal: Value) -> ApiResult<Json<Value>> {
    let values = Map::from_iter([("goal".to_owned(), goal)]);
    gateway.runtime.update_state(thread, values, None, None).await?;
    Ok(Json(reached(gateway, thread).await?))
}

async fn reached(gateway: &Gateway, thread: &ThreadId) -> ApiResult<Value> {
    /// Of all values the one that is asked for.
    #[derive(Default, Deserialize)]
    struct Values {
        goal: Option<Value>,
    }
    let state = gateway.runtime.state(thread, None).await?;
    let values: Values = serde_json::from_slice(&state.values).unwrap_or_default();
    Ok(json!({ "goal": values.goal }))
}
