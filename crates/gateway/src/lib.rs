//! The HTTP face: LangGraph's routes over the runtime.
//!
//! Invariant: a handler parses, asks the runtime, and renders. What a run may do is not decided here.

mod error;
mod events;
mod gap;
mod guard;
mod native;
mod page;
mod parse;
mod routes;
mod serve;
mod sse;
mod tend;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hart_runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub use guard::Access;
pub use native::{House, native};
pub use page::with_page;
pub use serve::{Listener, ServeError, listen, serve, serve_on};
pub use tend::tend;

/// What may be set, for all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How often a stream shows that its line is alive. Clients take three missing beats for a dead one.
    pub heartbeat: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { heartbeat: Duration::from_secs(15) }
    }
}

impl Settings {
    pub fn heartbeat(self, heartbeat: Duration) -> Self {
        Self { heartbeat }
    }
}

/// What every handler is given.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) runtime: Runtime,
    /// Ends streams when the server is about to.
    pub(crate) closing: CancellationToken,
    pub(crate) settings: Settings,
}

/// All routes, at `/` and at `/api/langgraph`.
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
    let gateway = Gateway { runtime, closing, settings };
    let langgraph = routes::langgraph();
    Router::new()
        .nest("/api/langgraph", langgraph.clone())
        .merge(langgraph)
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(gateway)
        .layer(axum::middleware::from_fn_with_state(Arc::new(access), guard::watch))
        .layer(axum::extract::DefaultBodyLimit::max(BODY_LIMIT))
}

/// A conversation with pictures in it is large; nothing else is.
const BODY_LIMIT: usize = 64 << 20;
