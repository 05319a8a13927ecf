//! What every request gets, whatever it asks for: an id, a time limit, headers, and an answer.
//!
//! Invariant: whoever asks is answered, also when a handler panics; the id in the answer is the one in the log.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::error::ApiError;
use crate::settings::Settings;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What an answer says unless its handler says otherwise. JSON needs nothing that a browser could load.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(crate) async fn attend(State(settings): State<Settings>, request: Request, next: Next) -> Response {
    let id = id_of(request.headers());
    let span = tracing::info_span!(
        "request",
        id,
        method = %request.method(),
        path = request.uri().path(),
    );
    let answer = async {
        // Until the headers of the answer; a stream then takes as long as it takes.
        let limit = if takes_its_time(&request) { Duration::MAX } else { settings.request_timeout };
        let answered = tokio::time::timeout(limit, next.run(request));
        let response = match AssertUnwindSafe(answered).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => {
                let detail = "the request took too long; ask for less, or raise `server.request_seconds`";
                ApiError::new(StatusCode::REQUEST_TIMEOUT, detail).into_response()
            }
            // What panicked has said where on stderr.
            Err(_) => {
                tracing::error!("a handler panicked");
                let detail = "An internal error occurred";
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
            }
        };
        tracing::debug!(status = response.status().as_u16(), "answered");
        response
    };
    let mut response = answer.instrument(span).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// Files on their way in, each piece of which is minded by whoever receives them; and a summary, which is a run's work.
fn takes_its_time(request: &Request) -> bool {
    let path = request.uri().path();
    request.method() == Method::POST && ["/uploads", "/compact"].iter().any(|end| path.ends_with(end))
}

/// With the id that every answer has.
pub(crate) fn marked(mut response: Response, asked: &HeaderMap) -> Response {
    if let Ok(id) = HeaderValue::from_str(&id_of(asked)) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The client's own, if it can stand in a log; a new one otherwise.
fn id_of(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let plain = |id: &&str| {
        (1..=128).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    given.filter(plain).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}
