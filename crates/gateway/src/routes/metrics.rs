//! What Prometheus reads.
//!
//! Invariant: no name or label comes from a client, so there are as many series tomorrow as today.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hart_runtime::BUCKETS;

use crate::Gateway;
use crate::error::ApiResult;

pub(crate) async fn metrics(State(gateway): State<Gateway>) -> ApiResult<Response> {
    let seen = gateway.runtime.metrics().observe();
    let active = gateway.runtime.store().active_runs().await?;
    let mut page = Page::default();
    page.one("hart_runs_started_total", "counter", "Runs that this process began.", seen.runs_started);
    page.head("hart_runs_ended_total", "counter", "Runs that ended here, by how.");
    for (status, count) in seen.runs_ended {
        page.row(&format!("hart_runs_ended_total{{status=\"{status}\"}}"), count);
    }
    page.head("hart_runs_active", "gauge", "Runs in the store that have not ended.");
    page.row("hart_runs_active{status=\"pending\"}", active.pending);
    page.row("hart_runs_active{status=\"running\"}", active.running);
    page.head("hart_tokens_total", "counter", "Tokens of runs that ended here.");
    page.row("hart_tokens_total{kind=\"input\"}", seen.input_tokens);
    page.row("hart_tokens_total{kind=\"output\"}", seen.output_tokens);
    let help = "Money spent on models whose price is known, in the currency of the prices.";
    page.one("hart_cost_total", "counter", help, seen.cost);
    page.one("hart_model_calls_total", "counter", "Calls of models.", seen.model_calls);
    page.one("hart_tool_calls_total", "counter", "Calls of tools.", seen.tool_calls);
    page.head("hart_model_seconds", "histogram", "How long models took for an answer.");
    for (bound, count) in BUCKETS.iter().zip(seen.model_within) {
        page.row(&format!("hart_model_seconds_bucket{{le=\"{bound}\"}}"), count);
    }
    page.row("hart_model_seconds_bucket{le=\"+Inf\"}", seen.model_answers);
    page.row("hart_model_seconds_sum", seen.model_seconds);
    page.row("hart_model_seconds_count", seen.model_answers);
    page.one("hart_stream_readers", "gauge", "Clients that follow a run.", gateway.readers.count());
    let store = gateway.runtime.store();
    page.one("hart_store_waiting_writes", "gauge", "Writes that wait for the disk.", store.waiting_writes());
    let full = u64::from(store.is_full());
    page.one("hart_store_full", "gauge", "1 while the disk has no room for what is written.", full);
    if let Some(bytes) = resident_bytes() {
        page.one("process_resident_memory_bytes", "gauge", "Memory that is in use.", bytes);
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], page.0).into_response())
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn row(&mut self, series: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{series} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.row(name, value);
    }
}

/// As Linux counts it: the second number of `statm`, in pages.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// Of every platform that hart runs on and that has `statm`.
const PAGE: u64 = 4096;
