//! Who one is, as DeerFlow's frontend asks for it: somebody with the server's token, or everybody.
//!
//! Invariant: there is one user. What a browser keeps after signing in is made from the token and is not the token.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Gateway;
use crate::openapi::{Table, get, post};
use crate::parse::Fields;

pub(super) fn table() -> Table {
    Table::default()
        .route("/api/v1/auth/setup-status", get("Whether the server must be set up first: no", setup_status))
        .route("/api/v1/auth/me", get("Who one is", me))
        .route("/api/v1/auth/providers", get("Who else could say who one is: nobody", providers))
        .route("/api/v1/auth/login/local", post("Sign in with the server's token as password", login))
        .route("/api/v1/auth/logout", post("Sign out", logout))
        .route("/api/v1/auth/register", post("Refused: there is one user", register))
        .route("/api/v1/auth/initialize", post("Refused: the server is set up", initialize))
        .route("/api/v1/auth/change-password", post("Refused: the token is in the configuration", change))
}

async fn setup_status() -> Json<Value> {
    Json(json!({"needs_setup": false, "registration_enabled": false}))
}

/// Whoever gets here was let in. The address is nobody's, but it looks like one: the frontend takes no other.
async fn me() -> Json<Value> {
    Json(json!({
        "id": "default", "email": "default@hart.local", "system_role": "admin", "needs_setup": false,
        "oauth_provider": null,
    }))
}

async fn providers() -> Json<Value> {
    Json(json!({"providers": []}))
}

/// How long a browser remembers, if it shall.
const WEEK: u64 = 7 * 24 * 3600;

/// Who one is where nobody signs in; worth nothing where somebody must.
const EVERYBODY: &str = "everybody";

async fn login(State(gateway): State<Gateway>, Fields(fields): Fields) -> Response {
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
    if !gateway.access.is_token(field("password")) {
        let why = "the password is the server's token, `server.token` or HART_TOKEN; this one is not it";
        return refused(StatusCode::UNAUTHORIZED, "invalid_credentials", why);
    }
    let mut response = Json(json!({"expires_in": WEEK, "needs_setup": false})).into_response();
    // The frontend asks nothing of a server before it has this cookie, also of one that asks for none.
    let session = gateway.access.session().unwrap_or_else(|| EVERYBODY.to_owned());
    let keep = matches!(field("remember_me"), "true" | "1" | "on");
    let age = if keep { format!("; Max-Age={WEEK}") } else { String::new() };
    let headers = response.headers_mut();
    set(headers, &format!("access_token={session}; HttpOnly; SameSite=Strict; Path=/{age}"));
    set(headers, &format!("csrf_token={}; SameSite=Strict; Path=/{age}", Uuid::new_v4().simple()));
    response
}

async fn logout() -> Response {
    let mut response = Json(json!({"message": "Signed out"})).into_response();
    for name in ["access_token", "csrf_token"] {
        set(response.headers_mut(), &format!("{name}=; SameSite=Strict; Path=/; Max-Age=0"));
    }
    response
}

async fn register() -> Response {
    refused(
        StatusCode::FORBIDDEN,
        "registration_disabled",
        "this server has one user; sign in with its token",
    )
}

async fn initialize() -> Response {
    refused(StatusCode::CONFLICT, "system_already_initialized", "there is nothing to set up")
}

async fn change() -> Response {
    let why = "the token stands in the configuration; change it there and restart";
    refused(StatusCode::BAD_REQUEST, "password_change_disabled", why)
}

/// In the shape that DeerFlow's frontend knows for this.
pub(crate) fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"detail": {"code": code, "message": message}}))).into_response()
}

fn set(headers: &mut HeaderMap, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        headers.append(header::SET_COOKIE, cookie);
    }
}
