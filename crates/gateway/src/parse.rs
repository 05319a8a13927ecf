//! Reading what clients send, in all the spellings they have for it.
//!
//! Invariant: `null` is the same as absent, unknown fields are ignored, and what cannot be read is a 422 that says why.

use std::convert::Infallible;

use axum::body::{Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode};
use hart_runtime::port::Order;
use hart_types::{CheckpointId, RunId, ThreadId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// A JSON body. An empty one is an empty object.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        // Most bodies are as they should be; of the others it is told what is wrong, or left out.
        if bytes.trim_ascii_start().starts_with(b"{")
            && let Ok(read) = serde_json::from_slice(&bytes)
        {
            return Ok(Self(read));
        }
        object(json(&bytes)?).map(Self)
    }
}

/// A JSON body that is a list of such.
#[derive(Debug)]
pub(crate) struct Bodies<T>(pub(crate) Vec<T>);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Bodies<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        match json(&bytes)? {
            Value::Array(items) => items.into_iter().map(object).collect::<Result<_, _>>().map(Self),
            _ => Err(ApiError::unprocessable("the body must be a list of objects")),
        }
    }
}

/// The most bytes of a body that is read at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit(pub(crate) usize);

/// A body as it came.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let limit = request.extensions().get::<BodyLimit>().map_or(usize::MAX, |limit| limit.0);
        let too_large = || {
            let why = format!("Request body too large: more than {limit} bytes (`server.max_body_mb`)");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, why)
        };
        // What says it is too large is not waited for.
        if usize::try_from(request.body().size_hint().lower()).is_ok_and(|declared| declared > limit) {
            return Err(too_large());
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            status => ApiError::new(status, error.body_text()),
        })?;
        match has_too_many_values(&bytes) {
            true => Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "Too many values in request body")),
            false => Ok(Self(bytes)),
        }
    }
}

/// A form with files, not read yet: it may be larger than anything else.
#[derive(Debug)]
pub(crate) struct Form(pub(crate) HeaderMap, pub(crate) axum::body::Body);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Self(parts.headers, body))
    }
}

/// The fields of a plain form.
#[derive(Debug)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        let unreadable = |_| ApiError::unprocessable("the body must be a form: `name=value&name=value`");
        // Forms are spelled as query strings are.
        let spelled = std::str::from_utf8(&bytes).map(|text| format!("/?{text}")).unwrap_or_default();
        let uri = spelled.parse::<axum::http::Uri>().map_err(|_| unreadable(()))?;
        let fields = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri);
        fields.map(|fields| Self(fields.0)).map_err(|_| unreadable(()))
    }
}

/// Each is a hundred times as large in memory as the two bytes it may be on the wire; texts and images are not.
const MOST_VALUES: usize = 500_000;

fn has_too_many_values(json: &[u8]) -> bool {
    if json.len() < 2 * MOST_VALUES {
        return false;
    }
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values > MOST_VALUES
}

fn json(bytes: &[u8]) -> Result<Value, ApiError> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(text).map_err(|_| ApiError::unprocessable("Invalid JSON in request body"))
}

/// A list of a type's fields in their order would do as well for serde, and surprise everybody else.
fn object<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    match value {
        Value::Object(map) => read(map.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        _ => Err(ApiError::unprocessable("the body must be an object")),
    }
}

/// What a map says, or a 422.
pub(crate) fn read<T: DeserializeOwned>(map: Map<String, Value>) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Value::Object(map)).map_err(|error| {
        let (place, why) = (error.path().to_string(), plainly(&error.into_inner().to_string()));
        ApiError::unprocessable(if place == "." { why } else { format!("`{place}`: {why}") })
    })
}

/// Without the names that the compiler has for numbers.
fn plainly(why: &str) -> String {
    why.replace("expected f64", "expected a number")
        .replace("expected u64", "expected a whole number, at least 0")
}

/// Parts of the path, readable as text.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> axum::extract::FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(error) => Err(ApiError::unprocessable(error.body_text())),
        }
    }
}

/// The query string, list parameters in any spelling: repeated, comma-separated, a JSON array.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "True" | "1" | "yes"))
    }

    pub(crate) fn number(&self, key: &str, default: u64) -> Result<u64, ApiError> {
        self.get(key).map_or(Ok(default), |text| {
            text.parse().map_err(|_| ApiError::unprocessable(format!("`{key}` is not a number: `{text}`")))
        })
    }

    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(name, _)| name == key);
        values.flat_map(|(_, value)| split_list(value)).collect()
    }
}

fn split_list(value: &str) -> Vec<String> {
    if value.starts_with('[')
        && let Ok(list) = serde_json::from_str::<Vec<String>>(value)
    {
        return list;
    }
    value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self, ApiError> {
        let uri = &parts.uri;
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| ApiError::unprocessable(error.body_text()))?;
        Ok(Self(pairs.0))
    }
}

/// One value or a list of them.
pub(crate) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) => items,
        single => vec![single],
    };
    let items = items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
    items.map(Some).map_err(serde::de::Error::custom)
}

/// A thread's id is a UUID, however it is spelt.
pub(crate) fn thread_id(text: &str) -> Result<ThreadId, ApiError> {
    match uuid::Uuid::parse_str(text) {
        Ok(id) => Ok(ThreadId::from(id.to_string())),
        Err(_) => Err(ApiError::unprocessable("Invalid thread ID: must be a UUID")),
    }
}

pub(crate) fn run_id(text: &str) -> Result<RunId, ApiError> {
    match uuid::Uuid::parse_str(text) {
        Ok(id) => Ok(RunId::from(id.to_string())),
        Err(_) => Err(ApiError::unprocessable("Invalid run ID: must be a UUID")),
    }
}

/// `checkpoint_id`, or the id inside `checkpoint`.
pub(crate) fn checkpoint(
    id: Option<String>,
    object: Option<&Map<String, Value>>,
) -> Result<Option<CheckpointId>, ApiError> {
    let inside = match object.and_then(|object| object.get("checkpoint_id")) {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(_) => return Err(ApiError::unprocessable("`checkpoint.checkpoint_id` must be a string")),
    };
    Ok(id.as_deref().or(inside).filter(|id| !id.is_empty()).map(CheckpointId::from))
}

/// How many rows of a search are wanted.
pub(crate) fn limit_of(asked: Option<u64>, default: u64) -> Result<u64, ApiError> {
    match asked.unwrap_or(default) {
        limit @ 1..=1000 => Ok(limit),
        _ => Err(ApiError::unprocessable("`limit` must be between 1 and 1000")),
    }
}

pub(crate) fn order_of(asked: Option<&str>) -> Result<Order, ApiError> {
    match asked {
        None | Some("desc") => Ok(Order::Descending),
        Some("asc") => Ok(Order::Ascending),
        Some(other) => Err(ApiError::unprocessable(format!("`{other}` is neither asc nor desc"))),
    }
}

/// Whether rows have these keys.
pub(crate) fn selected(asked: &[String], keys: &[&str]) -> Result<(), ApiError> {
    match asked.iter().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            Err(ApiError::unprocessable(format!("`{key}` cannot be selected; {} can", keys.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_what_is_in_texts_is_not() {
        let many = |value: &str| format!("[{}1]", format!("{value},").repeat(MOST_VALUES));
        assert!(has_too_many_values(many("1").as_bytes()));
        assert!(!has_too_many_values(many("1").get(..MOST_VALUES).unwrap().as_bytes()));
        let text = format!(r#"{{"content": "{}\" , [{{"}}"#, "a, \\\\".repeat(MOST_VALUES));
        assert!(!has_too_many_values(text.as_bytes()));
    }
}
