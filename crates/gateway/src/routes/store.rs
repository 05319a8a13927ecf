//! The store: items that agents and clients keep beside their threads.
//!
//! Invariant: a label without a letter or with a dot in it never gets in: it could not be asked for again.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hart_runtime::port::{Condition, Item, ItemQuery};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::parse::{Body, Query, limit_of};
use crate::wire::time;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ItemPut")]
pub(crate) struct Put {
    #[serde(default)]
    namespace: Vec<String>,
    key: String,
    value: Map<String, Value>,
    /// Minutes.
    ttl: Option<f64>,
    /// What to find it by: `false` or a list of paths. hart's search reads the whole value.
    index: Option<Value>,
}

pub(crate) async fn put(State(gateway): State<Gateway>, Body(put): Body<Put>) -> ApiResult<Response> {
    if let Some(refusal) = refused(&put.namespace) {
        return Ok(refusal);
    }
    match &put.index {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::Array(paths)) if paths.iter().all(Value::is_string) => {}
        Some(_) => return Err(ApiError::unprocessable("`index` must be `false` or a list of paths")),
    }
    let now = gateway.runtime.now();
    let lives = put.ttl.map(|minutes| std::time::Duration::try_from_secs_f64(minutes * 60.0)).transpose();
    let lives = lives.map_err(|_| ApiError::unprocessable("`ttl` must be a number of minutes"))?;
    let item = Item {
        namespace: put.namespace,
        key: put.key,
        value: put.value,
        created_at: now,
        updated_at: now,
        expires_at: lives.and_then(|lives| now.checked_add(lives).ok()),
    };
    gateway.runtime.store().put_item(item).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn get(State(gateway): State<Gateway>, query: Query) -> ApiResult<Response> {
    let Some(key) = query.get("key") else {
        return Ok((StatusCode::BAD_REQUEST, Json(json!({"error": "Key is required"}))).into_response());
    };
    let namespace: Vec<String> = query
        .get("namespace")
        .unwrap_or_default()
        .split('.')
        .filter(|label| !label.is_empty())
        .map(str::to_owned)
        .collect();
    let item = gateway.runtime.store().item(&namespace, key, gateway.runtime.now()).await?;
    Ok(Json(item.as_ref().map(shown)).into_response())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ItemDelete")]
pub(crate) struct Delete {
    #[serde(default)]
    namespace: Vec<String>,
    key: String,
}

pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Body(delete): Body<Delete>,
) -> ApiResult<StatusCode> {
    gateway.runtime.store().delete_item(&delete.namespace, &delete.key).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ItemSearch")]
pub(crate) struct Search {
    #[serde(default)]
    namespace_prefix: Vec<String>,
    #[serde(default)]
    filter: Map<String, Value>,
    query: Option<String>,
    limit: Option<u64>,
    #[serde(default)]
    offset: u64,
}

pub(crate) async fn search(
    State(gateway): State<Gateway>,
    Body(search): Body<Search>,
) -> ApiResult<Json<Value>> {
    let mut filter = Vec::new();
    for (key, value) in search.filter {
        for condition in conditions(value)? {
            filter.push((key.clone(), condition));
        }
    }
    let query = ItemQuery {
        prefix: search.namespace_prefix,
        filter,
        words: search.query,
        limit: limit_of(search.limit, 10)?,
        offset: search.offset,
    };
    let items = gateway.runtime.store().search_items(&query, gateway.runtime.now()).await?;
    let scored = |item: &Item| {
        let mut shown = shown(item);
        if let Some(map) = shown.as_object_mut() {
            map.insert("score".to_owned(), Value::Null);
        }
        shown
    };
    Ok(Json(json!({ "items": items.iter().map(scored).collect::<Vec<_>>() })))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NamespaceSearch")]
pub(crate) struct Namespaces {
    #[serde(default)]
    prefix: Vec<String>,
    #[serde(default)]
    suffix: Vec<String>,
    max_depth: Option<usize>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
}

pub(crate) async fn namespaces(
    State(gateway): State<Gateway>,
    Body(body): Body<Namespaces>,
) -> ApiResult<Json<Value>> {
    let said = body.prefix.iter().position(|label| label == ANY).unwrap_or(body.prefix.len());
    let said = body.prefix.get(..said).unwrap_or_default();
    let all = gateway.runtime.store().namespaces(said, gateway.runtime.now()).await?;
    let mut found: Vec<Vec<String>> = all
        .into_iter()
        .filter(|name| begins(name.iter(), body.prefix.iter()))
        .filter(|name| begins(name.iter().rev(), body.suffix.iter().rev()))
        .map(|name| name.into_iter().take(body.max_depth.unwrap_or(usize::MAX)).collect())
        .collect();
    found.dedup();
    let page: Vec<_> = found.into_iter().skip(body.offset).take(body.limit.unwrap_or(100)).collect();
    Ok(Json(json!({ "namespaces": page })))
}

/// Stands for any one label.
const ANY: &str = "*";

fn begins<'a>(
    mut name: impl Iterator<Item = &'a String>,
    mut pattern: impl Iterator<Item = &'a String>,
) -> bool {
    pattern.all(|wanted| name.next().is_some_and(|label| wanted == ANY || wanted == label))
}

/// Equality, or an object of `$` operators.
fn conditions(value: Value) -> ApiResult<Vec<Condition>> {
    match value {
        Value::Object(map) if map.keys().any(|key| key.starts_with('$')) => map
            .into_iter()
            .map(|(operator, value)| match operator.as_str() {
                "$eq" => Ok(Condition::Equal(value)),
                "$ne" => Ok(Condition::NotEqual(value)),
                "$gt" => Ok(Condition::Above(value)),
                "$gte" => Ok(Condition::AtLeast(value)),
                "$lt" => Ok(Condition::Below(value)),
                "$lte" => Ok(Condition::AtMost(value)),
                other => Err(ApiError::unprocessable(format!(
                    "`{other}` is no operator; there are $eq, $ne, $gt, $gte, $lt, $lte"
                ))),
            })
            .collect(),
        value => Ok(vec![Condition::Equal(value)]),
    }
}

/// LangGraph answers these in plain text.
fn refused(namespace: &[String]) -> Option<Response> {
    let bad = namespace.iter().find(|label| label.is_empty() || label.contains(['.', '\u{1f}']));
    let why = match (namespace.is_empty(), bad) {
        (true, _) => "a namespace has at least one label".to_owned(),
        (false, Some(label)) => {
            format!("`{label}` cannot be a namespace label: labels are not empty and have no dots")
        }
        (false, None) => return None,
    };
    Some((StatusCode::UNPROCESSABLE_ENTITY, why).into_response())
}

fn shown(item: &Item) -> Value {
    json!({
        "namespace": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": time(item.created_at),
        "updated_at": time(item.updated_at),
    })
}
