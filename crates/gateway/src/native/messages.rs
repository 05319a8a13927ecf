//! What was said, in pages, as DeerFlow's clients read it.
//!
//! Invariant: a row is one message with its number; the way back through a conversation meets every row once.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use hart_runtime::port::{Feedback, FeedbackScope};
use hart_runtime::{Run, Said};
use hart_types::{RunId, RunStatus};
use serde_json::{Map, Value, json};

use super::{delegated, feedback, run_of, workspace};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, get};
use crate::parse::{Path, Query};
use crate::wire::time;

pub(super) fn table() -> Table {
    const PAGE: &[(&str, &str)] =
        &[("limit", "integer"), ("before_seq", "integer"), ("after_seq", "integer")];
    Table::default()
        .route("/api/threads/{thread}/messages", get("What was said on a thread", of_thread).query(PAGE))
        .route(
            "/api/threads/{thread}/messages/page",
            get("What was said on a thread, from its end backwards", page)
                .query(&[("limit", "integer"), ("before_seq", "integer")]),
        )
        .route("/api/threads/{thread}/runs/{run}/messages", get("What was said in a run", of_run).query(PAGE))
        .route("/api/runs/{run}/messages", get("What was said in a run", of_run_alone).query(PAGE))
        .route(
            "/api/threads/{thread}/runs/{run}/events",
            get("What happened in a run", events).query(&[
                ("event_types", "string"),
                ("task_id", "string"),
                ("limit", "integer"),
                ("after_seq", "integer"),
            ]),
        )
}

async fn of_thread(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let (window, of) = (Window::read(&query)?, workspace(&gateway, &thread).await?);
    let said = gateway.runtime.transcript(&of.thread).await?;
    let opinions = gateway.runtime.store().feedback(&FeedbackScope::Thread(of.thread)).await?;
    let (mut rows, _) = window.cut(rows(&said, &opinions));
    time_runs(&gateway, &mut rows).await?;
    Ok(Json(rows.into()))
}

async fn page(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    if query.get("after_seq").is_some() {
        return Err(ApiError::unprocessable("pages go backwards: give `before_seq`, not `after_seq`"));
    }
    let (window, of) = (Window::read(&query)?, workspace(&gateway, &thread).await?);
    let said = gateway.runtime.transcript(&of.thread).await?;
    let opinions = gateway.runtime.store().feedback(&FeedbackScope::Thread(of.thread)).await?;
    let (mut rows, more) = window.cut(rows(&said, &opinions));
    time_runs(&gateway, &mut rows).await?;
    let first = rows.first().and_then(|row| row.get("seq")).filter(|_| more).cloned();
    Ok(Json(json!({"data": rows, "has_more": more, "next_before_seq": first})))
}

async fn of_run(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let window = Window::read(&query)?;
    let run = run_of(&gateway, &thread, &run).await?;
    in_run(&gateway, &run, window).await
}

async fn of_run_alone(
    State(gateway): State<Gateway>,
    Path(run): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let window = Window::read(&query)?;
    let found = gateway.runtime.store().run(&RunId::from(run.as_str())).await?;
    let run = found.ok_or_else(|| ApiError::not_found(format!("Run with ID {run} not found")))?;
    in_run(&gateway, &run, window).await
}

async fn in_run(gateway: &Gateway, run: &Run, window: Window) -> ApiResult<Json<Value>> {
    let said = gateway.runtime.said_in(run).await?;
    let opinions = gateway.runtime.store().feedback(&FeedbackScope::Run(run.id.clone())).await?;
    let (mut rows, more) = window.cut(rows(&said, &opinions));
    time_runs(gateway, &mut rows).await?;
    Ok(Json(json!({"data": rows, "has_more": more})))
}

async fn events(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let limit = number(&query, "limit", 500, 2000)?;
    let after = query.number("after_seq", 0)?;
    let kinds = query.list("event_types");
    let run = run_of(&gateway, &thread, &run).await?;
    let task = query.get("task_id");
    // They are numbered by the stream, so they come only to whoever asks for them.
    if task.is_some() || kinds.iter().any(|kind| delegated::is_kind(kind)) {
        let asked = delegated::Asked { kinds: &kinds, task, after, limit };
        return Ok(Json(delegated::rows(&gateway, &run, &asked).await?.into()));
    }
    let said = gateway.runtime.said_in(&run).await?;
    let rows = happened(&run, &said).into_iter().filter(|row| {
        let kind = row.get("event_type").and_then(Value::as_str).unwrap_or_default();
        seq(row) > after && (kinds.is_empty() || kinds.iter().any(|wanted| wanted == kind))
    });
    Ok(Json(rows.take(limit).collect()))
}

/// Which rows are wanted.
struct Window {
    limit: usize,
    before: u64,
    after: Option<u64>,
}

impl Window {
    fn read(query: &Query) -> ApiResult<Self> {
        let after = query.get("after_seq").map(|_| query.number("after_seq", 0)).transpose()?;
        Ok(Self {
            limit: number(query, "limit", 50, 200)?,
            before: query.number("before_seq", u64::MAX)?,
            after,
        })
    }

