//! Assistants: agents with settings of their own, made, found, changed, forgotten.
//!
//! Invariant: a change is a new version; the old ones stay and can be gone back to.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hart_runtime::port::{
    Assistant, AssistantCreated, AssistantPatch, AssistantQuery, AssistantSort, ThreadQuery, VersionQuery,
};
use hart_types::{AssistantId, IfExists};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::paging::Page;
use crate::parse::{Body, Path, Query, limit_of, order_of, selected};
use crate::wire::assistant;
use crate::words::Word;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantCreate")]
pub(crate) struct Create {
    graph_id: String,
    assistant_id: Option<String>,
    #[serde(flatten)]
    settings: Settings,
    #[schemars(with = "Option<Word<IfExists>>")]
    if_exists: Option<IfExists>,
}

/// What a version is of.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantSettings")]
struct Settings {
    name: Option<String>,
    description: Option<String>,
    config: Option<Map<String, Value>>,
    context: Option<Map<String, Value>>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Body(create): Body<Create>,
) -> ApiResult<Json<Value>> {
    gateway.runtime.check_agent(&create.graph_id)?;
    let id = match &create.assistant_id {
        Some(id) => assistant_id(id)?,
        None => AssistantId::generate(),
    };
    let (config, context) = create.settings.configuration()?;
    let now = gateway.runtime.now();
    let new = Assistant {
        id,
        graph: create.graph_id,
        name: create.settings.name.unwrap_or_else(|| "Untitled".to_owned()),
        description: create.settings.description,
        config: config.unwrap_or_default(),
        context: context.unwrap_or_default(),
        metadata: create.settings.metadata,
        version: 1,
        system: false,
        created_at: now,
        updated_at: now,
    };
    match gateway.runtime.store().create_assistant(new).await? {
        AssistantCreated::New(made) => Ok(Json(assistant::json(&made))),
        AssistantCreated::Existing(known) if create.if_exists == Some(IfExists::DoNothing) => {
            Ok(Json(assistant::json(&known)))
        }
        AssistantCreated::Existing(known) => {
            Err(ApiError::conflict(format!("Assistant {} already exists", known.id)))
        }
    }
}

