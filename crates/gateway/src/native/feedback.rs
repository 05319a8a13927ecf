//! What people think of runs.
//!
//! Invariant: a rating is one up or one down; of each run one holds.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use hart_runtime::Run;
use hart_runtime::port::{Feedback, FeedbackScope};
use hart_types::RunId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::run_of;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::openapi::{Table, delete, get, put};
use crate::parse::{Body, Path};
use crate::wire::time;

pub(super) fn table() -> Table {
    Table::default()
        .route(
            "/api/threads/{thread}/runs/{run}/feedback",
            put("Say what you think of a run", rate)
                .post("Say what you think of a run or of a message in it", rate)
                .get("What was thought of a run", list)
                .delete("Take back what you thought of a run", forget),
        )
        .route(
            "/api/threads/{thread}/runs/{run}/feedback/stats",
            get("How many liked a run, and how many did not", stats),
        )
        .route(
            "/api/threads/{thread}/runs/{run}/feedback/{feedback}",
            delete("Take back one of them", forget_one),
        )
        .route("/api/runs/{run}/feedback", get("What was thought of a run", of_run_alone))
}

/// As DeerFlow's clients see it.
fn told(feedback: &Feedback) -> Value {
    json!({
        "feedback_id": feedback.id, "run_id": feedback.run, "thread_id": feedback.thread,
        "user_id": feedback.user, "message_id": feedback.message, "rating": feedback.rating,
        "comment": feedback.comment, "created_at": time(feedback.created_at),
    })
}

/// Beside a message.
pub(super) fn brief(feedback: &Feedback) -> Value {
    json!({"feedback_id": feedback.id, "rating": feedback.rating, "comment": feedback.comment})
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "FeedbackCreate")]
struct Opinion {
    /// 1 or -1.
    rating: i64,
    comment: Option<String>,
    message_id: Option<String>,
}

/// How long a comment may be, in bytes.
const LONGEST: usize = 16 << 10;

async fn rate(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
    Body(opinion): Body<Opinion>,
) -> ApiResult<Json<Value>> {
    let run = run_of(&gateway, &thread, &run).await?;
    let rating = match opinion.rating {
        1 => 1,
        -1 => -1,
        other => return Err(ApiError::bad_request(format!("a rating is 1 or -1, not {other}"))),
    };
    let texts = [&opinion.comment, &opinion.message_id];
    if texts.into_iter().flatten().any(|text| text.len() > LONGEST) {
        let detail = format!("a comment may have {LONGEST} bytes; say it shorter");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let feedback = Feedback {
        id: Uuid::now_v7().to_string(),
        thread: run.thread,
        run: run.id,
        user: run.user,
        message: opinion.message_id.filter(|id| !id.is_empty()),
        rating,
        comment: opinion.comment,
        created_at: gateway.runtime.now(),
    };
    let kept = gateway.runtime.store().put_feedback(feedback).await?;
    // It may have gone a moment ago.
    kept.map(|kept| Json(told(&kept))).ok_or_else(|| ApiError::not_found("Run not found"))
}

async fn list(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let run = run_of(&gateway, &thread, &run).await?;
    Ok(Json(of(&gateway, &run).await?.iter().map(told).collect()))
}

async fn of_run_alone(State(gateway): State<Gateway>, Path(run): Path<String>) -> ApiResult<Json<Value>> {
    let found = gateway.runtime.store().run(&RunId::from(run.as_str())).await?;
    let run = found.ok_or_else(|| ApiError::not_found(format!("Run with ID {run} not found")))?;
    Ok(Json(of(&gateway, &run).await?.iter().map(told).collect()))
}

async fn stats(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let run = run_of(&gateway, &thread, &run).await?;
    let all = of(&gateway, &run).await?;
    let positive = all.iter().filter(|feedback| feedback.rating > 0).count();
    let negative = all.len() - positive;
    Ok(Json(json!({"run_id": run.id, "total": all.len(), "positive": positive, "negative": negative})))
}

async fn forget(
    State(gateway): State<Gateway>,
    Path((thread, run)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let run = run_of(&gateway, &thread, &run).await?;
    let gone = gateway.runtime.store().delete_feedback(&FeedbackScope::Run(run.id)).await?;
    taken_back(gone)
}

async fn forget_one(
    State(gateway): State<Gateway>,
    Path((thread, run, feedback)): Path<(String, String, String)>,
) -> ApiResult<Json<Value>> {
    let run = run_of(&gateway, &thread, &run).await?;
    let one = FeedbackScope::One(run.id, feedback);
    taken_back(gateway.runtime.store().delete_feedback(&one).await?)
}

fn taken_back(count: u64) -> ApiResult<Json<Value>> {
    match count {
        0 => Err(ApiError::not_found("Feedback not found")),
        _ => Ok(Json(json!({"success": true}))),
    }
}

async fn of(gateway: &Gateway, run: &Run) -> ApiResult<Vec<Feedback>> {
    Ok(gateway.runtime.store().feedback(&FeedbackScope::Run(run.id.clone())).await?)
}
