//! The web page in front of the API: files that are part of the program.
//!
//! Invariant: only a page's own addresses are answered here, so that no address of the API ever gets a page; nothing of
//! a page comes from elsewhere, and what agents made is shown in frames that reach nothing.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;

use crate::request;

/// `api` with the page before it. The page itself is no secret and needs no token; what it asks the API for does.
pub fn with_page(api: Router) -> Router {
    api.layer(axum::middleware::from_fn(answer))
}

async fn answer(request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    // Who is no browser and asks whether anybody is here hears it from the API.
    if request.uri().path() == "/" && !wants_a_page(request.headers()) {
        return next.run(request).await;
    }
    match find(request.uri().path(), FILES) {
        Some(Found::File(asset)) => request::marked(file(asset, request.headers()), request.headers()),
        Some(Found::NotBuilt) => request::marked(not_built(), request.headers()),
        None => next.run(request).await,
    }
}

fn wants_a_page(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(header::ACCEPT).iter();
    accepted.filter_map(|accepted| accepted.to_str().ok()).any(|accepted| accepted.contains("text/html"))
}

enum Found {
    File(&'static Asset),
    NotBuilt,
}

struct Asset {
    path: &'static str,
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Pages are `/` and `/chat/…`; which of them it is, the page reads from the address.
fn find(path: &str, files: &'static [Asset]) -> Option<Found> {
    let is_page = path == "/" || path.strip_prefix("/chat/").is_some_and(|id| !id.contains('/'));
    let path = if is_page { "/index.html" } else { path };
    match files.iter().find(|asset| asset.path == path) {
        Some(asset) => Some(Found::File(asset)),
        None => is_page.then_some(Found::NotBuilt),
    }
}

fn file(asset: &'static Asset, asked: &HeaderMap) -> Response {
    let tag = tag(asset.gzip);
    let mut response = match asked.get(header::IF_NONE_MATCH) {
        Some(known) if known.as_bytes() == tag.as_bytes() => StatusCode::NOT_MODIFIED.into_response(),
        _ if accepts_gzip(asked) => {
            let mut response = Body::from(asset.gzip).into_response();
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        _ => match unpacked(asset.gzip) {
            Ok(bytes) => Body::from(bytes).into_response(),
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(asset.path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching(asset.path)));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    protect(headers, policy(asset.path));
    response
}

/// Said where the page would be.
fn not_built() -> Response {
    const TEXT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>hart</title>\
        <h1>hart is running</h1>\
        <p>Its API answers here. The web page is not part of this build: Node.js (20 or newer) was not there.</p>\
        <p>To have it: <code>npm --prefix web ci &amp;&amp; npm --prefix web run build</code>, then build hart again \
        (<code>make run</code> does all of it).</p></html>";
    let mut response = TEXT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    protect(headers, PAGE_POLICY);
    response
}

const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
    font-src 'self'; connect-src 'self'; media-src 'self' blob:; frame-src 'self' blob:; manifest-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A page an agent wrote, without its scripts: its styles and what it carries in itself.
const STILL_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: blob:; \
    font-src data:; media-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; \
    sandbox allow-scripts";

/// The same with its scripts, once a person has asked for them. They still reach no address.
const LIVE_POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; \
    style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'self'; webrtc 'block'; sandbox allow-scripts";

fn policy(path: &str) -> &'static str {
    match path {
        "/frame/live.html" => LIVE_POLICY,
        path if path.starts_with("/frame/") => STILL_POLICY,
        _ => PAGE_POLICY,
    }
}

fn protect(headers: &mut HeaderMap, policy: &'static str) {
    let rules = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("x-dns-prefetch-control"), "off"),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=()",
        ),
    ];
    for (name, rule) in rules {
        headers.insert(name, HeaderValue::from_static(rule));
    }
}

/// What the build named by its content never changes; all else is asked for again, which costs one short answer.
fn caching(path: &str) -> &'static str {
    match path.starts_with("/assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    }
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" | "map" => "application/json",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim() == "gzip" && weight.trim() != "q=0"
    })
}

fn unpacked(gzip: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
