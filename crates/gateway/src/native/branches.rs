//! Going on from an earlier point: in a thread of its own, again, or with other words; and making a thread shorter.
//!
//! Invariant: nothing that was said is lost; another way begins at a step and the old one stays.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_runtime::port::{EventScope, RunQuery};
use hart_runtime::{Input, LogEvent, Logged, Said, StartRun};
use hart_types::{MultitaskStrategy, RunStatus, ThreadId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::workspace;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, post};
use crate::parse::{Body, Path};
use crate::wire::time;

pub(super) fn table() -> Table {
    Table::default()
        .route(
            "/api/threads/{thread}/branches",
            post("Go on from a message in a thread of its own", branch)
                .get("Where a thread went more than one way, and where those ways end", ways),
        )
        .route(
            "/api/threads/{thread}/compact",
            post("Replace the older part of a thread by a summary", compact),
        )
        .route(
            "/api/threads/{thread}/runs/regenerate/prepare",
            post("What to start so that an answer is given again", again),
        )
        .route(
            "/api/threads/{thread}/runs/edit-regenerate/prepare",
            post("What to start so that a question is asked in other words", in_other_words),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadBranch")]
struct Branch {
    message_id: String,
    /// More messages of the same turn; the branch begins behind the last of them.
    #[serde(default)]
    message_ids: Vec<String>,
    title: Option<String>,
}

async fn branch(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(branch): Body<Branch>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    if branch.title.as_ref().is_some_and(|title| title.chars().count() > 256) {
        return Err(ApiError::unprocessable("`title` may have 256 characters"));
    }
    let said = gateway.runtime.transcript(&of.thread).await?;
    let wanted =
        |said: &&Said| said.id() == branch.message_id || branch.message_ids.iter().any(|id| id == said.id());
    let last = said.iter().rfind(wanted).ok_or_else(|| no_message(&branch.message_id))?;
    let metadata = Map::from_iter([
        ("parent_thread_id".to_owned(), Value::from(of.thread.as_str())),
        ("branched_from_message_id".to_owned(), Value::from(branch.message_id.as_str())),
    ]);
    let made = gateway.runtime.branch_thread(&of.thread, last.id(), metadata).await?;
    let (made, at) = made.ok_or_else(|| no_message(&branch.message_id))?;
    if let Some(title) = branch.title.filter(|title| !title.trim().is_empty()) {
        let values = Map::from_iter([("title".to_owned(), Value::from(title.trim()))]);
        gateway.runtime.update_state(&made.id, values, None, None).await?;
    }
    Ok(Json(json!({
        "thread_id": made.id, "parent_thread_id": of.thread, "parent_checkpoint_id": at,
        "branched_from_message_id": branch.message_id, "workspace_clone_mode": "current",
        "history_seed_mode": "checkpoint",
    })))
}

/// A run, or a state that is written, at the `checkpoint_id` of a way goes on with it.
async fn ways(State(gateway): State<Gateway>, Path(thread): Path<String>) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let forks = gateway.runtime.forks(&of.thread).await?;
    let forks: Vec<Value> = forks
        .iter()
        .map(|fork| {
            let ways = fork.ways.iter().map(
                |way| json!({"run_id": way.run, "checkpoint_id": way.end, "created_at": time(way.begun_at)}),
            );
            json!({"message_id": fork.message, "current": fork.current, "ways": ways.collect::<Vec<_>>()})
        })
        .collect();
    Ok(Json(json!({"thread_id": of.thread, "forks": forks})))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadCompact")]
struct Compact {
    /// How much of the end stays as it is, such as `{"type": "messages", "value": 4}`.
    keep: Option<Map<String, Value>>,
    model_name: Option<String>,
}

async fn compact(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(compact): Body<Compact>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let row = gateway.runtime.store().thread(&of.thread).await?;
    let named = row.as_ref().and_then(|row| row.metadata.get("assistant_id")).and_then(Value::as_str);
    let Some(named) = named else {
        return Ok(Json(not_compacted(&of.thread, "nothing_to_compact")));
    };
    let assistant = gateway.runtime.assistant(named).await?;
    let ask = compact.keep.map_or(Value::Bool(true), |keep| json!({ "keep": keep }));
    let mut start = StartRun::of(&assistant, Input::Values(Map::from_iter([("compact".to_owned(), ask)])));
    start.thread = Some(of.thread.clone());
    start.user = of.user;
    start.multitask = MultitaskStrategy::Reject;
    if let Some(model) = compact.model_name {
        start.options.insert("model_name".to_owned(), model.into());
    }
    let run = gateway.runtime.start(start).await?;
    gateway.runtime.wait(&run.id).await;
    let ended = gateway.runtime.store().run(&run.id).await?;
    if let Some(failure) = ended.and_then(|run| run.error) {
        let detail = format!("the thread was not compacted: {}", failure.message);
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    let events = gateway.runtime.store().events(&EventScope::Run(run.id), 0, 10_000).await?;
    let told = events.iter().rev().find_map(|event| {
        let logged: Logged = serde_json::from_slice(&event.payload).ok()?;
        match logged.event {
            LogEvent::Custom { data } if data.get("type").is_some_and(is_outcome) => Some(data),
            _ => None,
        }
    });
    let head = gateway.runtime.store().thread(&of.thread).await?.and_then(|row| row.head);
    Ok(Json(match told {
        Some(done) if done.get("type").is_some_and(|kind| kind == "context_compacted") => {
            let of_done = |key: &str| done.get(key).cloned().unwrap_or_default();
            json!({
                "thread_id": of.thread, "compacted": true, "reason": "compacted",
                "removed_message_count": of_done("removed_message_count"),
                "preserved_message_count": of_done("preserved_message_count"),
                "summary_updated": of_done("summary_updated"), "checkpoint_id": head,
                "total_tokens": of_done("tokens_after"),
            })
        }
        Some(refused) => {
            let reason = refused.get("reason").and_then(Value::as_str).unwrap_or("nothing_to_compact");
            not_compacted(&of.thread, reason)
        }
        None => not_compacted(&of.thread, "not_supported"),
    }))
}

fn is_outcome(kind: &Value) -> bool {
    kind == "context_compacted" || kind == "context_not_compacted"
}

fn not_compacted(thread: &ThreadId, reason: &str) -> Value {
    json!({
        "thread_id": thread, "compacted": false, "reason": reason, "removed_message_count": 0,
        "preserved_message_count": 0, "summary_updated": false, "checkpoint_id": null, "total_tokens": 0,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "RegeneratePrepare")]
struct Again {
    message_id: String,
}

async fn again(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(again): Body<Again>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    let said = idle_transcript(&gateway, &of.thread).await?;
    let question = question_of(&said, &again.message_id)?;
    Ok(Json(prepared(&of.thread, question, question.message.clone(), &again.message_id)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "EditRegeneratePrepare")]
struct InOtherWords {
    human_message_id: String,
    replacement_text: String,
}

async fn in_other_words(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(edit): Body<InOtherWords>,
) -> ApiResult<Json<Value>> {
    let of = workspace(&gateway, &thread).await?;
    if edit.replacement_text.trim().is_empty() {
        return Err(ApiError::unprocessable("`replacement_text` is empty; say something"));
    }
    let said = idle_transcript(&gateway, &of.thread).await?;
    let question = question_of(&said, &edit.human_message_id)?;
    if question.id() != edit.human_message_id {
        return Err(ApiError::conflict("only what the user said can be said in other words"));
    }
    let mut message = question.message.clone();
    let id = Uuid::new_v4().to_string();
    if let Some(map) = message.as_object_mut() {
        let content = reworded(map.get("content"), &edit.replacement_text);
        map.insert("content".to_owned(), content);
        map.insert("id".to_owned(), id.as_str().into());
    }
    let superseded = said.iter().filter(|said| said.seq >= question.seq && said.run == question.run);
    let superseded: Vec<&str> = superseded.map(Said::id).collect();
    let mut answer = prepared(&of.thread, question, message, &edit.human_message_id);
    if let Some(map) = answer.as_object_mut() {
        map.insert("replacement_human_message_id".to_owned(), id.into());
        map.insert("source_message_ids".to_owned(), superseded.into());
    }
    Ok(Json(answer))
}

/// What was said on a thread that nothing works on.
async fn idle_transcript(gateway: &Gateway, thread: &ThreadId) -> ApiResult<Vec<Said>> {
    let active = RunQuery {
        thread: Some(thread.clone()),
        status: vec![RunStatus::Pending, RunStatus::Running],
        limit: 1,
        ..RunQuery::default()
    };
    if !gateway.runtime.store().runs(&active).await?.is_empty() {
        return Err(ApiError::conflict("a run works on this thread; wait for it or cancel it"));
    }
    Ok(gateway.runtime.transcript(thread).await?)
}

/// The user's words that a message is the answer to, or that it is.
fn question_of<'a>(said: &'a [Said], message: &str) -> ApiResult<&'a Said> {
    let place = said.iter().position(|said| said.id() == message).ok_or_else(|| no_message(message))?;
    let before = said.iter().take(place + 1).rfind(|said| said.is_from_user());
    before.ok_or_else(|| ApiError::conflict("nobody asked anything before this message"))
}

/// A run that asks `message` at the point where `question` was asked.
fn prepared(thread: &ThreadId, question: &Said, message: Value, from: &str) -> Value {
    let checkpoint = question
        .before
        .as_ref()
        .map(|before| json!({"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": before}));
    json!({
        "input": {"messages": [message]},
        "checkpoint": checkpoint,
        "metadata": {"regenerate_from_message_id": from, "regenerate_from_run_id": question.run},
        "target_run_id": question.run,
    })
}

/// The same content with other words; what came with them stays.
fn reworded(content: Option<&Value>, words: &str) -> Value {
    let Some(Value::Array(blocks)) = content else { return words.into() };
    let others = blocks.iter().filter(|block| block.get("type").is_none_or(|kind| kind != "text"));
    let text = json!({"type": "text", "text": words});
    std::iter::once(text).chain(others.cloned()).collect()
}

fn no_message(id: &str) -> ApiError {
    ApiError::not_found(format!("Message {id} not found on this thread"))
}
