//! The description of the API, and a page to read it on.
//!
//! Invariant: the page loads nothing from elsewhere.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

pub(crate) async fn openapi() -> Json<Value> {
    Json(super::table().and(crate::native::table()).document())
}

pub(crate) async fn page() -> Response {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut response = file("text/html; charset=utf-8", include_str!("../../assets/docs.html"));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

pub(crate) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../../assets/docs.js"))
}

pub(crate) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../../assets/docs.css"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    const TYPE: HeaderName = header::CONTENT_TYPE;
    ([(TYPE, kind)], text).into_response()
}
