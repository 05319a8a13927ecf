//! The goal of a thread over HTTP: set before its first message, pursued, cleared.

use hart_testkit::Turn;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::World;

fn verdict(satisfied: bool, blocker: &str) -> Turn {
    let verdict = json!({"satisfied": satisfied, "blocker": blocker, "reason": "r", "evidence_summary": ""});
    Turn::new().text(verdict.to_string())
}

#[tokio::test]
async fn a_goal_is_set_pursued_and_gone_when_it_is_reached() {
    let world = World::new([
        Turn::new().text("One of two."),
        verdict(false, "goal_not_met_yet"),
        Turn::new().text("Two of two."),
        verdict(true, "none"),
        Turn::new().text("You are welcome."),
    ])
    .await;
    // Before the thread's first message, as DeerFlow's frontend does it.
    let thread = "2f0c1d54-8c0c-4b57-9d3c-0c2a3b9a7f11";
    let at = format!("/api/threads/{thread}/goal");
    assert_eq!(world.call(Method::GET, &at, Value::Null).await.0, StatusCode::NOT_FOUND);
    let (status, set) = world.call(Method::PUT, &at, json!({"objective": "  Two poems. "})).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    let goal = &set["goal"];
    assert_eq!((&goal["objective"], &goal["status"]), (&json!("Two poems."), &json!("active")));
    assert_eq!((&goal["max_continuations"], &goal["continuation_count"]), (&json!(8), &json!(0)));
    assert!(goal["created_at"].is_string() && goal["created_at"] == goal["updated_at"], "{goal}");
    assert_eq!(world.get(&at).await, set);

    let said = world.say(thread, "Write").await;
    let last = said["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], "Two of two.");
    assert_eq!(world.model.requests().len(), 4);
    let judged = world.model.last_request().texts_of("user").concat();
    assert!(judged.contains("Two poems."), "{judged}");
    assert_eq!(world.get(&at).await, json!({"goal": null}));

    // Who has no goal is not judged.
    world.say(thread, "Thanks").await;
    assert_eq!(world.model.requests().len(), 5);
}

#[tokio::test]
async fn a_goal_is_replaced_cleared_and_refused_with_a_reason() {
    let world = World::with(json!({"goal": {"max_continuations": 2}}), [Turn::hang()]).await;
    let thread = world.thread().await;
    let at = format!("/api/threads/{thread}/goal");
    world.call(Method::PUT, &at, json!({"objective": "a", "max_continuations": 1})).await;
    let (_, second) = world.call(Method::PUT, &at, json!({"objective": "b", "max_continuations": 5})).await;
    let goal = &second["goal"];
    assert_eq!((&goal["objective"], &goal["max_continuations"]), (&json!("b"), &json!(2)), "as configured");
    for (body, says) in [
        (json!({"objective": "  "}), "1 to 4000"),
        (json!({"objective": "x".repeat(4001)}), "1 to 4000"),
        (json!({"objective": "x", "max_continuations": 9}), "0 to 8"),
    ] {
        let (status, answer) = world.call(Method::PUT, &at, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer["detail"].as_str().unwrap().contains(says), "{answer}");
    }
    assert_eq!(world.get(&at).await["goal"]["objective"], "b", "nothing of it was taken");

    let nobody = "/api/threads/00000000-0000-4000-8000-000000000000/goal";
    assert_eq!(world.call(Method::DELETE, nobody, Value::Null).await.0, StatusCode::NOT_FOUND);

    let input = json!({"messages": [{"role": "user", "content": "go"}]});
    let run = json!({"assistant_id": "lead_agent", "input": input});
    let run = world.post(&format!("/threads/{thread}/runs"), run).await;
    for (method, body) in [(Method::PUT, json!({"objective": "c"})), (Method::DELETE, Value::Null)] {
        let (status, answer) = world.call(method, &at, body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    }
    let id = run["run_id"].as_str().unwrap();
    world.post(&format!("/threads/{thread}/runs/{id}/cancel?wait=true"), json!({})).await;
    let (status, cleared) = world.call(Method::DELETE, &at, Value::Null).await;
    assert_eq!((status, cleared), (StatusCode::OK, json!({"goal": null})));
}

#[tokio::test]
async fn where_goals_are_off_the_route_says_how_to_have_them() {
    let world = World::with(json!({"goal": {"enabled": false}}), []).await;
    let at = format!("/api/threads/{}/goal", world.thread().await);
    for (method, body) in
        [(Method::GET, Value::Null), (Method::PUT, json!({"objective": "a"})), (Method::DELETE, Value::Null)]
    {
        let (status, answer) = world.call(method, &at, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(answer["detail"].as_str().unwrap().contains("`goal.enabled: true`"), "{answer}");
    }
}
