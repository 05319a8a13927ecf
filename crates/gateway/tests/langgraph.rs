//! What LangGraph's clients do, without their clients: the shapes and headers they rely on.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Server;

fn says(text: &str) -> Value {
    json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}})
}

#[tokio::test]
async fn a_run_is_waited_for_and_the_thread_remembers() {
    let server = Server::new(&["hello", "again"]).await;
    let thread = server.post("/threads", json!({"metadata": {"user": "u1"}})).await;
    assert_eq!((&thread["status"], &thread["values"]), (&json!("idle"), &Value::Null));
    let id = thread["thread_id"].as_str().unwrap();
    let values = server.post(&format!("/threads/{id}/runs/wait"), says("hi")).await;
    let texts: Vec<&str> =
        values["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["hi", "hello"]);
    server.post(&format!("/threads/{id}/runs/wait"), says("and?")).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["values"]["messages"].as_array().unwrap().len(), 4);
    assert_eq!((&state["next"], &state["interrupts"]), (&json!([]), &json!([])));
    let history = server.post(&format!("/threads/{id}/history"), json!({"limit": 10})).await;
    let steps: Vec<i64> =
        history.as_array().unwrap().iter().map(|s| s["metadata"]["step"].as_i64().unwrap()).collect();
    assert_eq!(steps, [4, 3, 2, 1, 0, -1]);
    let found = server.post("/threads/search", json!({"metadata": {"user": "u1"}})).await;
    assert_eq!(found[0]["metadata"]["graph_id"], "agent");
    // The same under DeerFlow's prefix.
    server.get(&format!("/api/langgraph/threads/{id}")).await;
    server.close().await;
}

#[tokio::test]
async fn a_stream_names_its_run_and_is_read_again_from_any_frame() {
    let server = Server::new(&["one two three"]).await;
    let thread = server.post("/threads", json!({})).await;
    let id = thread["thread_id"].as_str().unwrap();
    let body = json!({"stream_mode": ["values", "messages-tuple"]});
    let mut request = says("go");
    request.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    let response = server
        .request(Method::POST, &format!("/threads/{id}/runs/stream"))
        .body(request.to_string())
        .send()
        .await
        .unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    let (place, way) = (header("content-location"), header("location"));
    assert_eq!(way, format!("{place}/stream"));
    assert!(place.starts_with(&format!("/threads/{id}/runs/")));
    assert_eq!(header("content-type"), "text/event-stream; charset=utf-8");
    let whole = response.text().await.unwrap();
    assert!(whole.starts_with("event: metadata\r\n") && whole.contains("event: end\r\n"), "{whole}");
    let ids: Vec<&str> = whole.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    for (at, last) in ids.iter().enumerate() {
        let again = server.request(Method::GET, &way).header("last-event-id", *last).send().await.unwrap();
        let rest = again.text().await.unwrap();
        let seen: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        assert_eq!(seen, ids[at + 1..], "after {last}");
    }
    let from_start = server.request(Method::GET, &way).header("last-event-id", "-1").send().await.unwrap();
    assert_eq!(from_start.text().await.unwrap(), whole);
    server.close().await;
}

#[tokio::test]
async fn items_are_kept_beside_the_threads() {
    let server = Server::new(&[]).await;
    let item = json!({"namespace": ["a", "b"], "key": "k", "value": {"n": 2, "color": "red"}});
    let (status, _) = server.call(Method::PUT, "/store/items", item).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/store/items?namespace=a.b&key=k").await["value"]["color"], "red");
    assert_eq!(server.get("/store/items?namespace=a&key=k").await, Value::Null);
    let search = |filter| json!({"namespace_prefix": ["a"], "filter": filter});
    let found = server.post("/store/items/search", search(json!({"n": {"$gt": 1}, "color": "red"}))).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    let none = server.post("/store/items/search", search(json!({"n": {"$gt": 2}}))).await;
    assert!(none["items"].as_array().unwrap().is_empty());
    assert_eq!(server.post("/store/namespaces", json!({})).await["namespaces"], json!([["a", "b"]]));
    let (status, _) =
        server.call(Method::DELETE, "/store/items", json!({"namespace": ["a", "b"], "key": "k"})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/store/items?namespace=a.b&key=k").await, Value::Null);
    server.close().await;
}
