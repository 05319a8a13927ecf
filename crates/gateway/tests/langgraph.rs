//! What LangGraph's clients do, without their clients: the shapes and headers they rely on.

use hart_models::ScriptedTurn;
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
    assert!(
        header("cache-control").contains("no-transform"),
        "a proxy that compresses would hold frames back"
    );
    let whole = response.text().await.unwrap();
    assert!(whole.starts_with("event: metadata\r\n") && whole.contains("event: end\r\n"), "{whole}");
    let ids: Vec<&str> = whole.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    for (at, last) in ids.iter().enumerate() {
        let again = server.request(Method::GET, &way).header("last-event-id", *last).send().await.unwrap();
        let rest = again.text().await.unwrap();
        let seen: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        assert_eq!(seen, ids[at + 1..], "after {last}");
    }
    assert_eq!(server.get("/api/langgraph/").await["ok"], true);
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
    for (pattern, found) in [
        (json!({"prefix": ["*", "b"]}), true),
        (json!({"prefix": ["a", "*"], "suffix": ["*"]}), true),
        (json!({"suffix": ["a", "*"]}), true),
        (json!({"prefix": ["a", "*", "*"]}), false),
        (json!({"prefix": ["*", "c"]}), false),
        (json!({"suffix": ["a"]}), false),
    ] {
        let namespaces = server.post("/store/namespaces", pattern.clone()).await;
        assert_eq!(namespaces["namespaces"] == json!([["a", "b"]]), found, "{pattern}");
    }
    let (status, _) =
        server.call(Method::DELETE, "/store/items", json!({"namespace": ["a", "b"], "key": "k"})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/store/items?namespace=a.b&key=k").await, Value::Null);
    server.close().await;
}

#[tokio::test]
async fn threads_are_found_by_what_their_state_has() {
    let server = Server::new(&[]).await;
    let mut threads = Vec::new();
    for n in 0..5 {
        let made = server.post("/threads", json!({"metadata": {"graph_id": "agent"}})).await;
        let id = made["thread_id"].as_str().unwrap().to_owned();
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        let message = json!({"type": "human", "content": kind, "id": kind});
        server.post(&format!("/threads/{id}/state"), json!({"values": {"messages": [message]}})).await;
        threads.push(id);
    }
    let one = server.get(&format!("/threads/{}/state", threads[0])).await;
    let even = json!({"messages": one["values"]["messages"]});
    let ids = |rows: &Value| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row["thread_id"].as_str().unwrap().to_owned()).collect()
    };
    // Newest first, and whatever is shown of them.
    for select in [json!([]), json!(["thread_id"])] {
        let search = json!({"values": even, "limit": 2, "select": select});
        let response =
            server.request(Method::POST, "/threads/search").body(search.to_string()).send().await.unwrap();
        assert_eq!(response.headers()["x-pagination-next"], "2", "pages are cut from those that match");
        let rows: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(ids(&rows), [threads[4].clone(), threads[2].clone()]);
    }
    let rest = server.post("/threads/search", json!({"values": even, "limit": 2, "offset": 2})).await;
    assert_eq!(ids(&rest), [threads[0].clone()]);
    assert_eq!(server.post("/threads/count", json!({"values": even})).await, 3);
    let a_part = json!({"values": {"messages": [{"content": "odd"}]}});
    assert_eq!(ids(&server.post("/threads/search", a_part).await), [threads[3].clone(), threads[1].clone()]);
    let spelt_otherwise = server.get(&format!("/threads/{}", threads[0].to_uppercase())).await;
    assert_eq!(spelt_otherwise["thread_id"], threads[0].as_str());
    let of_agent = json!({"metadata": {"graph_id": "agent"}});
    let history = server.post(&format!("/threads/{}/history", threads[0]), of_agent).await;
    assert_eq!(history[0]["metadata"]["source"], "update");
    // A key is a name, not a way into the state.
    let inside = json!({"values": {"messages/0/content": "even"}});
    assert_eq!(server.post("/threads/search", inside.clone()).await, json!([]));
    assert_eq!(server.post("/threads/count", inside).await, 0);
    server.close().await;
}