    /// The rows of the window, oldest first, and whether it leaves out some: the newest ones there are, or the first
    /// ones behind `after`.
    fn cut(self, rows: Vec<Value>) -> (Vec<Value>, bool) {
        let inside = |row: &Value| seq(row) < self.before && seq(row) > self.after.unwrap_or_default();
        let mut rows: Vec<Value> = rows.into_iter().filter(inside).collect();
        let more = rows.len() > self.limit;
        match self.after {
            Some(_) => rows.truncate(self.limit),
            None => drop(rows.drain(..rows.len().saturating_sub(self.limit))),
        }
        (rows, more)
    }
}

fn number(query: &Query, key: &str, default: u64, most: u64) -> ApiResult<usize> {
    match query.number(key, default)? {
        number if (1..=most).contains(&number) => Ok(usize::try_from(number).unwrap_or_default()),
        _ => Err(ApiError::unprocessable(format!("`{key}` must be between 1 and {most}"))),
    }
}

fn seq(row: &Value) -> u64 {
    row.get("seq").and_then(Value::as_u64).unwrap_or_default()
}

/// The rows of what was said; the last answer of each run shows what was thought of it.
fn rows(said: &[Said], opinions: &[Feedback]) -> Vec<Value> {
    let shown: Vec<&Said> = said.iter().filter(|said| !said.is_hidden() && kind(said).is_some()).collect();
    let answers = shown.iter().filter(|said| said.kind() == "ai");
    let last: HashMap<&RunId, u64> = answers.map(|said| (&said.run, said.seq)).collect();
    let with_opinion = |said: &&Said| {
        let mut row = row(said);
        if let (true, Some(map)) = (last.get(&said.run) == Some(&said.seq), row.as_object_mut()) {
            let opinion = opinions.iter().rfind(|opinion| opinion.run == said.run);
            map.insert("feedback".to_owned(), opinion.map(feedback::brief).unwrap_or_default());
        }
        row
    };
    shown.iter().map(with_opinion).collect()
}

/// Writes on the last answer of each run that has ended how many seconds it took; the frontend shows it there.
async fn time_runs(gateway: &Gateway, rows: &mut [Value]) -> ApiResult<()> {
    for row in rows.iter_mut().filter(|row| row.get("feedback").is_some()) {
        let id = row.get("run_id").and_then(Value::as_str).unwrap_or_default();
        let Some(run) = gateway.runtime.store().run(&RunId::from(id)).await? else { continue };
        if matches!(run.status, RunStatus::Pending | RunStatus::Running) {
            continue;
        }
        let took = run.updated_at.duration_since(run.start_at.max(run.created_at)).as_secs().max(0);
        if let Some(answer) = row.get_mut("content").and_then(Value::as_object_mut) {
            let about = answer.entry("additional_kwargs").or_insert_with(|| json!({}));
            if let Some(about) = about.as_object_mut() {
                about.insert("turn_duration".to_owned(), took.into());
            }
        }
    }
    Ok(())
}

fn row(said: &Said) -> Value {
    let mut about = Map::from_iter([("caller".to_owned(), Value::from("lead_agent"))]);
    if let Some(usage) = said.message.get("usage_metadata").filter(|usage| !usage.is_null()) {
        about.insert("usage".to_owned(), usage.clone());
    }
    json!({
        "run_id": said.run, "seq": said.seq, "event_type": kind(said), "category": "message",
        "content": said.message, "metadata": about, "created_at": time(said.at),
    })
}

fn kind(said: &Said) -> Option<&'static str> {
    match said.kind() {
        "human" => Some("llm.human.input"),
        "ai" => Some("llm.ai.response"),
        "tool" => Some("llm.tool.result"),
        _ => None,
    }
}

/// With its beginning and its end around what was said.
fn happened(run: &Run, said: &[Said]) -> Vec<Value> {
    let first = said.first().map_or(0, |said| said.seq.saturating_sub(1));
    let last = said.last().map_or(first, |said| said.seq) + 1;
    let event = |seq: u64, kind: &str, category: &str, content: Value, at| {
        json!({"run_id": run.id, "seq": seq, "event_type": kind, "category": category, "content": content,
            "metadata": {}, "created_at": time(at)})
    };
    let mut rows = vec![event(first, "run.start", "trace", json!({}), run.start_at.max(run.created_at))];
    rows.extend(said.iter().filter(|said| kind(said).is_some()).map(row));
    match (run.status, &run.error) {
        (RunStatus::Pending | RunStatus::Running, _) => {}
        (_, Some(failure)) => {
            let why = json!({"name": failure.error, "message": failure.message});
            rows.push(event(last, "run.error", "error", why, run.updated_at));
        }
        (status, None) => {
            rows.push(event(last, "run.end", "outputs", json!({ "status": status }), run.updated_at));
        }
    }
    rows
}
