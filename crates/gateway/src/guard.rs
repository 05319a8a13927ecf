//! Who may speak to the server: which hosts it answers to, which pages may call it, with which token.
//!
//! Invariant: a page of another site gets nothing, also when it has tricked the browser about the address (the Host
//! header is checked); no answer ever names a wildcard.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::native::auth;

#[derive(Clone, Default)]
pub struct Access {
    /// Names beside loopback that the server goes by.
    pub hosts: Vec<String>,
    /// Origins beside loopback whose pages may call it.
    pub origins: Vec<String>,
    /// Asked of every request, if set.
    pub token: Option<String>,
}

impl std::fmt::Debug for Access {
    /// The token is nobody's business.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .finish()
    }
}

const EXPOSED: &str = "content-location, location, x-pagination-total, x-pagination-next, x-request-id";

pub(crate) async fn watch(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let checked = access.check(request.headers(), origin.as_ref());
    let refused = checked.err().map(IntoResponse::into_response).or_else(|| access.shut_out(&request));
    let mut response = match refused {
        Some(refused) => refused,
        None if request.method() == Method::OPTIONS => preflight(request.headers()),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    if let Some(origin) = origin.filter(|origin| access.allows_origin(origin)) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

impl Access {
    fn check(&self, headers: &HeaderMap, origin: Option<&HeaderValue>) -> Result<(), ApiError> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.allows_host(host) {
            let detail = format!("this server does not go by `{host}`; add it to `server.allowed_hosts`");
            return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, detail));
        }
        if let Some(origin) = origin
            && !self.allows_origin(origin)
            && !is_own(origin, host)
        {
            let detail = "pages of this origin may not call this server; add it to `server.allowed_origins`";
            return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
        }
        Ok(())
    }

    /// Let in is who comes with the token, with what signing in gave for it, or to the door where one signs in.
    fn shut_out(&self, request: &Request) -> Option<Response> {
        let (method, headers, path) = (request.method(), request.headers(), request.uri().path());
        let token = self.token.as_ref()?;
        if method == Method::OPTIONS || DOORS.contains(&path) || presented(headers, token) {
            return None;
        }
        if cookie(headers, "access_token")
            .is_some_and(|given| same(given.as_bytes(), session_of(token).as_bytes()))
        {
            // A page elsewhere can make a browser send its cookies, but cannot read them.
            let said = headers.get("x-csrf-token").and_then(|said| said.to_str().ok());
            let kept = cookie(headers, "csrf_token").filter(|kept| !kept.is_empty());
            let knows = said.zip(kept).is_some_and(|(said, kept)| said == kept);
            // A socket carries commands, and no page can add a header to its opening: it must be a page from here.
            let harmless = method.is_safe() && !headers.contains_key(header::UPGRADE);
            return match harmless || knows || comes_from_here(headers) {
                true => None,
                false => Some(auth::refused(
                    StatusCode::FORBIDDEN,
                    "csrf_failed",
                    "the header X-CSRF-Token must say what the cookie csrf_token says",
                )),
            };
        }
        let why = match headers.contains_key(header::AUTHORIZATION) || headers.contains_key("x-api-key") {
            true => "the token is not the one that this server asks for",
            false => "a token is needed: `Authorization: Bearer …`",
        };
        let mut refused = match path.starts_with("/api/v1/auth/") {
            true => auth::refused(StatusCode::UNAUTHORIZED, "not_authenticated", why),
            false => ApiError::new(StatusCode::UNAUTHORIZED, why).into_response(),
        };
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Some(refused)
    }

    /// Whether these are the words that let one in.
    pub(crate) fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_none_or(|token| same(given.as_bytes(), token.as_bytes()))
    }

    /// What a browser keeps instead of the token.
    pub(crate) fn session(&self) -> Option<String> {
        self.token.as_deref().map(session_of)
    }

    fn allows_host(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        // A name may have been bent to this machine's address; an address cannot be.
        let is_address = self.token.is_some() && name.parse::<IpAddr>().is_ok();
        is_loopback(name) || is_address || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        let name = origin.split_once("://").and_then(|(_, rest)| without_port(rest));
        name.is_some_and(is_loopback) || self.origins.iter().any(|known| known == origin)
    }
}