#[tokio::test]
async fn whoever_waits_may_take_the_run_along_when_leaving() {
    let server = Server::playing(vec![ScriptedTurn::call("c", "wait", json!({}))]).await;
    let id = server.thread().await;
    for (way, body) in [("wait", json!({"on_disconnect": "cancel"})), ("join", json!({}))] {
        let mut asked = says("wait for me");
        asked.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let request = match way {
            "wait" => {
                server.request(Method::POST, &format!("/threads/{id}/runs/wait")).body(asked.to_string())
            }
            _ => {
                server.say(ScriptedTurn::call("c", "wait", json!({})));
                let run = server.post(&format!("/threads/{id}/runs"), asked).await;
                let run = run["run_id"].as_str().unwrap().to_owned();
                let place = format!("/threads/{id}/runs/{run}/join?cancel_on_disconnect=true");
                server.request(Method::GET, &place)
            }
        };
        // The headers are there at once, the result never.
        drop(request.send().await.unwrap());
        let ended = loop {
            let runs = server.get(&format!("/threads/{id}/runs")).await;
            if runs[0]["status"] != "running" && runs[0]["status"] != "pending" {
                break runs[0]["status"].clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        assert_eq!(ended, "interrupted", "{way}");
    }
    server.close().await;
}

#[tokio::test]
async fn nothing_is_done_where_one_of_many_ids_is_none() {
    let server = Server::new(&[]).await;
    let id = server.thread().await;
    let (status, _) = server.call(Method::POST, "/threads/prune", json!({"thread_ids": [id, "../x"]})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    server.get(&format!("/threads/{id}")).await;
    let (status, _) = server.call(Method::POST, "/runs/cancel", json!({"run_ids": ["../x"]})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    server.close().await;
}

#[tokio::test]
async fn several_runs_are_stopped_by_their_ids_or_all_of_a_thread() {
    let server = Server::playing(vec![ScriptedTurn::call("c", "wait", json!({}))]).await;
    let (id, other) = (server.thread().await, server.thread().await);
    let start = format!("/threads/{id}/runs");
    let (first, second) = (server.post(&start, says("go")).await, server.post(&start, says("go")).await);
    let cancel = |body: Value| server.call(Method::POST, "/runs/cancel", body);
    for unnamed in [json!({}), json!({"run_ids": []}), json!({"thread_id": id})] {
        let (status, _) = cancel(unnamed).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "nobody said which");
    }
    let ids = json!([second["run_id"]]);
    let (status, _) = cancel(json!({"thread_id": other, "run_ids": ids})).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "it is another thread's");
    let (status, _) = cancel(json!({"thread_id": id, "run_ids": ids})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = cancel(json!({"thread_id": id, "status": "all"})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let place = |run: &Value| format!("/threads/{id}/runs/{}", run["run_id"].as_str().unwrap());
    server.get(&format!("{}/join", place(&first))).await;
    for run in [&first, &second] {
        assert_eq!(server.get(&place(run)).await["status"], "interrupted");
    }
    server.close().await;
}

#[tokio::test]
async fn a_run_in_the_middle_is_deleted_alone() {
    let server = Server::new(&["one", "two", "three"]).await;
    let id = server.thread().await;
    for text in ["a", "b", "c"] {
        server.post(&format!("/threads/{id}/runs/wait"), says(text)).await;
    }
    let runs = server.get(&format!("/threads/{id}/runs")).await;
    let middle = format!("/threads/{id}/runs/{}", runs[1]["run_id"].as_str().unwrap());
    let (status, _) = server.call(Method::DELETE, &middle, Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = server.call(Method::GET, &middle, Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["values"]["messages"].as_array().unwrap().len(), 6);
    server.close().await;
}
