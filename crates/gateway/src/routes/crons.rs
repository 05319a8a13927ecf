//! Crons: runs that come again and again, made, found, changed, ended.
//!
//! Invariant: what a cron will ask for is checked when it is made, as the request of a run is.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hart_kernel::Timestamp;
use hart_runtime::port::{Cron, CronQuery, CronSort};
use hart_runtime::{AssistantError, CronError, StartRun};
use hart_types::{CronId, ThreadId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::run_request::RunRequest;
use super::threads::known;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::paging::Page;
use crate::parse::{Body, Path, order_of, read, selected, thread_id};
use crate::wire::cron;

/// When it comes; the rest of the body is what its runs are asked with.
#[derive(Debug, Deserialize, JsonSchema)]
struct Timing {
    schedule: Option<String>,
    timezone: Option<String>,
    end_time: Option<String>,
    on_run_completed: Option<OnRunCompleted>,
    enabled: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnRunCompleted {
    Delete,
    Keep,
}

/// Keys of the body that are not for the run. That a zone was asked for is kept there: the usual one is not told of.
const TIMING: &[&str] = &["schedule", "end_time", "on_run_completed", "enabled"];

/// Where nothing else was said.
pub(crate) const UTC: &str = "UTC";

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Body(body): Body<Map<String, Value>>,
) -> ApiResult<Json<Value>> {
    make(&gateway, None, body).await
}

pub(crate) async fn create_on_thread(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    Body(body): Body<Map<String, Value>>,
) -> ApiResult<Json<Value>> {
    let thread = known(&gateway, &thread).await?;
    make(&gateway, Some(thread.id), body).await
}

async fn make(
    gateway: &Gateway,
    thread: Option<ThreadId>,
    body: Map<String, Value>,
) -> ApiResult<Json<Value>> {
    let timing: Timing = read(body.clone())?;
    let payload = payload_of(body);
    let request: RunRequest = read(payload.clone())?;
    let checked = without_secrets(request.start(gateway, thread.clone(), None).await?)?;
    let schedule =
        timing.schedule.clone().ok_or_else(|| ApiError::unprocessable("missing field `schedule`"))?;
    let now = gateway.runtime.now();
    let new = Cron {
        id: CronId::generate(),
        assistant: checked.assistant,
        thread,
        user: checked.user,
        schedule,
        timezone: timing.timezone.clone().unwrap_or_else(|| UTC.to_owned()),
        end_time: timing.end_time()?,
        metadata: metadata_of(&payload),
        payload,
        keep_threads: timing.on_run_completed == Some(OnRunCompleted::Keep),
        enabled: timing.enabled.unwrap_or(true),
        next_run: None,
        created_at: now,
        updated_at: now,
    };
    Ok(Json(cron::json(&gateway.runtime.create_cron(new).await?)))
}

/// What a cron says is kept.
fn without_secrets(checked: StartRun) -> ApiResult<StartRun> {
    match checked.secrets.is_empty() {
        true => Ok(checked),
        false => Err(ApiError::unprocessable(NOT_KEPT)),
    }
}

const NOT_KEPT: &str = "a cron cannot have `secrets`: it is kept, and they are not; send them with a run";

pub(crate) async fn get(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let id = cron_id(&id)?;
    let found = gateway.runtime.store().cron(&id).await?;
    found.as_ref().map(|found| Json(cron::json(found))).ok_or_else(|| missing(&id))
}

pub(crate) async fn patch(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(body): Body<Map<String, Value>>,
) -> ApiResult<Json<Value>> {
    let id = cron_id(&id)?;
    if body.is_empty() {
        return Err(ApiError::bad_request("nothing to change: the body has no field"));
    }
    let timing: Timing = read(body.clone())?;
    let end_time = timing.end_time()?;
    let found = gateway.runtime.store().cron(&id).await?.ok_or_else(|| missing(&id))?;
    let changes = payload_of(body);
    let mut payload = found.payload;
    payload.extend(changes.clone());
    let request: RunRequest = read(payload)?;
    let assistant = without_secrets(request.start(&gateway, found.thread, None).await?)?.assistant;
    let patched = gateway.runtime.change_cron(&id, |cron| {
        cron.assistant = assistant.clone();
        cron.payload.extend(changes.clone());
        cron.metadata.extend(metadata_of(&changes));
        cron.schedule = timing.schedule.clone().unwrap_or_else(|| cron.schedule.clone());
        cron.timezone = timing.timezone.clone().unwrap_or_else(|| cron.timezone.clone());
        cron.end_time = end_time.or(cron.end_time);
        cron.keep_threads =
            timing.on_run_completed.map_or(cron.keep_threads, |then| then == OnRunCompleted::Keep);
        cron.enabled = timing.enabled.unwrap_or(cron.enabled);
    });
    Ok(Json(cron::json(&patched.await?)))
}

pub(crate) async fn delete(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<StatusCode> {
    let id = cron_id(&id)?;
    match gateway.runtime.store().delete_cron(&id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing(&id)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "CronSearch")]
pub(crate) struct Search {
    assistant_id: Option<String>,
    thread_id: Option<String>,
    enabled: Option<bool>,
    #[serde(default)]
    metadata: Map<String, Value>,
    limit: Option<u64>,
    #[serde(default)]
    offset: u64,
    sort_by: Option<String>,
    sort_order: Option<String>,
    #[serde(default)]
    select: Vec<String>,
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<(HeaderMap, Json<Value>)> {
    let page = Page::of(search.limit, search.offset)?;
    selected(&search.select, cron::KEYS)?;
    let query = CronQuery { limit: page.rows(), ..search.query(&gateway).await? };
    let (headers, rows) = page.cut(gateway.runtime.store().search_crons(&query).await?);
    let shown = rows.iter().map(|row| crate::wire::select(cron::json(row), &search.select));
    Ok((headers, Json(shown.collect())))
}

pub(crate) async fn count(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<Json<Value>> {
    let query = search.query(&gateway).await?;
    Ok(Json(gateway.runtime.store().count_crons(&query).await?.into()))
}

impl Search {
    async fn query(&self, gateway: &Gateway) -> ApiResult<CronQuery> {
        let sort = match self.sort_by.as_deref() {
            None | Some("created_at") => CronSort::Created,
            Some("cron_id") => CronSort::Id,
            Some("assistant_id") => CronSort::Assistant,
            Some("thread_id") => CronSort::Thread,
            Some("next_run_date") => CronSort::NextRun,
            Some("end_time") => CronSort::EndTime,
            Some("updated_at") => CronSort::Updated,
            Some(other) => return Err(ApiError::unprocessable(format!("cannot sort by `{other}`"))),
        };
        let assistant = match &self.assistant_id {
            Some(id) => Some(match gateway.runtime.assistant(id).await {
                // No cron is of one that is not there.
                Err(AssistantError::Unknown) => id.as_str().into(),
                found => found?.id,
            }),
            None => None,
        };
        Ok(CronQuery {
            assistant,
            thread: self.thread_id.as_deref().map(thread_id).transpose()?,
            enabled: self.enabled,
            metadata: self.metadata.clone(),
            sort,
            order: order_of(self.sort_order.as_deref())?,
            limit: self.limit.unwrap_or(10),
            offset: self.offset,
        })
    }
}

impl Timing {
    /// A time without a zone is meant in UTC.
    fn end_time(&self) -> ApiResult<Option<Timestamp>> {
        let Some(text) = &self.end_time else { return Ok(None) };
        let zoneless =
            || text.parse::<jiff::civil::DateTime>().ok()?.in_tz("UTC").ok().map(|at| at.timestamp());
        // The last day that can be written is beyond the last that can be counted to; it means never.
        let never = || {
            let written: jiff::civil::DateTime = text.replace('Z', "+00:00").parse().ok()?;
            (written.date() == jiff::civil::Date::MAX).then_some(Timestamp::MAX)
        };
        match text.parse::<Timestamp>().ok().or_else(zoneless).or_else(never) {
            Some(at) => Ok(Some(at)),
            None => Err(ApiError::unprocessable(format!("`end_time` is not a time: `{text}`"))),
        }
    }
}

impl From<CronError> for ApiError {
    fn from(error: CronError) -> Self {
        match error {
            CronError::Unknown(_) => Self::not_found(error.to_string()),
            CronError::Schedule(_) | CronError::Timezone(_) => Self::unprocessable(error.to_string()),
            CronError::Store(error) => error.into(),
        }
    }
}

fn payload_of(body: Map<String, Value>) -> Map<String, Value> {
    body.into_iter().filter(|(key, _)| !TIMING.contains(&key.as_str())).collect()
}

fn metadata_of(payload: &Map<String, Value>) -> Map<String, Value> {
    payload.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn cron_id(text: &str) -> ApiResult<CronId> {
    match uuid::Uuid::parse_str(text) {
        Ok(id) => Ok(CronId::from(id.to_string())),
        Err(_) => Err(ApiError::unprocessable("Invalid cron ID: must be a UUID")),
    }
}

fn missing(id: &CronId) -> ApiError {
    ApiError::not_found(format!("Cron with ID {id} not found"))
}
