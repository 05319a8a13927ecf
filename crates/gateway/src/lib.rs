//! The HTTP face: LangGraph's routes over the runtime.
//!
//! Invariant: a handler parses, asks the runtime, and renders. What a run may do is not decided here.

mod error;
mod guard;
mod page;
mod parse;
mod routes;
mod serve;
mod sse;
mod tend;
mod wire;

use std::sync::Arc;

use axum::Router;
use hart_runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub use guard::Access;
pub use page::with_page;
pub use serve::{Listener, ServeError, listen, serve, serve_on};
pub use tend::tend;

/// What every handler is given.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) runtime: Runtime,
    /// Ends streams when the server is about to.
    pub(crate) closing: CancellationToken,
}

/// All routes, at `/` and at `/api/langgraph`.
pub fn router(runtime: Runtime, access: Access, closing: CancellationToken) -> Router {
    let gateway = Gateway { runtime, closing };
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
