//! The table of routes.
//!
//! Invariant: one line per path; what a path does is in the file of its noun.

mod assistants;
mod commands;
mod crons;
mod events;
mod graphs;
mod meta;
mod run_request;
mod runs;
mod state;
mod stateless;
mod store;
mod thread_stream;
mod threads;

use axum::Router;
use axum::routing::{get, post, put};

use crate::Gateway;

pub(crate) use run_request::RunRequest;

/// LangGraph's own.
pub(crate) fn langgraph() -> Router<Gateway> {
    Router::new()
        .route("/ok", get(meta::ok))
        .route("/info", get(meta::info))
        .route("/health", get(meta::ok))
        .route("/assistants", post(assistants::create))
        .route("/assistants/search", post(assistants::search))
        .route("/assistants/count", post(assistants::count))
        .route(
            "/assistants/{assistant}",
            get(assistants::get).patch(assistants::patch).delete(assistants::delete),
        )
        .route("/assistants/{assistant}/versions", post(assistants::versions))
        .route("/assistants/{assistant}/latest", post(assistants::set_latest))
        .route("/assistants/{assistant}/graph", get(graphs::graph))
        .route("/assistants/{assistant}/schemas", get(graphs::schemas))
        .route("/assistants/{assistant}/subgraphs", get(graphs::subgraphs))
        .route("/assistants/{assistant}/subgraphs/{namespace}", get(graphs::subgraphs))
        .route("/threads", post(threads::create))
        .route("/threads/search", post(threads::search))
        .route("/threads/count", post(threads::count))
        .route("/threads/prune", post(threads::prune))
        .route("/threads/{thread}", get(threads::get).patch(threads::patch).delete(threads::delete))
        .route("/threads/{thread}/copy", post(threads::copy))
        .route("/threads/{thread}/state", get(state::get).post(state::update))
        .route("/threads/{thread}/state/checkpoint", post(state::at_checkpoint))
        .route("/threads/{thread}/state/{checkpoint}", get(state::at))
        .route("/threads/{thread}/history", get(state::history_get).post(state::history))
        .route("/threads/{thread}/stream", get(thread_stream::join))
        .route("/threads/{thread}/commands", post(commands::post))
        .route("/threads/{thread}/stream/events", post(events::stream).get(events::socket))
        .route("/threads/{thread}/runs", get(runs::list).post(runs::create))
        .route("/threads/{thread}/runs/stream", post(runs::stream))
        .route("/threads/{thread}/runs/wait", post(runs::wait))
        .route("/threads/{thread}/runs/{run}", get(runs::get).delete(runs::delete))
        .route("/threads/{thread}/runs/{run}/join", get(runs::join))
        .route("/threads/{thread}/runs/{run}/stream", get(runs::join_stream))
        .route("/threads/{thread}/runs/{run}/cancel", post(runs::cancel))
        .route("/store/items", put(store::put).get(store::get).delete(store::delete))
        .route("/store/items/search", post(store::search))
        .route("/store/namespaces", post(store::namespaces))
        .route("/runs", post(stateless::create))
        .route("/runs/stream", post(stateless::stream))
        .route("/runs/wait", post(stateless::wait))
        .route("/runs/batch", post(stateless::batch))
        .route("/runs/cancel", post(stateless::cancel))
        .route("/runs/crons", post(crons::create))
        .route("/runs/crons/search", post(crons::search))
        .route("/runs/crons/count", post(crons::count))
        .route("/runs/crons/{cron}", get(crons::get).patch(crons::patch).delete(crons::delete))
        .route("/threads/{thread}/runs/crons", post(crons::create_on_thread))
        .route("/runs/{run}/stream", get(stateless::join_stream))
}
