//! What is let in, under which key, and what a run that is not let in leaves behind.

use hart_kernel::{ModelError, ModelErrorKind};
use hart_models::ScriptedTurn;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Server;

fn says(text: &str) -> Value {
    json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}})
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn keyed(server: &Server, path: &str, key: &str, body: &Value) -> (StatusCode, Value) {
    let request = server.request(Method::POST, path).header("idempotency-key", key).body(body.to_string());
    let response = request.send().await.unwrap();
    let status = response.status();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn whoever_hears_that_a_run_failed_finds_it_ended() {
    let server = Server::new(&[]).await;
    let id = server.thread().await;
    for _ in 0..5 {
        server.say(ModelError::new(ModelErrorKind::BadRequest, "m", "broken").into());
        let told = server.post(&format!("/threads/{id}/runs/wait"), says("go")).await;
        assert!(told["__error__"]["message"].as_str().unwrap().contains("broken"), "{told}");
        let runs = server.get(&format!("/threads/{id}/runs?limit=1")).await;
        assert_eq!(runs[0]["status"], "error");
    }
    server.close().await;
}

#[tokio::test]
async fn a_run_that_is_rejected_leaves_its_thread_as_it_was() {
    let server = Server::playing(vec![ScriptedTurn::Hang]).await;
    let id = server.thread().await;
    let first = server.post(&format!("/threads/{id}/runs"), says("go")).await;
    let other = server.post("/assistants", json!({"graph_id": "agent", "name": "other"})).await;
    assert_ne!(first["assistant_id"], other["assistant_id"]);
    let more = json!({"assistant_id": other["assistant_id"], "multitask_strategy": "reject"});
    let (status, _) =
        server.call(Method::POST, &format!("/threads/{id}/runs"), with(says("me too"), more)).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let thread = server.get(&format!("/threads/{id}")).await;
    assert_eq!(thread["metadata"]["assistant_id"], first["assistant_id"]);
    server.close().await;
}

#[tokio::test]
async fn a_key_that_cannot_be_told_from_others_is_refused() {
    let server = Server::new(&[]).await;
    let path = format!("/threads/{}/runs", server.thread().await);
    for key in ["ü", "", " "] {
        assert_eq!(keyed(&server, &path, key, &says("a")).await.0, 422, "{key:?}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_key_is_its_threads_and_stands_for_one_request() {
    let server = Server::new(&["a", "b", "c"]).await;
    let (one, two) = (server.thread().await, server.thread().await);
    let at = |thread: &str| format!("/threads/{thread}/runs");
    let (_, first) = keyed(&server, &at(&one), "k", &says("hi")).await;
    let (_, again) = keyed(&server, &at(&one), "k", &says("hi")).await;
    assert_eq!(first["run_id"], again["run_id"]);
    let (_, elsewhere) = keyed(&server, &at(&two), "k", &says("hi")).await;
    assert_eq!(elsewhere["thread_id"], json!(two));
    let (status, told) = keyed(&server, &at(&one), "k", &says("something else")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(told["detail"].as_str().unwrap().contains("key"), "{told}");
    // Runs without a thread have theirs apart, and a repeated one makes no thread.
    let kept = with(says("hi"), json!({"on_completion": "keep"}));
    let (_, alone) = keyed(&server, "/runs", "k", &kept).await;
    let (_, repeated) = keyed(&server, "/runs", "k", &kept).await;
    assert_eq!(alone["run_id"], repeated["run_id"]);
    assert_ne!(alone["run_id"], first["run_id"]);
    assert_eq!(server.post("/threads/count", json!({})).await, 3);
    server.close().await;
}

#[tokio::test]
async fn a_run_of_its_own_that_is_stopped_before_it_begins_leaves_no_thread() {
    let server = Server::new(&[]).await;
    let run = server.post("/runs", with(says("later"), json!({"after_seconds": 600}))).await;
    let thread = format!("/threads/{}", run["thread_id"].as_str().unwrap());
    server.get(&thread).await;
    let (status, _) = server.call(Method::POST, "/runs/cancel", json!({"run_ids": [run["run_id"]]})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = server.call(Method::GET, &thread, Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    server.close().await;
}

#[tokio::test]
async fn a_run_has_the_limit_that_it_asks_for_whoever_makes_its_agent() {
    let server = Server::playing(vec![ScriptedTurn::call("c", "get_weather", json!({"city": "X"}))]).await;
    let id = server.thread().await;
    let limited = with(says("weather?"), json!({"config": {"recursion_limit": 1}}));
    let told = server.post(&format!("/threads/{id}/runs/wait"), limited).await;
    assert_eq!(told["__error__"]["error"], "GraphRecursionError", "{told}");
    assert!(told["__error__"]["message"].as_str().unwrap().contains("`recursion_limit`"), "{told}");
    server.close().await;
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_before_a_run_exists() {
    let server = Server::new(&[]).await;
    let id = server.thread().await;
    let wrong = [
        json!({"config": {"recursion_limit": -1}}),
        json!({"config": {"recursion_limit": 0}}),
        json!({"config": {"recursion_limit": "many"}}),
        json!({"command": {"update": [1, 2]}}),
        json!({"if_not_exists": "maybe"}),
        json!({"on_completion": "maybe"}),
        json!({"on_disconnect": "maybe"}),
        json!({"multitask_strategy": "maybe"}),
    ];
    for more in wrong {
        let (status, told) =
            server.call(Method::POST, &format!("/threads/{id}/runs"), with(says("x"), more.clone())).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{more}: {told}");
    }
    let nowhere = json!({"checkpoint": {"checkpoint_id": "1f1e08e6-21ba-6588-8000-88dfff15b743"}});
    let (status, _) =
        server.call(Method::POST, &format!("/threads/{id}/runs"), with(says("x"), nowhere.clone())).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = server.call(Method::POST, "/runs", with(says("x"), nowhere)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(server.get(&format!("/threads/{id}/runs")).await, json!([]));
    for (path, body) in [
        ("/threads", json!({"if_exists": "maybe"})),
        ("/threads", json!({"ttl": 0})),
        ("/threads", json!({"ttl": {"ttl": -1.5}})),
        ("/threads", json!({"ttl": {"ttl": 5, "strategy": "maybe"}})),
        ("/threads", json!({"ttl": "soon"})),
        ("/threads/prune", json!({"thread_ids": [id], "strategy": "maybe"})),
        ("/threads/search", json!({"extract": {"a": "values.messages[-1"}})),
        ("/threads/search", json!({"extract": {"a": "values..title"}})),
    ] {
        let (status, told) = server.call(Method::POST, path, body.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {body}: {told}");
    }
    server.get(&format!("/threads/{id}")).await;
    server.close().await;
}
