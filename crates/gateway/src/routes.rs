//! The table of routes.
//!
//! Invariant: one line per path, with what it is for; what a path does is in the file of its noun.

mod assistants;
mod commands;
pub(crate) mod crons;
mod docs;
mod events;
mod graphs;
pub(crate) mod meta;
mod metrics;
mod run_request;
mod runs;
mod state;
mod stateless;
mod store;
mod thread_stream;
mod threads;

use crate::openapi::{Table, get, post, put};

pub(crate) use run_request::RunRequest;

/// Where a reader was.
const LAST_SEEN: &[&str] = &["Last-Event-ID"];
/// The same request again is the same run.
const KEY: &[&str] = &["Idempotency-Key"];
const RUN_STATUS: &str = "pending|running|success|error|timeout|interrupted";

/// All of them.
pub(crate) fn table() -> Table {
    let table = assistant_routes(server_routes(Table::default()));
    store_routes(run_routes(thread_routes(table)))
}

/// The server itself, and what describes it.
fn server_routes(table: Table) -> Table {
    table
        .route("/", get("Whether the server is there; browsers get the page", meta::ok))
        .route("/ok", get("Whether the server is there", meta::ok))
        .route("/info", get("What the server is", meta::info))
        .route("/health", get("Whether the server is there", meta::health))
        .route("/metrics", get("Counts for Prometheus", metrics::metrics))
        .route("/openapi.json", get("This description", docs::openapi))
        .route("/docs", get("This description as a page", docs::page))
        .route("/docs/page.js", get("The script of the page", docs::script))
        .route("/docs/page.css", get("The style of the page", docs::style))
}

fn assistant_routes(table: Table) -> Table {
    table
        .route("/assistants", post("Make an assistant", assistants::create))
        .route("/assistants/search", post("Find assistants", assistants::search))
        .route("/assistants/count", post("Count assistants", assistants::count))
        .route(
            "/assistants/{assistant}",
            get("Read an assistant", assistants::get)
                .patch("Change an assistant: a new version", assistants::patch)
                .delete("Forget an assistant", assistants::delete)
                .query(&[("delete_threads", "boolean")]),
        )
        .route(
            "/assistants/{assistant}/versions",
            post("List the versions of an assistant", assistants::versions),
        )
        .route(
            "/assistants/{assistant}/latest",
            post("Go to a version of an assistant", assistants::set_latest),
        )
        .route("/assistants/{assistant}/graph", get("The shape of an agent", graphs::graph))
        .route("/assistants/{assistant}/schemas", get("What an agent takes and gives", graphs::schemas))
        .route("/assistants/{assistant}/subgraphs", get("Agents inside of an agent: none", graphs::subgraphs))
        .route(
            "/assistants/{assistant}/subgraphs/{namespace}",
            get("Agents inside of an agent: none", graphs::subgraphs),
        )
}

fn thread_routes(table: Table) -> Table {
    table
        .route("/threads", post("Make a thread", threads::create))
        .route("/threads/search", post("Find threads", threads::search))
        .route("/threads/count", post("Count threads", threads::count))
        .route("/threads/prune", post("Forget several threads", threads::prune))
        .route(
            "/threads/{thread}",
            get("Read a thread", threads::get)
                .patch("Change the metadata of a thread", threads::patch)
                .delete("Forget a thread", threads::delete),
        )
        .route("/threads/{thread}/copy", post("Copy a thread with its history", threads::copy))
        .route(
            "/threads/{thread}/state",
            get("What a thread has come to", state::get)
                .post("Write to the state of a thread", state::update),
        )
        .route("/threads/{thread}/state/checkpoint", post("The state at a step", state::at_checkpoint))
        .route("/threads/{thread}/state/{checkpoint}", get("The state at a step", state::at))
        .route(
            "/threads/{thread}/stream",
            get("Follow all runs of a thread", thread_stream::join)
                .query(&[("stream_modes", "list")])
                .headers(LAST_SEEN),
        )
        .route("/threads/{thread}/commands", post("Tell a thread what to do", commands::post))
        .route(
            "/threads/{thread}/stream/events",
            post("Follow channels of a thread", events::stream)
                .get("The same over a WebSocket", events::socket),
        )
        .route(
            "/threads/{thread}/history",
            get("The states of a thread, newest first", state::history_get)
                .query(&[("limit", "integer"), ("before", "string")])
                .post("The states of a thread, newest first", state::history),
        )
}

fn run_routes(table: Table) -> Table {
    table
        .route(
            "/threads/{thread}/runs",
            get("The runs of a thread, newest first", runs::list)
                .query(&[
                    ("limit", "integer"),
                    ("offset", "integer"),
                    ("status", RUN_STATUS),
                    ("select", "list"),
                ])
                .post("Start a run", runs::create)
                .headers(KEY),
        )
        .route("/threads/{thread}/runs/stream", post("Start a run and follow it", runs::stream).headers(KEY))
        .route(
            "/threads/{thread}/runs/wait",
            post("Start a run and wait for what it comes to", runs::wait).headers(KEY),
        )
        .route(
            "/threads/{thread}/runs/{run}",
            get("Read a run", runs::get)
                .delete("Forget a run; the last one of its thread is undone", runs::delete),
        )
        .route(
            "/threads/{thread}/runs/{run}/join",
            get("Wait for what a run comes to", runs::join).query(&[("cancel_on_disconnect", "boolean")]),
        )
        .route(
            "/threads/{thread}/runs/{run}/stream",
            get("Follow a run", runs::join_stream)
                .query(&[("stream_mode", "list"), ("cancel_on_disconnect", "boolean")])
                .headers(LAST_SEEN),
        )
        .route(
            "/threads/{thread}/runs/{run}/cancel",
            post("Stop a run", runs::cancel).query(&[("wait", "boolean"), ("action", "interrupt|rollback")]),
        )
        .route("/runs", post("Start a run on a thread of its own", stateless::create).headers(KEY))
        .route(
            "/runs/stream",
            post("Start a run on a thread of its own and follow it", stateless::stream).headers(KEY),
        )
        .route(
            "/runs/wait",
            post("Start a run on a thread of its own and wait for it", stateless::wait).headers(KEY),
        )
        .route("/runs/batch", post("Start several runs", stateless::batch))
        .route(
            "/runs/cancel",
            post("Stop several runs", stateless::cancel).query(&[("action", "interrupt|rollback")]),
        )
        .route("/runs/crons", post("Make a cron", crons::create))
        .route("/runs/crons/search", post("Find crons", crons::search))
        .route("/runs/crons/count", post("Count crons", crons::count))
        .route(
            "/runs/crons/{cron}",
            get("Read a cron", crons::get)
                .patch("Change a cron", crons::patch)
                .delete("End a cron", crons::delete),
        )
        .route("/threads/{thread}/runs/crons", post("Make a cron on a thread", crons::create_on_thread))
        .route(
            "/runs/{run}/stream",
            get("Follow a run", stateless::join_stream)
                .query(&[("stream_mode", "list"), ("cancel_on_disconnect", "boolean")])
                .headers(LAST_SEEN),
        )
}

fn store_routes(table: Table) -> Table {
    table
        .route(
            "/store/items",
            put("Keep an item", store::put)
                .get("Read an item", store::get)
                .query(&[("namespace", "string"), ("key", "string")])
                .delete("Forget an item", store::delete),
        )
        .route("/store/items/search", post("Find items", store::search))
        .route("/store/namespaces", post("Find namespaces", store::namespaces))
}
