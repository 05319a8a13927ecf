//! Agents of the user's own, managed over HTTP and used at once.

use hart_testkit::Turn;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::World;

#[tokio::test]
async fn an_agent_is_made_used_changed_and_deleted() {
    let world = World::new([Turn::new().text("Rain, rain.")]).await;
    assert_eq!(world.get("/api/features").await["agents_api"]["enabled"], true);
    assert_eq!(world.get("/api/agents").await, json!({"agents": []}));
    let check = "/api/agents/check?name=Poet";
    assert_eq!(world.get(check).await, json!({"available": true, "name": "poet"}));
    let poet =
        json!({"name": "Poet", "description": "Rhymes.", "tool_groups": [], "soul": "You rhyme always."});
    let (status, made) = world.call(Method::POST, "/api/agents", poet.clone()).await;
    assert_eq!((status, &made["name"]), (StatusCode::CREATED, &json!("poet")), "{made}");
    assert_eq!(world.call(Method::POST, "/api/agents", poet).await.0, StatusCode::CONFLICT);
    assert_eq!(world.get(check).await["available"], false);
    assert_eq!(world.get("/api/agents/poet").await, made);

    let run = json!({"assistant_id": "poet", "input": {"messages": [{"role": "user", "content": "Go"}]}});
    world.post("/runs/wait", run).await;
    assert!(world.model.last_request().system().contains("You rhyme always."));

    let (status, changed) =
        world.call(Method::PUT, "/api/agents/poet", json!({"reasoning_effort": "low"})).await;
    assert_eq!((status, &changed["reasoning_effort"]), (StatusCode::OK, &json!("low")));
    assert_eq!(changed["soul"], "You rhyme always.");
    for (body, says) in [
        (json!({"tool_groups": ["magic"]}), "no tool group `magic`"),
        (json!({"reasoning_effort": "most"}), "write low, medium, high"),
    ] {
        let (status, answer) = world.call(Method::PUT, "/api/agents/poet", body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer["detail"].as_str().unwrap().contains(says), "{answer}");
    }
    for name in ["..", "a_b", "a%2fb", ""] {
        let (status, _) = world.call(Method::POST, "/api/agents", json!({ "name": name })).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
    }
    assert_eq!(world.call(Method::DELETE, "/api/agents/poet", Value::Null).await.0, StatusCode::NO_CONTENT);
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let (status, _) = world.call(method, "/api/agents/poet", json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn managing_agents_can_be_switched_off() {
    let world = World::with(json!({"agents_api": {"enabled": false}}), []).await;
    assert_eq!(world.get("/api/features").await["agents_api"]["enabled"], false);
    let (status, answer) = world.call(Method::POST, "/api/agents", json!({"name": "poet"})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
}
