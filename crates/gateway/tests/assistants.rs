//! Assistants and their versions, as LangGraph's clients handle them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Server;

fn says(assistant: &str, more: Value) -> Value {
    let mut body =
        json!({"assistant_id": assistant, "input": {"messages": [{"role": "user", "content": "hi"}]}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn an_assistant_is_made_changed_and_gone_back_to() {
    let server = Server::new(&[]).await;
    let made = server
        .post(
            "/assistants",
            json!({"graph_id": "agent", "name": "Mine", "context": {"mode": "pro"}, "metadata": {"k": 1}}),
        )
        .await;
    let id = made["assistant_id"].as_str().unwrap();
    assert_eq!((&made["version"], &made["description"]), (&json!(1), &Value::Null));
    assert_eq!(made["config"], json!({"configurable": {"mode": "pro"}}));
    let twice = json!({"graph_id": "agent", "assistant_id": id});
    let (status, answer) = server.call(Method::POST, "/assistants", twice.clone()).await;
    assert_eq!((status.as_u16(), &answer["detail"]), (409, &json!(format!("Assistant {id} already exists"))));
    let mut same = twice;
    same["if_exists"] = json!("do_nothing");
    assert_eq!(server.post("/assistants", same).await, made);

    let path = format!("/assistants/{id}");
    let change = json!({"config": {"configurable": {"mode": "flash"}}, "metadata": {"l": 2}});
    let (status, second) = server.call(Method::PATCH, &path, change).await;
    assert_eq!((status, &second["version"], &second["name"]), (StatusCode::OK, &json!(2), &json!("Mine")));
    assert_eq!(
        (&second["context"], &second["metadata"]),
        (&json!({"mode": "flash"}), &json!({"k": 1, "l": 2}))
    );
    let versions = server.post(&format!("{path}/versions"), json!({})).await;
    assert_eq!((&versions[0]["version"], &versions[1]["version"]), (&json!(2), &json!(1)));
    assert!(versions[0].get("updated_at").is_none() && versions[0]["created_at"].is_string());
    let back = server.post(&format!("{path}/latest"), json!({"version": 1})).await;
    assert_eq!((&back["version"], &back["context"]), (&json!(1), &json!({"mode": "pro"})));
    assert_eq!(server.get(&path).await, back);

    assert_eq!(server.call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(server.call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    server.close().await;
}

#[tokio::test]
async fn agents_are_assistants_that_stay() {
    let server = Server::new(&[]).await;
    let agent = server.get("/assistants/agent").await;
    assert_eq!(agent["assistant_id"], "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    assert_eq!(agent["metadata"], json!({"created_by": "system"}));
    assert_eq!(server.call(Method::DELETE, "/assistants/agent", Value::Null).await.0, StatusCode::CONFLICT);
    for n in 0..3 {
        server.post("/assistants", json!({"graph_id": "agent", "name": format!("n{n}")})).await;
    }
    assert_eq!(server.post("/assistants/count", json!({})).await, json!(4));
    let page = server
        .request(Method::POST, "/assistants/search")
        .body(json!({"limit": 2, "sort_by": "name", "sort_order": "asc", "select": ["name"]}).to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(page.headers()["x-pagination-next"], "2");
    assert_eq!(page.headers()["x-pagination-total"], "3");
    assert_eq!(page.text().await.unwrap(), r#"[{"name":"agent"},{"name":"n0"}]"#);
    let found = server.post("/assistants/search", json!({"metadata": {"created_by": "system"}})).await;
    assert_eq!(found, json!([agent]));
    server.close().await;
}

#[tokio::test]
async fn what_an_assistant_says_lies_under_what_the_run_says() {
    let server = Server::new(&["one", "two"]).await;
    let made = json!({
        "graph_id": "agent", "context": {"mode": "pro", "model_name": "m"},
        "metadata": {"team": "a", "color": "red", "size": 1}
    });
    let made = server.post("/assistants", made).await;
    let id = made["assistant_id"].as_str().unwrap();
    let thread = server.post("/threads", json!({"metadata": {"color": "green", "size": 2}})).await;
    let path = format!("/threads/{}/runs", thread["thread_id"].as_str().unwrap());
    let more = json!({"context": {"mode": "flash"}, "metadata": {"size": 3}});
    server.post(&format!("{path}/wait"), says(id, more)).await;
    assert_eq!(server.options(), json!({"mode": "flash", "model_name": "m"}));
    let run = &server.get(&path).await[0];
    assert_eq!(run["assistant_id"], id);
    let metadata = ["team", "color", "size", "graph_id"].map(|key| &run["metadata"][key]);
    assert_eq!(metadata, [&json!("a"), &json!("green"), &json!(3), &json!("agent")]);
    // The agent itself, by its name, has nothing to say.
    server.post("/runs/wait", says("agent", json!({}))).await;
    assert_eq!(server.options(), json!({}));
    let gone =
        server.call(Method::DELETE, &format!("/assistants/{id}?delete_threads=true"), Value::Null).await;
    assert_eq!(gone.0, StatusCode::NO_CONTENT);
    assert_eq!(server.call(Method::GET, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    server.close().await;
}

/// `next` names no node that this does not have.
#[tokio::test]
async fn the_graph_has_the_agents_nodes_and_tools() {
    let server = Server::new(&[]).await;
    let graph = server.get("/assistants/agent/graph").await;
    let nodes = graph["nodes"].as_array().unwrap();
    let ids: Vec<_> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["__start__", "model", "after_model", "tools", "__end__"]);
    for edge in graph["edges"].as_array().unwrap() {
        for end in ["source", "target"] {
            assert!(ids.contains(&edge[end].as_str().unwrap()), "{edge}");
        }
    }
    assert!(nodes[3]["metadata"]["__tools"].is_array(), "{graph}");
    server.close().await;
}
