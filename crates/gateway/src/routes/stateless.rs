//! Runs without a thread: one is made for each and goes with it.
//!
//! Invariant: nothing of such a run is left when it has ended, unless its thread is to be kept.

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse;
use hart_runtime::port::RunQuery;
use hart_runtime::{CancelError, Run};
use hart_types::{RunId, RunStatus, ThreadId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::run_request::{RunRequest, begin};
use super::runs;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::parse::{Bodies, Body, Path, Query, run_id, thread_id};
use crate::sse;
use crate::wire::run;

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    Body(request): Body<RunRequest>,
) -> ApiResult<Response<HttpBody>> {
    let started = begin(&gateway, None, &headers, request).await?;
    let mut response = Json(run::json(&started)).into_response();
    locate(response.headers_mut(), &started);
    Ok(response)
}

pub(crate) async fn stream(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    Body(request): Body<RunRequest>,
) -> ApiResult<Response<HttpBody>> {
    let listening = request.listening();
    let started = begin(&gateway, None, &headers, request).await?;
    let mut response = sse::response(&gateway, listening.watch(started.clone()));
    locate(response.headers_mut(), &started);
    Ok(response)
}

pub(crate) async fn wait(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    Body(request): Body<RunRequest>,
) -> ApiResult<Response<HttpBody>> {
    let cancel_on_disconnect = request.listening().cancel_on_disconnect;
    let started = begin(&gateway, None, &headers, request).await?;
    let mut response = runs::result_of(gateway, started.clone(), cancel_on_disconnect);
    runs::locate(response.headers_mut(), &started, Some("join"));
    Ok(response)
}

pub(crate) async fn batch(
    State(gateway): State<Gateway>,
    Bodies(requests): Bodies<RunRequest>,
) -> ApiResult<Json<Value>> {
    // All of them are checked before one is started.
    let mut starts = Vec::with_capacity(requests.len());
    for request in requests {
        starts.push(request.start(&gateway, None, None).await?);
    }
    let mut started = Vec::with_capacity(starts.len());
    for start in starts {
        started.push(run::json(&gateway.runtime.start(start).await?));
    }
    Ok(Json(started.into()))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RunsCancel")]
pub(crate) struct CancelMany {
    status: Option<String>,
    thread_id: Option<String>,
    #[serde(default)]
    run_ids: Vec<String>,
}

pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    query: Query,
    Body(many): Body<CancelMany>,
) -> ApiResult<StatusCode> {
    let action = runs::action(&query)?;
    if many.status.is_none() && many.run_ids.is_empty() {
        let detail = "name the runs: a `status` (pending, running or all), or `thread_id` and `run_ids`";
        return Err(ApiError::unprocessable(detail));
    }
    let status = match many.status.as_deref() {
        None | Some("all") => vec![RunStatus::Pending, RunStatus::Running],
        Some(status) => vec![status.parse().map_err(ApiError::unprocessable)?],
    };
    let ids: Vec<RunId> = many.run_ids.iter().map(|id| run_id(id)).collect::<ApiResult<_>>()?;
    let thread = many.thread_id.as_deref().map(thread_id).transpose()?;
    let found = match ids.is_empty() {
        true => all(&gateway, thread, status).await?,
        false => {
            let mut found = Vec::new();
            for id in &ids {
                found.extend(gateway.runtime.store().run(id).await?);
            }
            found.retain(|run| {
                thread.as_ref().is_none_or(|thread| *thread == run.thread) && status.contains(&run.status)
            });
            found
        }
    };
    let mut stopped = 0;
    for run in &found {
        match gateway.runtime.cancel(&run.id, action).await {
            Ok(()) => stopped += 1,
            // It ended meanwhile.
            Err(CancelError::Ended { .. } | CancelError::NoRun(_)) => {}
            Err(error @ CancelError::Store(_)) => return Err(error.into()),
        }
    }
    match stopped {
        0 => Err(ApiError::not_found("No matching runs to cancel.")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Before one of them is stopped: then it is not among them any more.
async fn all(gateway: &Gateway, thread: Option<ThreadId>, status: Vec<RunStatus>) -> ApiResult<Vec<Run>> {
    let (mut found, mut query) = (Vec::new(), RunQuery { thread, status, limit: PAGE, offset: 0 });
    loop {
        let page = gateway.runtime.store().runs(&query).await?;
        let last = (page.len() as u64) < PAGE;
        found.extend(page);
        query.offset += PAGE;
        if last {
            return Ok(found);
        }
    }
}

/// How many runs are read at once.
const PAGE: u64 = 1000;

pub(crate) async fn join_stream(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> ApiResult<Response<HttpBody>> {
    let found = gateway.runtime.store().run(&run_id(&id)?).await?;
    let found = found.ok_or_else(|| ApiError::not_found(format!("Run with ID {id} not found")))?;
    let mut response = runs::follow(&gateway, found.clone(), &query, &headers).await?;
    locate(response.headers_mut(), &found);
    Ok(response)
}

/// It is found without its thread.
fn locate(headers: &mut HeaderMap, run: &Run) {
    runs::locate_at(headers, format!("/runs/{}", run.id), Some("stream"));
}
