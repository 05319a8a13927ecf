//! Threads: made, found, changed, copied, forgotten.
//!
//! Invariant: making one twice under one id is safe to try.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::Json;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hart_runtime::port::{Created, RunQuery, StoreError, ThreadPatch, ThreadQuery, ThreadSort, contains};
use hart_runtime::{Lifetime, StateError, Thread, ThreadState};
use hart_types::{IfExists, PruneStrategy, RunId, RunStatus, ThreadId, ThreadStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::state::StateWrite;
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::paging::Page;
use crate::parse::{Body, Path, Query, order_of, selected, thread_id};
use crate::wire::{select, thread};
use crate::words::Word;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadCreate")]
pub(crate) struct Create {
    thread_id: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[schemars(with = "Option<Word<IfExists>>")]
    if_exists: Option<IfExists>,
    /// What was written to the state elsewhere, to be written here in the same order.
    #[serde(default)]
    supersteps: Vec<SuperStep>,
    #[schemars(with = "Option<Ttl>")]
    ttl: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SuperStep {
    updates: Vec<StateWrite>,
}

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    at: MatchedPath,
    Body(create): Body<Create>,
) -> ApiResult<Json<Value>> {
    let lifetime = lifetime(create.ttl)?;
    let id = create.thread_id.as_deref().map_or_else(|| Ok(ThreadId::generate()), thread_id)?;
    let mut row = Thread::new(id.clone(), "default".into(), gateway.runtime.now());
    row.metadata = create.metadata;
    row.lifetime = lifetime;
    let mut writes: Vec<StateWrite> = create.supersteps.into_iter().flat_map(|step| step.updates).collect();
    StateWrite::say_input_once(&mut writes);
    if !writes.is_empty() && !row.metadata.contains_key("graph_id") {
        return Err(ApiError::bad_request("`supersteps` need `metadata.graph_id`: whose state they are of"));
    }
    // DeerFlow's frontend sends a thread's files before it makes the thread, and so makes one that is there.
    let unsaid = if at.as_str().starts_with("/api/") { IfExists::DoNothing } else { IfExists::Raise };
    match gateway.runtime.store().create_thread(row).await? {
        Created::New(row) if writes.is_empty() => Ok(Json(thread::json(&row, None))),
        Created::New(row) => {
            if let Err(error) = replay(&gateway, &row, writes).await {
                // Half a thread is none.
                gateway.runtime.delete_thread(&row.id).await?;
                return Err(error);
            }
            Ok(Json(full(&gateway, &known(&gateway, id.as_str()).await?).await?))
        }
        Created::Existing(row) if create.if_exists.unwrap_or(unsaid) == IfExists::DoNothing => {
            Ok(Json(full(&gateway, &row).await?))
        }
        Created::Existing(_) => Err(ApiError::conflict(format!("Thread with ID {id} already exists"))),
    }
}

async fn replay(gateway: &Gateway, row: &Thread, writes: Vec<StateWrite>) -> ApiResult<()> {
    for write in writes {
        write.apply(gateway, row, None).await?;
    }
    Ok(())
}

/// When a thread goes by itself: so many minutes after it was last used.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ThreadTtl")]
enum Ttl {
    Minutes(f64),
    Full {
        ttl: f64,
        #[schemars(with = "Option<Word<PruneStrategy>>")]
        strategy: Option<PruneStrategy>,
    },
}

fn lifetime(ttl: Option<Value>) -> ApiResult<Option<Lifetime>> {
    let Some(ttl) = ttl else { return Ok(None) };
    let wrong = || {
        let form = r#"`ttl` is a number of minutes above 0, or {"ttl": minutes, "strategy": "delete" or "keep_latest"}"#;
        ApiError::unprocessable(form)
    };
    let (minutes, strategy) = match serde_json::from_value(ttl).map_err(|_| wrong())? {
        Ttl::Minutes(minutes) => (minutes, None),
        Ttl::Full { ttl, strategy } => (ttl, strategy),
    };
    let unused = Duration::try_from_secs_f64(minutes * 60.0).ok().filter(|unused| !unused.is_zero());
    let unused = unused.ok_or_else(wrong)?;
    Ok(Some(Lifetime { unused, remains: strategy.unwrap_or(PruneStrategy::Delete) }))
}

pub(crate) async fn get(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    query: Query,
) -> ApiResult<Json<Value>> {
    let row = known(&gateway, &id).await?;
    let mut shown = full(&gateway, &row).await?;
    let asked = query.list("include").iter().any(|part| part == "ttl");
    if let (true, Some(ttl), Some(shown)) = (asked, thread::ttl(&row), shown.as_object_mut()) {
        shown.insert("ttl".to_owned(), ttl);
    }
    Ok(Json(shown))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadPatch")]
pub(crate) struct Patch {
    metadata: Option<Map<String, Value>>,
    #[schemars(with = "Option<Ttl>")]
    ttl: Option<Value>,
}

pub(crate) async fn patch(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(patch): Body<Patch>,
) -> ApiResult<Response> {
    let id = thread_id(&id)?;
    let patch = ThreadPatch {
        metadata: patch.metadata,
        lifetime: lifetime(patch.ttl)?,
        updated_at: Some(gateway.runtime.now()),
        ..ThreadPatch::default()
    };
    let row = gateway.runtime.store().patch_thread(&id, patch).await?.ok_or_else(|| missing(&id))?;
    if headers.get("prefer").is_some_and(|prefer| prefer == "return=minimal") {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(Json(full(&gateway, &row).await?).into_response())
}

pub(crate) async fn delete(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<StatusCode> {
    let id = thread_id(&id)?;
    match gateway.runtime.delete_thread(&id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing(&id)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadSearch")]
pub(crate) struct Search {
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    values: Map<String, Value>,
    ids: Option<Vec<String>>,
    #[schemars(with = "Option<Word<ThreadStatus>>")]
    status: Option<ThreadStatus>,
    limit: Option<u64>,
    #[serde(default)]
    offset: u64,
    sort_by: Option<String>,
    sort_order: Option<String>,
    #[serde(default)]
    select: Vec<String>,
    /// Single values out of a row, by a name for each.
    #[serde(default)]
    extract: BTreeMap<String, String>,
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<(HeaderMap, Json<Value>)> {
    let page = Page::of(search.limit, search.offset)?;
    selected(&search.select, thread::KEYS)?;
    extractable(&search.extract)?;
    let query = ThreadQuery { limit: page.rows(), ..search.query()? };
    let selects = |wanted: &str| search.select.iter().any(|key| key == wanted);
    let wants_values = search.select.is_empty() || selects("values") || !search.extract.is_empty();
    // A thread at rest asks nothing: its state need not be read for that.
    let is_wanted =
        |row: &Thread| wants_values || (selects("interrupts") && row.status != ThreadStatus::Idle);
    let mut rows = Vec::new();
    if search.values.is_empty() {
        for row in gateway.runtime.store().search_threads(&query).await? {
            rows.push(if is_wanted(&row) { listed(&gateway, &row).await? } else { thread::json(&row, None) });
        }
    } else {
        let mut matching = Matching::new(&gateway, query, &search.values);
        matching.skip(search.offset).await?;
        while (rows.len() as u64) < page.rows()
            && let Some(row) = matching.next().await?
        {
            rows.push(row);
        }
    }
    let (headers, rows) = page.cut(rows);
    let shown = rows.into_iter().map(|json| {
        let extracted = extract(&json, &search.extract);
        let mut row = select(json, &search.select);
        if let (Some(extracted), Value::Object(map)) = (extracted, &mut row) {
            map.insert("extracted".to_owned(), extracted);
        }
        row
    });
    Ok((headers, Json(shown.collect::<Vec<_>>().into())))
}

pub(crate) async fn count(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<Json<Value>> {
    let query = search.query()?;
    if search.values.is_empty() {
        return Ok(Json(gateway.runtime.store().count_threads(&query).await?.into()));
    }
    let mut matching = Matching::new(&gateway, query, &search.values);
    Ok(Json(matching.skip(u64::MAX).await?.into()))
}

/// Threads whose state contains these values. No index knows states: threads are read one by one.
struct Matching<'a> {
    gateway: &'a Gateway,
    query: ThreadQuery,
    values: &'a Map<String, Value>,
    page: VecDeque<Thread>,
    last: bool,
}

impl<'a> Matching<'a> {
    fn new(gateway: &'a Gateway, query: ThreadQuery, values: &'a Map<String, Value>) -> Self {
        let query = ThreadQuery { limit: PAGE, offset: 0, ..query };
        Self { gateway, query, values, page: VecDeque::new(), last: false }
    }

    async fn next(&mut self) -> ApiResult<Option<Value>> {
        loop {
            if let Some(row) = self.page.pop_front() {
                let json = listed(self.gateway, &row).await?;
                let has = |(key, wanted): (&String, &Value)| {
                    let value = json.get("values").and_then(|values| values.get(key));
                    value.is_some_and(|value| contains(value, wanted))
                };
                if self.values.iter().all(has) {
                    return Ok(Some(json));
                }
            } else if self.last {
                return Ok(None);
            } else {
                self.page = self.gateway.runtime.store().search_threads(&self.query).await?.into();
                self.last = (self.page.len() as u64) < PAGE;
                self.query.offset += PAGE;
            }
        }
    }

    /// Passes over so many; how many there were.
    async fn skip(&mut self, count: u64) -> ApiResult<u64> {
        let mut skipped = 0;
        while skipped < count && self.next().await?.is_some() {
            skipped += 1;
        }
        Ok(skipped)
    }
}

/// How many threads are read at once.
const PAGE: u64 = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ThreadPrune")]
pub(crate) struct Prune {
    thread_ids: Vec<String>,
    #[schemars(with = "Option<Word<PruneStrategy>>")]
    strategy: Option<PruneStrategy>,
}

pub(crate) async fn prune(
    State(gateway): State<Gateway>,
    Body(prune): Body<Prune>,
) -> ApiResult<Json<Value>> {
    // All of them are checked before one is forgotten.
    let ids: Vec<ThreadId> = prune.thread_ids.iter().map(|id| thread_id(id)).collect::<ApiResult<_>>()?;
    let mut pruned = 0;
    for id in &ids {
        pruned += u64::from(match prune.strategy.unwrap_or(PruneStrategy::Delete) {
            PruneStrategy::Delete => gateway.runtime.delete_thread(id).await?,
            PruneStrategy::KeepLatest => {
                gateway.runtime.store().forget_history(id, &RunId::generate()).await?
            }
        });
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

pub(crate) async fn copy(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let id = thread_id(&id)?;
    let copy = gateway.runtime.copy_thread(&id).await.map_err(|error| match error {
        StateError::NoThread(_) => ApiError::conflict("Conflict"),
        other => other.into(),
    })?;
    Ok(Json(full(&gateway, &copy).await?))
}

impl Search {
    fn query(&self) -> ApiResult<ThreadQuery> {
        let sort = match self.sort_by.as_deref() {
            None | Some("updated_at") => ThreadSort::Updated,
            Some("thread_id") => ThreadSort::Id,
            Some("status") => ThreadSort::Status,
            Some("created_at") => ThreadSort::Created,
            Some("state_updated_at") => ThreadSort::StateUpdated,
            Some(other) => return Err(ApiError::unprocessable(format!("cannot sort by `{other}`"))),
        };
        let order = order_of(self.sort_order.as_deref())?;
        let ids = self.ids.as_ref().map(|ids| ids.iter().map(|id| thread_id(id)).collect()).transpose()?;
        Ok(ThreadQuery {
            user: None,
            ids,
            metadata: self.metadata.clone(),
            status: self.status,
            sort,
            order,
            limit: self.limit.unwrap_or(10),
            offset: self.offset,
        })
    }
}

/// `values.messages[-1].content` and the like; what is not there is `null`.
fn extract(row: &Value, wanted: &BTreeMap<String, String>) -> Option<Value> {
    let value = |path: &String| {
        let mut at = row;
        for step in steps(path)? {
            at = match step {
                Step::Key(key) => at.get(key)?,
                Step::Index(index) => {
                    let items = at.as_array()?;
                    let from_end = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
                    items.get(if index < 0 { items.len().checked_sub(from_end)? } else { from_end })?
                }
            };
        }
        Some(at.clone())
    };
    let pairs = wanted.iter().map(|(name, path)| (name.clone(), value(path).unwrap_or_default()));
    (!wanted.is_empty()).then(|| pairs.collect::<Map<_, _>>().into())
}

/// One step into a row.
enum Step<'a> {
    Key(&'a str),
    Index(i64),
}

/// None where that is no path.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let mut parts = part.split('[');
        steps.push(Step::Key(parts.next().filter(|key| !key.is_empty())?));
        for index in parts {
            steps.push(Step::Index(index.strip_suffix(']')?.parse().ok()?));
        }
    }
    Some(steps)
}

/// Whether these are paths.
fn extractable(wanted: &BTreeMap<String, String>) -> ApiResult<()> {
    match wanted.iter().find(|(_, path)| steps(path).is_none()) {
        None => Ok(()),
        Some((name, path)) => Err(ApiError::unprocessable(format!(
            "`extract.{name}` is no path such as `values.messages[-1].content`: `{path}`"
        ))),
    }
}

/// With what it has come to.
async fn full(gateway: &Gateway, row: &Thread) -> ApiResult<Value> {
    let state = gateway.runtime.state(&row.id, None).await?;
    with_state(gateway, row, &state).await
}

async fn with_state(gateway: &Gateway, row: &Thread, state: &ThreadState) -> ApiResult<Value> {
    let mut shown = thread::json(row, Some(state));
    if row.status == ThreadStatus::Interrupted
        && state.interrupts.is_empty()
        && was_stopped(gateway, row).await?
        && let Some(error) = shown.get_mut("error")
    {
        *error = json!({"error": "UserInterrupt", "message": STOPPED});
    }
    Ok(shown)
}

/// In LangGraph's words, for clients that tell by it whether to offer going on.
const STOPPED: &str = "interrupt requested via POST /threads/{thread_id}/runs/{run_id}/cancel";

/// Whether it waits because its last run was told to stop.
async fn was_stopped(gateway: &Gateway, row: &Thread) -> ApiResult<bool> {
    let newest = RunQuery { thread: Some(row.id.clone()), limit: 1, ..RunQuery::default() };
    let runs = gateway.runtime.store().runs(&newest).await?;
    Ok(runs.first().is_some_and(|run| run.status == RunStatus::Interrupted))
}

/// One that is damaged says so when it is asked for itself; in a list it is without its state and keeps the others in it.
async fn listed(gateway: &Gateway, row: &Thread) -> ApiResult<Value> {
    match gateway.runtime.state(&row.id, None).await {
        Err(StateError::Store(error @ StoreError::Damaged(_))) => {
            tracing::warn!(thread = %row.id, %error, "a thread is listed without its state");
            Ok(thread::json(row, None))
        }
        state => with_state(gateway, row, &state?).await,
    }
}

pub(crate) async fn known(gateway: &Gateway, id: &str) -> ApiResult<Thread> {
    let id = thread_id(id)?;
    gateway.runtime.store().thread(&id).await?.ok_or_else(|| missing(&id))
}

fn missing(id: &ThreadId) -> ApiError {
    ApiError::not_found(format!("Thread with ID {id} not found"))
}
