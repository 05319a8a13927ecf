//! What an operator sees: counts that Prometheus reads, and traces that a collector receives.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use hart_gateway::OtlpExporter;
use hart_testkit::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use crate::support::Server;

fn says(text: &str) -> Value {
    json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}})
}

/// Every series with its value; what is no line of the format fails.
async fn series(server: &Server) -> BTreeMap<String, f64> {
    let response = server.request(Method::GET, "/metrics").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    let mut known = BTreeMap::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# TYPE ") {
            let (name, kind) = about.split_once(' ').unwrap();
            known.insert(name.to_owned(), kind.to_owned());
        }
    }
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end));
        assert!(known.contains_key(family) || known.contains_key(of_histogram.unwrap()), "{line}");
        (name.to_owned(), value.parse().unwrap())
    })
    .collect()
}

#[tokio::test]
async fn runs_are_counted() {
    let server = Server::new(&["hello"]).await;
    let before = series(&server).await;
    assert_eq!(before["hart_runs_started_total"], 0.0);
    server.post("/runs/wait", says("hi")).await;
    // The model has nothing more to say.
    server.post("/runs/wait", says("again")).await;
    // Whoever waits is told of the error a moment before the run has ended.
    let after = eventually("no run is executed", async || {
        let now = series(&server).await;
        (now["hart_runs_active{status=\"running\"}"] == 0.0).then_some(now)
    })
    .await;
    assert_eq!(after["hart_runs_started_total"], 2.0);
    assert_eq!(after["hart_runs_ended_total{status=\"success\"}"], 1.0);
    assert_eq!(after["hart_runs_ended_total{status=\"error\"}"], 1.0);
    assert_eq!(after["hart_model_calls_total"], 2.0);
    assert_eq!(after["hart_model_seconds_count"], after["hart_model_seconds_bucket{le=\"+Inf\"}"]);
    assert!(after["hart_model_seconds_count"] >= 1.0);
    assert!(after["process_resident_memory_bytes"] > 1e6);
    assert!(after.contains_key("hart_store_waiting_writes"));
    server.close().await;
}

#[tokio::test]
async fn whoever_follows_is_counted_until_it_stops() {
    let server = Server::new(&[]).await;
    let thread = server.post("/threads", json!({})).await;
    let path = format!("/threads/{}/runs", thread["thread_id"].as_str().unwrap());
    let mut later = says("hi");
    later["after_seconds"] = json!(3600);
    let run = server.post(&path, later).await;
    let stream = format!("{path}/{}/stream", run["run_id"].as_str().unwrap());
    let follower = server.request(Method::GET, &stream).send().await.unwrap();
    assert_eq!(series(&server).await["hart_stream_readers"], 1.0);
    assert_eq!(series(&server).await["hart_runs_active{status=\"pending\"}"], 1.0);
    drop(follower);
    eventually("nobody reads", async || (series(&server).await["hart_stream_readers"] == 0.0).then_some(()))
        .await;
    server.close().await;
}

#[tokio::test]
async fn a_collector_receives_the_spans_of_a_run() {
    let (tell, mut told) = unbounded_channel();
    let take = move |uri: Uri, body: String| async move {
        assert_eq!(uri.path(), "/v1/traces");
        tell.send(serde_json::from_str::<Value>(&body).unwrap()).unwrap();
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, Router::new().fallback(take)).await.unwrap() });

    let server = Server::new(&["hello"]).await;
    server.trace_to(Arc::new(OtlpExporter::new(&collector, "authorization=Bearer x").unwrap()));
    let thread = server.post("/threads", json!({})).await;
    let thread = thread["thread_id"].as_str().unwrap();
    server.post(&format!("/threads/{thread}/runs/wait"), says("hi")).await;
    let run = server.get(&format!("/threads/{thread}/runs")).await[0]["run_id"].as_str().unwrap().to_owned();
    // Closing hands over what is left.
    server.close().await;
    let mut spans = Vec::new();
    while let Ok(batch) = told.try_recv() {
        assert_eq!(batch["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"], "hart");
        let found = batch["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        spans.extend(found.iter().cloned());
    }
    let named = |start: &str| {
        spans
            .iter()
            .find(|span| span["name"].as_str().unwrap().starts_with(start))
            .unwrap_or_else(|| panic!("{spans:?}"))
    };
    let value = |span: &Value, key: &str| {
        let found = span["attributes"].as_array().unwrap().iter().find(|entry| entry["key"] == key).cloned();
        found.unwrap_or_else(|| panic!("{key} of {span}"))["value"].clone()
    };
    let (root, chat) = (named("invoke_agent agent"), named("chat"));
    assert_eq!(root["traceId"], run.replace('-', ""));
    assert_eq!((&chat["traceId"], &chat["parentSpanId"]), (&root["traceId"], &root["spanId"]));
    assert_eq!((root["parentSpanId"].as_str(), &chat["kind"]), (Some(""), &json!(3)));
    assert_eq!(value(root, "gen_ai.operation.name")["stringValue"], "invoke_agent");
    assert_eq!(value(root, "gen_ai.conversation.id")["stringValue"], thread);
    assert_eq!(value(root, "hart.run.status")["stringValue"], "success");
    assert_eq!(value(chat, "gen_ai.operation.name")["stringValue"], "chat");
    let asked = value(chat, "gen_ai.request.model")["stringValue"].as_str().unwrap().to_owned();
    assert_eq!(chat["name"], format!("chat {asked}"), "as the operator calls it");
    assert!(value(chat, "gen_ai.usage.output_tokens")["intValue"].is_string());
    let nanos = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
    assert!(nanos(root, "startTimeUnixNano") <= nanos(chat, "startTimeUnixNano"));
    assert!(nanos(chat, "endTimeUnixNano") <= nanos(root, "endTimeUnixNano"));
}

#[test]
fn what_is_no_collector_is_refused() {
    for (endpoint, headers) in [("nowhere", ""), ("ftp://x", ""), ("http://x", "a"), ("http://x", "a b=c")] {
        assert!(OtlpExporter::new(endpoint, headers).is_err(), "{endpoint} {headers}");
    }
}
