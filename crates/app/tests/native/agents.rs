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
        (json!({"model": "no-such"}), "there is no model `no-such`"),
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
async fn an_agent_is_made_in_a_conversation() {
    let call = |id: &str, args: Value| Turn::new().tool_call(id, "setup_agent", args);
    let world = World::new([
        Turn::new().text("What shall it do?"),
        call("c1", json!({"soul": " ", "description": "Rhymes."})),
        call("c2", json!({"soul": "You rhyme.", "description": "Rhymes.", "skills": ["no-such-skill"]})),
        call("c3", json!({"soul": "You rhyme.", "description": "Rhymes.", "skills": []})),
        Turn::new().text("Saved."),
        call("c4", json!({"soul": "You rhyme in French.", "description": "Rhymes."})),
        Turn::new().text("Saved again."),
        Turn::new().text("Hello"),
    ])
    .await;
    let thread = world.thread().await;
    let say = |words: &str, context: Value| {
        json!({"assistant_id": "lead_agent", "context": context,
               "input": {"messages": [{"role": "user", "content": words}]}})
    };
    let path = format!("/threads/{thread}/runs/wait");
    let making = json!({"is_bootstrap": true, "agent_name": "Poet", "mode": "flash"});
    world.post(&path, say("Help me design it.", making.clone())).await;
    let asked = world.model.last_request();
    assert!(asked.tool_names().contains(&"setup_agent"));
    assert!(asked.system().contains("`poet`"), "the name is known");
    assert_eq!(world.get("/api/agents").await, json!({"agents": []}), "nothing before it is said");

    world.post(&path, say("Save it.", making.clone())).await;
    let told = |id: &str| world.model.last_request().tool_result(id).unwrap().content;
    assert!(told("c1").contains("`soul` is empty"), "{}", told("c1"));
    assert!(told("c2").contains("there is no skill `no-such-skill`"), "{}", told("c2"));
    assert!(told("c3").contains("`poet` is saved"), "{}", told("c3"));
    let made = world.get("/api/agents/poet").await;
    assert_eq!((&made["soul"], &made["description"]), (&json!("You rhyme."), &json!("Rhymes.")));
    assert_eq!(made["skills"], json!([]));

    world.post(&path, say("In French, please.", making)).await;
    assert_eq!(world.get("/api/agents/poet").await["soul"], "You rhyme in French.");

    world.post(&path, say("Hello", json!({"agent_name": "poet"}))).await;
    let asked = world.model.last_request();
    assert!(asked.system().contains("You rhyme in French.") && !asked.tool_names().contains(&"setup_agent"));
}

#[tokio::test]
async fn a_run_that_makes_an_agent_says_which() {
    let world = World::new([]).await;
    let input = json!({"messages": [{"role": "user", "content": "Go"}]});
    for context in [
        json!({"is_bootstrap": true}),
        json!({"is_bootstrap": true, "agent_name": "../x"}),
        json!({"is_bootstrap": "yes", "agent_name": "poet"}),
    ] {
        let run = json!({"assistant_id": "lead_agent", "input": input, "context": context});
        let answer = world.post("/runs/wait", run).await;
        let said = answer.to_string();
        assert!(said.contains("InvalidOption") && said.contains("is_bootstrap"), "{said}");
    }
    let off = World::with(json!({"agents_api": {"enabled": false}}), []).await;
    let context = json!({"is_bootstrap": true, "agent_name": "poet"});
    let run = json!({"assistant_id": "lead_agent", "input": input, "context": context});
    let said = off.post("/runs/wait", run).await.to_string();
    assert!(said.contains("AgentsDisabled") && said.contains("agents_api.enabled"), "{said}");
}

#[tokio::test]
async fn managing_agents_can_be_switched_off() {
    let world = World::with(json!({"agents_api": {"enabled": false}}), []).await;
    assert_eq!(world.get("/api/features").await["agents_api"]["enabled"], false);
    let (status, answer) = world.call(Method::POST, "/api/agents", json!({"name": "poet"})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{answer}");
}
