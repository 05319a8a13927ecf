//! Skills: listed, switched, taken in from a thread.

use hart_testkit::zip::Zip;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::World;

const SKILL: &str =
    "---\nname: haiku\ndescription: Writes haiku about the weather.\n---\n\nCount syllables.\n";

fn find<'a>(listed: &'a Value, name: &str) -> Option<&'a Value> {
    listed["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == name)
}

#[tokio::test]
async fn a_skill_is_taken_in_and_switched() {
    let world = World::new([]).await;
    let first = world.get("/api/skills").await["skills"][0].clone();
    assert_eq!((&first["category"], &first["editable"]), (&json!("public"), &json!(false)), "{first}");
    let thread = world.thread().await;
    let good = Zip::new().file("haiku/SKILL.md", SKILL).finish();
    let bad = Zip::new().file("bad/SKILL.md", "no front matter").finish();
    world.upload(&thread, &[("haiku.skill", &good), ("bad.skill", &bad), ("note.txt", b"x")]).await;
    let install = |name: &str| {
        let body = json!({"thread_id": thread, "path": format!("/mnt/user-data/uploads/{name}")});
        world.call(Method::POST, "/api/skills/install", body)
    };
    let (status, done) = install("haiku.skill").await;
    assert_eq!((status, &done["skill_name"]), (StatusCode::OK, &json!("haiku")), "{done}");
    let listed = world.get("/api/skills").await;
    let haiku = find(&listed, "haiku").unwrap();
    assert_eq!((&haiku["category"], &haiku["enabled"]), (&json!("custom"), &json!(true)));
    let (status, off) = world.call(Method::PUT, "/api/skills/haiku", json!({"enabled": false})).await;
    assert_eq!((status, &off["enabled"]), (StatusCode::OK, &json!(false)));
    let read = world.get("/api/skills/haiku").await;
    assert_eq!((&read["enabled"], &read["content"]), (&json!(false), &json!(SKILL)));
    for (name, expected) in [
        ("haiku.skill", StatusCode::CONFLICT),
        ("bad.skill", StatusCode::BAD_REQUEST),
        ("note.txt", StatusCode::BAD_REQUEST),
        ("none.skill", StatusCode::NOT_FOUND),
    ] {
        let (status, answer) = install(name).await;
        assert_eq!(status, expected, "{name}: {answer}");
        assert!(answer["detail"].is_string(), "{answer}");
    }
    for (method, body) in [(Method::GET, Value::Null), (Method::PUT, json!({"enabled": true}))] {
        assert_eq!(world.call(method, "/api/skills/nobody", body).await.0, StatusCode::NOT_FOUND);
    }
}
