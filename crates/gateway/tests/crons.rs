//! Crons, as LangGraph's clients handle them.

use hart_testkit::eventually;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Server;

fn yearly(more: Value) -> Value {
    let mut body = json!({"assistant_id": "agent", "schedule": "0 0 1 1 *", "input": {"messages": []}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn a_cron_is_made_found_changed_and_ended() {
    let server = Server::new(&[]).await;
    let body = json!({"metadata": {"c": 1}, "timezone": "Europe/Paris", "end_time": "2199-01-01T00:00:00"});
    let made = server.post("/runs/crons", yearly(body)).await;
    let id = made["cron_id"].as_str().unwrap();
    assert_eq!(made["assistant_id"], "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    assert_eq!((&made["thread_id"], &made["on_run_completed"]), (&Value::Null, &json!("delete")));
    assert_eq!(made["payload"]["input"], json!({"messages": []}));
    assert_eq!(made["payload"]["config"], json!({"configurable": {"cron_id": id}}));
    assert_eq!(
        (&made["timezone"], &made["payload"]["timezone"]),
        (&json!("Europe/Paris"), &made["timezone"])
    );
    assert_eq!(made["end_time"], "2199-01-01T00:00:00.000000+00:00");
    assert!(made["next_run_date"].as_str().unwrap().ends_with("-12-31T23:00:00.000000+00:00"), "{made}");
    let path = format!("/runs/crons/{id}");
    assert_eq!(server.get(&path).await, made);
    let change =
        json!({"enabled": false, "timezone": "UTC", "input": {"messages": ["x"]}, "metadata": {"d": 2}});
    let (status, changed) = server.call(Method::PATCH, &path, change).await;
    assert_eq!((status, &changed["enabled"]), (StatusCode::OK, &json!(false)));
    assert_eq!(changed["payload"]["input"], json!({"messages": ["x"]}));
    assert_eq!((&changed["metadata"], &changed["timezone"]), (&json!({"c": 1, "d": 2}), &json!("UTC")));
    assert!(changed["next_run_date"].as_str().unwrap().ends_with("-01-01T00:00:00.000000+00:00"));
    assert_eq!(server.call(Method::PATCH, &path, json!({})).await.0, StatusCode::BAD_REQUEST);

    let thread = server.post("/threads", json!({})).await;
    let thread = thread["thread_id"].as_str().unwrap();
    let on_thread = server.post(&format!("/threads/{thread}/runs/crons"), yearly(json!({}))).await;
    assert_eq!((&on_thread["thread_id"], &on_thread["timezone"]), (&json!(thread), &Value::Null));
    assert_eq!(server.post("/runs/crons/count", json!({})).await, json!(2));
    let found =
        server.post("/runs/crons/search", json!({"thread_id": thread, "assistant_id": "agent"})).await;
    assert_eq!(found, json!([on_thread]));
    let found = server.post("/runs/crons/search", json!({"enabled": false, "select": ["cron_id"]})).await;
    assert_eq!(found, json!([{"cron_id": id}]));
    let unknown = json!({"assistant_id": "00000000-0000-4000-8000-000000000000"});
    assert_eq!(server.post("/runs/crons/search", unknown).await, json!([]));
    let never = server.post("/runs/crons", yearly(json!({"end_time": "9999-12-31T23:59:59Z"}))).await;
    assert!(never["end_time"].as_str().unwrap().starts_with("9999-12-30"), "{never}");
    for nonsense in ["9999-12-31T25:00:00Z", "9999-12-31 or so", "soon"] {
        let (status, told) =
            server.call(Method::POST, "/runs/crons", yearly(json!({ "end_time": nonsense }))).await;
        assert_eq!(status, 422, "{nonsense}: {told}");
    }
    assert_eq!(server.call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    server.close().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_when_the_cron_is_made() {
    let server = Server::new(&[]).await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let table = [
        ("/runs/crons".to_owned(), json!({"schedule": "nope"}), 422),
        ("/runs/crons".to_owned(), json!({"timezone": "Mars/Olympus"}), 422),
        ("/runs/crons".to_owned(), json!({"end_time": "soon"}), 422),
        ("/runs/crons".to_owned(), json!({"on_run_completed": "explode"}), 422),
        ("/runs/crons".to_owned(), json!({"stream_mode": "loud"}), 422),
        ("/runs/crons".to_owned(), json!({"schedule": null}), 422),
        ("/runs/crons".to_owned(), json!({"assistant_id": unknown}), 404),
        (format!("/threads/{unknown}/runs/crons"), json!({}), 404),
    ];
    for (path, more, expected) in table {
        let (status, answer) = server.call(Method::POST, &path, yearly(more.clone())).await;
        assert_eq!(status.as_u16(), expected, "{more}: {answer}");
        assert!(answer["detail"].is_string(), "{more}: {answer}");
    }
    assert_eq!(server.post("/runs/crons/count", json!({})).await, json!(0));
    server.close().await;
}

#[tokio::test]
async fn a_cron_that_is_due_runs() {
    let server = Server::new(&["tick"]).await;
    let thread = server.post("/threads", json!({})).await;
    let thread = thread["thread_id"].as_str().unwrap();
    let input = json!({"messages": [{"role": "user", "content": "hi"}]});
    let made = yearly(json!({"input": input, "metadata": {"why": "cron"}}));
    let cron = server.post(&format!("/threads/{thread}/runs/crons"), made).await;
    server.make_due(cron["cron_id"].as_str().unwrap()).await;
    let runs = eventually("the cron's run ends", async || {
        let runs = server.get(&format!("/threads/{thread}/runs")).await;
        (runs[0]["status"] == "success").then_some(runs)
    })
    .await;
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(
        (&runs[0]["metadata"]["why"], &runs[0]["metadata"]["cron_id"]),
        (&json!("cron"), &cron["cron_id"])
    );
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["messages"][1]["content"], "tick");
    server.close().await;
}
