//! Secrets that come with a run: they are for it alone, wherever they stand in the request.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Server;

const HUSH: &str = "hush-5d1c7e";

fn asked(place: &str) -> Value {
    let secrets = json!({"API_KEY": HUSH});
    let mut run =
        json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "hi"}]}});
    match place {
        "context" => run["context"] = json!({"mode": "pro", "secrets": secrets}),
        "configurable" => run["config"] = json!({"configurable": {"mode": "pro", "secrets": secrets}}),
        _ => run["config"] = json!({"context": {"secrets": secrets}, "configurable": {"mode": "pro"}}),
    }
    run
}

#[tokio::test]
async fn they_are_neither_kept_nor_told() {
    let server = Server::new(&["one", "two", "three"]).await;
    for place in ["context", "configurable", "config.context"] {
        let thread = server.thread().await;
        server.post(&format!("/threads/{thread}/runs/wait"), asked(place)).await;
        assert_eq!(server.options(), json!({"mode": "pro"}), "{place}");
        let runs = server.get(&format!("/threads/{thread}/runs")).await;
        let run = runs[0]["run_id"].as_str().unwrap();
        for path in [
            format!("/threads/{thread}"),
            format!("/threads/{thread}/state"),
            format!("/threads/{thread}/runs/{run}"),
            format!("/threads/{thread}/runs"),
        ] {
            let told = server.get(&path).await.to_string();
            assert!(!told.contains(HUSH), "{place} {path}: {told}");
        }
    }
    assert!(!server.stored().windows(HUSH.len()).any(|bytes| bytes == HUSH.as_bytes()));
    server.close().await;
}

#[tokio::test]
async fn what_is_kept_cannot_have_them() {
    let server = Server::new(&[]).await;
    let context = json!({"secrets": {"API_KEY": HUSH}});
    let mut cron = asked("context");
    cron["schedule"] = json!("0 0 * * *");
    for (method, path, body) in [
        (Method::POST, "/runs/crons", cron),
        (Method::POST, "/assistants", json!({"graph_id": "agent", "context": context})),
        (Method::POST, "/assistants", json!({"graph_id": "agent", "config": {"configurable": context}})),
    ] {
        let (status, answer) = server.call(method, path, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains("cannot have `secrets`") && !detail.contains(HUSH), "{detail}");
    }
    for wrong in [json!("hush-5d1c7e"), json!({"A": 1}), json!(["hush-5d1c7e"])] {
        let mut run = asked("context");
        run["context"]["secrets"] = wrong;
        let (status, answer) = server.call(Method::POST, "/runs/wait", run).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(!answer.to_string().contains(HUSH), "{answer}");
    }
    assert!(!server.stored().windows(HUSH.len()).any(|bytes| bytes == HUSH.as_bytes()));
    server.close().await;
}
