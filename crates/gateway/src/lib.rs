//! The HTTP face: LangGraph's routes over the runtime.
//!
//! Invariant: a handler parses, asks the runtime, and renders. What a run may do is not decided here.

mod error;
mod events;
mod gap;
mod guard;
mod multipart;
mod native;
mod openapi;
mod otlp;
mod owned;
mod page;
mod paging;
mod parse;
mod readers;
mod request;
mod routes;
mod serve;
mod settings;
mod sse;
mod tend;
mod unsent;
mod webhook;
mod wire;
mod words;

use std::sync::Arc;

use axum::Router;
use hart_runtime::Runtime;
use readers::Readers;
use tokio_util::sync::CancellationToken;

pub use guard::Access;
pub use native::{
    Agents, Connect, Connections, CustomSkills, FileError, FileInfo, Files, Goals, Helpers, House, Incoming,
    NoHouse, OpenFile, Skills,
};
pub use otlp::{OtlpError, OtlpExporter};
pub use page::with_page;
pub use serve::{Listener, ServeError, listen, serve, serve_on};
pub use settings::{Settings, UploadLimits};
pub use tend::tend;

/// What every handler is given.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) runtime: Runtime,
    /// Ends streams when the server is about to.
    pub(crate) closing: CancellationToken,
    pub(crate) settings: Settings,
    /// Who follows runs here.
    pub(crate) readers: Readers,
    /// What there is beyond threads and runs.
    pub(crate) house: Arc<dyn House>,
    /// Who may ask.
    pub(crate) access: Arc<Access>,
}

/// All routes: LangGraph's at `/`, at `/api/langgraph` and at `/api`, hart's own below `/api`.
pub fn router(runtime: Runtime, access: Access, closing: CancellationToken) -> Router {
    router_with(runtime, access, closing, Settings::default())
}

/// As [`router`], with settings of one's own.
pub fn router_with(
    runtime: Runtime,
    access: Access,
    closing: CancellationToken,
    settings: Settings,
) -> Router {
    router_of(runtime, Arc::new(NoHouse), access, closing, settings)
}

/// As [`router_with`], with models and files to tell of.
pub fn router_of(
    runtime: Runtime,
    house: Arc<dyn House>,
    access: Access,
    closing: CancellationToken,
    settings: Settings,
) -> Router {
    let access = Arc::new(access);
    let readers = Readers::default();
    let gateway = Gateway { runtime, closing, settings, readers, house, access: Arc::clone(&access) };
    let langgraph = routes::table().into_router();
    Router::new()
        .nest("/api/langgraph", langgraph.clone())
        .route("/api/langgraph/", axum::routing::get(routes::meta::ok))
        // DeerFlow's own addresses for the same.
        .nest("/api", langgraph.clone())
        .merge(langgraph)
        .merge(native::table().into_router())
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(gateway)
        .layer(axum::middleware::from_fn_with_state(access, guard::watch))
        .layer(axum::extract::DefaultBodyLimit::max(settings.body_limit))
        .layer(axum::Extension(parse::BodyLimit(settings.body_limit)))
        .layer(axum::middleware::from_fn_with_state(settings, request::attend))
}
