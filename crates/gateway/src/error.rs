//! What goes wrong, as LangGraph's clients read it: a status and `{"detail": …}`.
//!
//! Invariant: a permanent error is never a 5xx: clients ask again after those.

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hart_runtime::port::StoreError;
use hart_runtime::{AssistantError, CancelError, StartError, StateError};
use serde_json::json;

use crate::native;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "detail": self.detail }))).into_response()
    }
}

pub(crate) async fn not_found(uri: Uri) -> ApiError {
    match native::subsystem(uri.path()) {
        Some(subsystem) => native::not_here(subsystem),
        None => ApiError::not_found("Not Found"),
    }
}

pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoThread(id) => Self::not_found(format!("Thread with ID {id} not found")),
            StoreError::Full => Self::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string()),
            error => {
                tracing::error!(%error, source = ?std::error::Error::source(&error), "the store failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::NoThread(_) => Self::not_found("Thread or assistant not found."),
            StartError::Busy => Self::conflict(error.to_string()),
            StartError::KeyTaken => Self::unprocessable(error.to_string()),
            StartError::Closing => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            StartError::Store(error) => error.into(),
        }
    }
}

impl From<AssistantError> for ApiError {
    fn from(error: AssistantError) -> Self {
        match error {
            AssistantError::Unknown | AssistantError::NoAgent(_) => Self::not_found(error.to_string()),
            AssistantError::NoName(_) => Self::unprocessable(error.to_string()),
            AssistantError::Store(error) => error.into(),
        }
    }
}

impl From<CancelError> for ApiError {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::NoRun(_) => Self::not_found(error.to_string()),
            CancelError::Ended { .. } => Self::conflict(error.to_string()),
            CancelError::Store(error) => error.into(),
        }
    }
}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::NoThread(_) => Self::not_found(error.to_string()),
            StateError::Busy(_) => Self::conflict(error.to_string()),
            StateError::Agent(_) => Self::bad_request(error.to_string()),
            StateError::Values(error) => {
                let cause =
                    std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                Self::bad_request(format!("{error}{cause}"))
            }
            StateError::Store(error) => error.into(),
        }
    }
}