/// Where one signs in, and what is asked before.
const DOORS: [&str; 6] = [
    "/api/v1/auth/setup-status",
    "/api/v1/auth/providers",
    "/api/v1/auth/login/local",
    "/api/v1/auth/logout",
    "/api/v1/auth/register",
    "/api/v1/auth/initialize",
];

/// Gone with the token it is made from, which it does not tell.
fn session_of(token: &str) -> String {
    let digest = Sha256::new().chain_update(b"hart session\0").chain_update(token).finalize();
    digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn preflight(headers: &HeaderMap) -> Response {
    let mut response = StatusCode::OK.into_response();
    let answer = response.headers_mut();
    if let Some(wanted) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    let methods = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS");
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// In the header of browsers, or in that of LangGraph's clients.
fn presented(headers: &HeaderMap, token: &str) -> bool {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, given)| given);
    let key = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    bearer.or(key).is_some_and(|given| same(given.as_bytes(), token.as_bytes()))
}

fn comes_from_here(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    headers.contains_key(header::UPGRADE)
        && headers.get(header::ORIGIN).is_some_and(|origin| is_own(origin, host))
}

/// A page that this server handed out: its Host was vetted.
fn is_own(origin: &HeaderValue, host: &str) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, from)| !host.is_empty() && from.eq_ignore_ascii_case(host))
}

/// Takes as long for a wrong token as for a right one.
fn same(given: &[u8], token: &[u8]) -> bool {
    let differences = given.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

/// The name or address; nothing where anything else stands beside it and a port.
fn without_port(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = rest.strip_prefix(':').unwrap_or(if rest.is_empty() { "0" } else { "?" });
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins() {
        let access = Access {
            hosts: vec!["hart.example".into()],
            origins: vec!["https://ui.example".into()],
            token: None,
        };
        for (host, allowed) in [
            ("127.0.0.1:2026", true),
            ("localhost", true),
            ("[::1]:80", true),
            ("hart.example:1", true),
            ("HART.example", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("[::1]evil.example", false),
            ("[127.0.0.1].evil.example", false),
            ("localhost:evil.example", false),
            ("[::1", false),
            ("", false),
        ] {
            assert_eq!(access.allows_host(host), allowed, "{host}");
        }
        assert!(!access.allows_host("192.0.2.7:2026"));
        assert!(Access { token: Some("t".into()), ..access.clone() }.allows_host("192.0.2.7:2026"));
        for (origin, allowed) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1", true),
            ("https://ui.example", true),
            ("https://ui.example:444", false),
            ("https://evil.example", false),
            ("null", false),
            ("http://localhost:80@evil.example", false),
            ("http://[::1]evil.example", false),
        ] {
            assert_eq!(access.allows_origin(&HeaderValue::from_static(origin)), allowed, "{origin}");
        }
        let own = HeaderValue::from_static("http://hart.example:1");
        assert!(is_own(&own, "hart.example:1") && !is_own(&own, "hart.example") && !is_own(&own, ""));
        assert!(same(b"abc", b"abc") && !same(b"abc", b"abd") && !same(b"ab", b"abc"));
    }

    #[test]
    fn a_socket_opened_with_a_cookie_is_of_a_page_from_here() {
        let access = Access { token: Some("t".into()), ..Access::default() };
        let open = |origin: &str, csrf: &str| {
            let cookies = format!("access_token={}; csrf_token={csrf}", access.session().unwrap());
            let request = Request::builder().uri("/threads/x/stream/events").header("host", "localhost:2026");
            let request = request.header("upgrade", "websocket").header("origin", origin);
            let request = request.header("cookie", cookies).header("x-csrf-token", csrf);
            access.shut_out(&request.body(axum::body::Body::empty()).unwrap()).is_none()
        };
        assert!(open("http://localhost:2026", ""));
        assert!(!open("http://localhost:9999", ""), "an empty word is nobody's secret");
        assert!(!open("http://127.0.0.1:2026", ""));
        assert!(open("http://localhost:9999", "known"));
    }
}
