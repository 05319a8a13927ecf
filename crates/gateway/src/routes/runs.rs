//! Runs on a thread: started, waited for, followed, stopped.
//!
//! Invariant: the address of a run is in the headers before anything of its body.

use std::io;
use std::time::Duration;

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use hart_runtime::port::RunQuery;
use hart_runtime::{After, Failure, LogEvent, Recall, Run, Spelling, StateError};
use hart_types::{CancelAction, StreamMode, ThreadId};
use serde_json::{Value, json};

use super::run_request::{RunRequest, begin};
use super::threads::known;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::gap;
use crate::parse::{Body, Path, Query, limit_of, run_id, selected, thread_id};
use crate::sse::{self, OnDisconnect, Watch};
use crate::wire::{run, select, state};

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Body(request): Body<RunRequest>,
) -> ApiResult<Response<HttpBody>> {
    let started = begin(&gateway, Some(thread_id(&thread)?), &headers, request).await?;
    let mut response = Json(run::json(&started)).into_response();
    locate(response.headers_mut(), &started, None);
    Ok(response)
}

pub(crate) async fn stream(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Body(request): Body<RunRequest>,
) -> ApiResult<Response<HttpBody>> {
    let listening = request.listening();
    let started = begin(&gateway, Some(thread_id(&thread)?), &headers, request).await?;
    let mut response = sse::response(&gateway, listening.watch(started.clone()));
    locate(response.headers_mut(), &started, Some("stream"));
    Ok(response)
}

pub(crate) async fn wait(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Body(request): Body<RunRequest>,
) -> ApiResult<Response<HttpBody>> {
    let cancel_on_disconnect = request.listening().cancel_on_disconnect;
    let started = begin(&gateway, Some(thread_id(&thread)?), &headers, request).await?;
    let mut response = result_of(gateway, started.clone(), cancel_on_disconnect);
    locate(response.headers_mut(), &started, Some("join"));
    Ok(response)
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let thread = known(&gateway, &thread).await?;
    let status =
        query.get("status").map(|status| status.parse().map_err(ApiError::unprocessable)).transpose()?;
    let keys = query.list("select");
    selected(&keys, run::KEYS)?;
    let query = RunQuery {
        thread: Some(thread.id),
        status: status.into_iter().collect(),
        limit: limit_of(Some(query.number("limit", 10)?), 10)?,
        offset: query.number("offset", 0)?,
    };
    let runs = gateway.runtime.store().runs(&query).await?;
    Ok(Json(runs.iter().map(|run| select(run::json(run), &keys)).collect()))
}

pub(crate) async fn get(
    State(gateway): State<Gateway>,
    Path(path): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    Ok(Json(run::json(&find(&gateway, path).await?)))
}

pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Path(path): Path<(String, String)>,
) -> ApiResult<StatusCode> {
    let found = find(&gateway, path).await?;
    gateway.runtime.delete_run(&found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn join(
    State(gateway): State<Gateway>,
    Path(path): Path<(String, String)>,
    query: Query,
) -> ApiResult<Response<HttpBody>> {
    let found = find(&gateway, path).await?;
    let cancel_on_disconnect = query.flag("cancel_on_disconnect");
    let mut response = result_of(gateway, found.clone(), cancel_on_disconnect);
    locate(response.headers_mut(), &found, Some("join"));
    Ok(response)
}

pub(crate) async fn join_stream(
    State(gateway): State<Gateway>,
    Path(path): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
) -> ApiResult<Response<HttpBody>> {
    let found = find(&gateway, path).await?;
    follow(&gateway, found, &query, &headers).await
}

pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    Path(path): Path<(String, String)>,
    query: Query,
) -> ApiResult<Response<HttpBody>> {
    let found = find(&gateway, path).await?;
    let action = action(&query)?;
    gateway.runtime.cancel(&found.id, action).await?;
    if query.flag("wait") {
        gateway.runtime.wait(&found.id).await;
        let mut response = Json(json!({})).into_response();
        locate(response.headers_mut(), &found, Some("join"));
        return Ok(response);
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

pub(super) fn action(query: &Query) -> ApiResult<CancelAction> {
    query
        .get("action")
        .map_or(Ok(CancelAction::Interrupt), |action| action.parse().map_err(ApiError::unprocessable))
}

/// Reads on from where the reader was.
pub(super) async fn follow(
    gateway: &Gateway,
    found: Run,
    query: &Query,
    headers: &HeaderMap,
) -> ApiResult<Response<HttpBody>> {
    let modes = query.list("stream_mode");
    let modes: Vec<StreamMode> = match modes.is_empty() {
        true => asked_modes(&found),
        false => modes
            .iter()
            .map(|mode| mode.parse().map_err(ApiError::unprocessable))
            .collect::<ApiResult<_>>()?,
    };
    let after = last_seen(headers)?;
    let mut response = match gap::in_run(gateway, &found, after).await? {
        Some(gap) => sse::respond(gateway, gap),
        None => {
            let children = asked_children(&found);
            let cancel_on_disconnect = query.flag("cancel_on_disconnect");
            let watch = Watch { run: found.clone(), modes, children, after, cancel_on_disconnect };
            sse::response(gateway, watch)
        }
    };
    locate(response.headers_mut(), &found, Some("stream"));
    Ok(response)
}

/// What a reader says it has.
pub(super) fn last_seen(headers: &HeaderMap) -> ApiResult<After> {
    let Some(last) = headers.get("last-event-id") else { return Ok(After::Now) };
    match last.to_str().unwrap_or("?").trim() {
        "-1" | "-" | "" => Ok(After::Start),
        id => id.parse().map(After::Frame).map_err(|error: String| {
            ApiError::unprocessable(format!("Invalid last-event-id: {error}; send `-1` for the whole stream"))
        }),
    }
}

/// Spaces while it works, so that nobody on the way takes the line for dead; then what came out.
pub(super) fn result_of(gateway: Gateway, started: Run, cancel_on_disconnect: bool) -> Response<HttpBody> {
    let mut guard = OnDisconnect::of(&gateway, &started, cancel_on_disconnect);
    let closing = gateway.closing.clone();
    let done = Box::pin(async move {
        let outcome = outcome(&gateway, &started).await;
        guard.disarm();
        outcome.unwrap_or_else(|error| {
            tracing::error!(run = %started.id, %error, "what a run came to cannot be told");
            let message =
                format!("what the run came to cannot be read now: {error}; ask for the thread's state");
            failed(&Failure { error: "StorageError".to_owned(), message })
        })
    });
    let body = stream::unfold(Some((done, closing)), |waiting| async move {
        let (mut done, closing) = waiting?;
        tokio::select! {
            biased;
            result = &mut done => Some((Ok(result), None)),
            () = tokio::time::sleep(Duration::from_secs(5)) => {
                Some((Ok(Bytes::from_static(b"\n")), Some((done, closing))))
            }
            // Broken off, so that nobody takes what was said so far for the result.
            () = closing.cancelled() => Some((Err(io::Error::other("the server is shutting down")), None)),
        }
    });
    let mut response = Response::new(HttpBody::from_stream(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The last state that a run came to, rendered once.
async fn outcome(gateway: &Gateway, started: &Run) -> Result<Bytes, StateError> {
    let (mut last, mut failure) = (None, None);
    let mut recall = Recall::new(gateway.runtime.clone(), started.thread.clone(), Spelling::State);
    let mut follower = gateway.runtime.follow(&started.id, After::Start);
    let thread = gateway.runtime.store().thread(&started.thread).await?;
    // A thread of its own is gone when the run is over: a state that is not at hand must be taken on the way.
    let fleeting = thread.is_none_or(|thread| thread.temporary);
    follower.skip_to_last_state().await;
    while let Some(entry) = follower.next().await? {
        match &entry.logged.event {
            LogEvent::Values { .. } if entry.logged.namespace.is_empty() => {
                let values = match fleeting && !entry.is_at_hand() {
                    true => recall.values_of(&entry).await?,
                    false => None,
                };
                last = Some((entry, values));
            }
            // Not the end yet: whoever is told of it finds the run ended.
            LogEvent::Failed(why) => failure = Some(why.clone()),
            _ => {}
        }
    }
    if let Some(failure) = failure {
        return Ok(failed(&failure));
    }
    let Some((entry, values)) = last else {
        let record = gateway.runtime.store().run(&started.id).await?;
        let failure = record.and_then(|run| run.error);
        return Ok(failure.map_or(Bytes::from_static(b"{}"), |failure| failed(&failure)));
    };
    let values = match values {
        Some(values) => values,
        None => recall.values_of(&entry).await?.unwrap_or(Bytes::from_static(b"{}")),
    };
    let interrupts = match &entry.logged.event {
        // A run that was told to stop waits for nothing.
        LogEvent::Values { interrupts: Some(interrupts), .. } if !interrupts.is_empty() => interrupts,
        _ => return Ok(values),
    };
    let mut values: Value = serde_json::from_slice(&values).unwrap_or_default();
    let asked: Vec<Value> = interrupts.iter().map(state::asked).collect();
    if let Some(map) = values.as_object_mut() {
        map.insert("__interrupt__".to_owned(), asked.into());
    }
    Ok(values.to_string().into())
}

fn failed(failure: &Failure) -> Bytes {
    json!({ "__error__": failure }).to_string().into()
}

pub(super) async fn find(gateway: &Gateway, (thread, id): (String, String)) -> ApiResult<Run> {
    let thread: ThreadId = thread_id(&thread)?;
    let found = gateway.runtime.store().run(&run_id(&id)?).await?;
    found
        .filter(|run| run.thread == thread)
        .ok_or_else(|| ApiError::not_found(format!("Run with ID {id} not found")))
}

/// Where the run is, relative to the address clients were given.
pub(super) fn locate(headers: &mut HeaderMap, run: &Run, way: Option<&str>) {
    locate_at(headers, format!("/threads/{}/runs/{}", run.thread, run.id), way);
}

pub(super) fn locate_at(headers: &mut HeaderMap, place: String, way: Option<&str>) {
    let mut set = |name, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    if let Some(way) = way {
        set(header::LOCATION, format!("{place}/{way}"));
    }
    set(header::CONTENT_LOCATION, place);
}

/// Whether whoever started the run asked to hear of agents inside of calls.
pub(super) fn asked_children(run: &Run) -> bool {
    run.kwargs.get("subgraphs").and_then(Value::as_bool).unwrap_or(false)
}

/// What whoever started the run asked to hear.
pub(super) fn asked_modes(run: &Run) -> Vec<StreamMode> {
    let modes = run.kwargs.get("stream_mode").cloned().unwrap_or_default();
    serde_json::from_value(modes).unwrap_or_else(|_| vec![StreamMode::Values])
}
