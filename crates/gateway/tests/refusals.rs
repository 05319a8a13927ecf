//! What is refused, with which status, and who may not even ask.

use hart_gateway::Access;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn bad_requests_get_a_status_and_a_detail() {
    let server = Server::new(&[]).await;
    let thread = server.post("/threads", json!({})).await;
    let id = thread["thread_id"].as_str().unwrap();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let runs = format!("/threads/{id}/runs");
    let table: Vec<(Method, String, Value, u16)> = vec![
        (Method::GET, "/nowhere".into(), Value::Null, 404),
        (Method::DELETE, "/ok".into(), Value::Null, 405),
        (Method::GET, "/threads/not-a-uuid".into(), Value::Null, 422),
        (Method::GET, "/threads/..%2f..%2fetc".into(), Value::Null, 422),
        (Method::GET, format!("/threads/{unknown}"), Value::Null, 404),
        (Method::GET, format!("/threads/{unknown}/state"), Value::Null, 404),
        (Method::POST, "/threads".into(), json!({"thread_id": id}), 409),
        (Method::POST, "/threads/search".into(), json!({"limit": 0}), 422),
        (Method::POST, "/threads/search".into(), json!({"select": ["secrets"]}), 422),
        (Method::POST, "/threads/search".into(), json!({"sort_by": "colour"}), 422),
        (Method::POST, runs.clone(), json!({}), 422),
        (Method::POST, runs.clone(), json!({"assistant_id": "nobody"}), 422),
        (Method::POST, runs.clone(), json!({"assistant_id": unknown}), 404),
        (Method::POST, runs.clone(), json!({"assistant_id": "agent", "stream_mode": "loud"}), 422),
        (Method::POST, runs.clone(), json!({"assistant_id": "agent", "durability": "later"}), 422),
        (Method::POST, runs.clone(), json!({"assistant_id": "agent", "webhook": "http://127.0.0.1:9"}), 422),
        (Method::POST, runs.clone(), json!({"assistant_id": "agent", "multitask_strategy": "x"}), 422),
        (
            Method::POST,
            runs.clone(),
            json!({"assistant_id": "agent", "context": {"a": 1}, "config": {"configurable": {"b": 2}}}),
            400,
        ),
        (
            Method::POST,
            format!("/threads/{unknown}/runs"),
            json!({"assistant_id": "agent", "input": {}}),
            404,
        ),
        (Method::GET, format!("/threads/{id}/runs/{unknown}"), Value::Null, 404),
        (Method::GET, format!("/threads/{id}/runs?select=secrets"), Value::Null, 422),
        (Method::POST, format!("/threads/{id}/runs/{unknown}/cancel"), Value::Null, 404),
        (Method::POST, "/runs/wait".into(), json!({"assistant_id": "agent", "command": {"resume": 1}}), 400),
        (Method::POST, format!("/threads/{id}/state"), json!({"values": {}}), 400),
        (Method::PUT, "/store/items".into(), json!({"namespace": ["a.b"], "key": "k", "value": {}}), 422),
        (Method::POST, "/store/items/search".into(), json!({"filter": {"n": {"$near": 1}}}), 422),
    ];
    for (method, path, body, expected) in table {
        let (status, answer) = server.call(method.clone(), &path, body.clone()).await;
        assert_eq!(status.as_u16(), expected, "{method} {path} {body}: {answer}");
        let plain = path == "/store/items";
        assert!(plain || answer["detail"].is_string(), "{method} {path}: {answer}");
    }
    let broken = server.request(Method::POST, "/threads").body("{\"metadata\":").send().await.unwrap();
    assert_eq!(broken.status().as_u16(), 422);
    server.close().await;
}

#[tokio::test]
async fn other_sites_and_strangers_are_turned_away() {
    let access = Access { token: Some("secret".into()), ..Access::default() };
    let server = Server::with(&[], access).await;
    let ask = |name: &'static str, value: &'static str| {
        server.request(Method::GET, "/ok").bearer_auth("secret").header(name, value).send()
    };
    assert_eq!(ask("origin", "http://localhost:3000").await.unwrap().status().as_u16(), 200);
    assert_eq!(ask("origin", "https://evil.example").await.unwrap().status().as_u16(), 403);
    assert_eq!(ask("host", "evil.example").await.unwrap().status().as_u16(), 421);
    let allowed = ask("origin", "http://localhost:3000").await.unwrap();
    assert_eq!(allowed.headers()["access-control-allow-origin"], "http://localhost:3000");
    let exposed = allowed.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("content-location") && exposed.contains("location") && !exposed.contains('*'));
    let plain = server.request(Method::GET, "/ok").send().await.unwrap();
    assert_eq!(plain.status().as_u16(), 401);
    assert_eq!(plain.headers()["www-authenticate"], "Bearer");
    assert!(plain.text().await.unwrap().contains("a token is needed"));
    let wrong = server.request(Method::GET, "/ok").bearer_auth("secre").send().await.unwrap();
    assert_eq!(wrong.status().as_u16(), 401);
    assert!(wrong.text().await.unwrap().contains("not the one"));
    let small = server.request(Method::GET, "/ok").header("authorization", "bearer secret").send().await;
    assert_eq!(small.unwrap().status().as_u16(), 200, "the scheme's case does not matter");
    let key = server.request(Method::GET, "/ok").header("x-api-key", "secret").send().await.unwrap();
    assert_eq!(key.status().as_u16(), 200);
    server.close().await;
}