pub(crate) async fn get(State(gateway): State<Gateway>, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    Ok(Json(assistant::json(&gateway.runtime.assistant(&id).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantPatch")]
pub(crate) struct Patch {
    graph_id: Option<String>,
    #[serde(flatten)]
    settings: Settings,
}

pub(crate) async fn patch(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(patch): Body<Patch>,
) -> ApiResult<Json<Value>> {
    if let Some(graph) = &patch.graph_id {
        gateway.runtime.check_agent(graph)?;
    }
    let found = gateway.runtime.assistant(&id).await?;
    if found.system && patch.graph_id.as_ref().is_some_and(|graph| *graph != found.graph) {
        let detail = format!("Assistant {} stands for the agent `{}` and stays it", found.id, found.graph);
        return Err(ApiError::conflict(detail));
    }
    let (config, context) = patch.settings.configuration()?;
    let patch = AssistantPatch {
        graph: patch.graph_id,
        name: patch.settings.name,
        description: patch.settings.description,
        config,
        context,
        metadata: patch.settings.metadata,
        at: gateway.runtime.now(),
    };
    let patched = gateway.runtime.store().patch_assistant(&found.id, patch).await?;
    patched.as_ref().map(|patched| Json(assistant::json(patched))).ok_or_else(|| missing(&id))
}

pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    query: Query,
) -> ApiResult<StatusCode> {
    let found = gateway.runtime.assistant(&id).await?;
    if found.system {
        let detail =
            format!("Assistant {} stands for the agent `{}`: it goes when that does", found.id, found.graph);
        return Err(ApiError::conflict(detail));
    }
    if query.flag("delete_threads") {
        delete_threads(&gateway, &found.id).await?;
    }
    match gateway.runtime.store().delete_assistant(&found.id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing(&id)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantSearch")]
pub(crate) struct Search {
    graph_id: Option<String>,
    name: Option<String>,
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
    selected(&search.select, assistant::KEYS)?;
    let query = AssistantQuery { limit: page.rows(), ..search.query()? };
    let (headers, rows) = page.cut(gateway.runtime.search_assistants(query).await?);
    let shown = rows.iter().map(|row| crate::wire::select(assistant::json(row), &search.select));
    Ok((headers, Json(shown.collect())))
}

pub(crate) async fn count(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<Json<Value>> {
    Ok(Json(gateway.runtime.count_assistants(search.query()?).await?.into()))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantVersions")]
pub(crate) struct Versions {
    #[serde(default)]
    metadata: Map<String, Value>,
    limit: Option<u64>,
    #[serde(default)]
    offset: u64,
}

pub(crate) async fn versions(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(body): Body<Versions>,
) -> ApiResult<Json<Value>> {
    let found = gateway.runtime.assistant(&id).await?;
    let query =
        VersionQuery { metadata: body.metadata, limit: limit_of(body.limit, 10)?, offset: body.offset };
    let versions = gateway.runtime.store().assistant_versions(&found.id, &query).await?;
    Ok(Json(versions.iter().map(assistant::version).collect()))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AssistantLatest")]
pub(crate) struct Latest {
    version: u64,
}

pub(crate) async fn set_latest(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
    Body(body): Body<Latest>,
) -> ApiResult<Json<Value>> {
    let found = gateway.runtime.assistant(&id).await?;
    let now = gateway.runtime.now();
    let shown = gateway.runtime.store().set_assistant_version(&found.id, body.version, now).await?;
    let none = || ApiError::not_found(format!("Assistant {} has no version {}", found.id, body.version));
    shown.as_ref().map(|shown| Json(assistant::json(shown))).ok_or_else(none)
}

type Configuration = (Option<Map<String, Value>>, Option<Map<String, Value>>);

impl Settings {
    /// Each of the two says what the other does.
    fn configuration(&self) -> ApiResult<Configuration> {
        let configurable = self.config.as_ref().and_then(|config| config.get("configurable"));
        let configurable = match configurable {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map.clone()),
            Some(_) => return Err(ApiError::unprocessable("`config.configurable` must be an object")),
        };
        if configurable.iter().chain(&self.context).any(|options| options.contains_key("secrets")) {
            let detail =
                "an assistant cannot have `secrets`: it is kept, and they are not; send them with a run";
            return Err(ApiError::unprocessable(detail));
        }
        match (configurable.filter(|map| !map.is_empty()), self.context.clone()) {
            (Some(configurable), Some(context)) if !context.is_empty() && configurable != context => {
                Err(ApiError::bad_request(
                    "Cannot specify both configurable and context. Prefer setting context alone.",
                ))
            }
            (Some(configurable), _) => Ok((self.config.clone(), Some(configurable))),
            (None, Some(context)) => {
                let mut config = self.config.clone().unwrap_or_default();
                if !context.is_empty() {
                    config.insert("configurable".to_owned(), context.clone().into());
                }
                Ok((Some(config), Some(context)))
            }
            (None, None) => Ok((self.config.clone(), self.config.as_ref().map(|_| Map::new()))),
        }
    }
}

impl Search {
    fn query(&self) -> ApiResult<AssistantQuery> {
        let sort = match self.sort_by.as_deref() {
            None | Some("created_at") => AssistantSort::Created,
            Some("assistant_id") => AssistantSort::Id,
            Some("graph_id") => AssistantSort::Graph,
            Some("name") => AssistantSort::Name,
            Some("updated_at") => AssistantSort::Updated,
            Some(other) => return Err(ApiError::unprocessable(format!("cannot sort by `{other}`"))),
        };
        Ok(AssistantQuery {
            graph: self.graph_id.clone(),
            name: self.name.clone(),
            metadata: self.metadata.clone(),
            agents: Vec::new(),
            sort,
            order: order_of(self.sort_order.as_deref())?,
            limit: self.limit.unwrap_or(10),
            offset: self.offset,
        })
    }
}

async fn delete_threads(gateway: &Gateway, assistant: &AssistantId) -> ApiResult<()> {
    let metadata = Map::from_iter([("assistant_id".to_owned(), Value::from(assistant.as_str()))]);
    let query = ThreadQuery { metadata, limit: 100, ..ThreadQuery::default() };
    loop {
        let threads = gateway.runtime.store().search_threads(&query).await?;
        if threads.is_empty() {
            return Ok(());
        }
        for thread in threads {
            gateway.runtime.delete_thread(&thread.id).await?;
        }
    }
}

fn assistant_id(text: &str) -> ApiResult<AssistantId> {
    match uuid::Uuid::parse_str(text) {
        Ok(id) => Ok(AssistantId::from(id.to_string())),
        Err(_) => Err(ApiError::unprocessable("Invalid assistant ID: must be a UUID")),
    }
}

fn missing(id: &str) -> ApiError {
    ApiError::not_found(format!("Assistant {id} not found"))
}
