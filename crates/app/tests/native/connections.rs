//! Connecting a model: tried, kept for its owner alone, used at once, forgotten.

use std::os::unix::fs::PermissionsExt as _;

use hart_testkit::{ModelServer, Turn};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::World;

const KEY: &str = "a-key-of-nobodys-kind-4711";

fn at(model: &ModelServer) -> Value {
    json!({"provider": "openai-compatible", "base_url": model.openai_base(), "model": "other", "api_key": KEY})
}

#[tokio::test]
async fn a_model_is_tried_connected_used_and_forgotten() {
    let world = World::new([]).await;
    let other = ModelServer::start().await;
    let first = world.get("/api/connections").await;
    assert_eq!(first["connections"], json!([]));
    let ollama = first["providers"].as_array().unwrap().iter().find(|one| one["name"] == "ollama").unwrap();
    assert_eq!((&ollama["local"], &ollama["key"]), (&json!(true), &Value::Null), "{ollama}");

    other.push(Turn::new().text("ready"));
    let tried = world.post("/api/connections/test", at(&other)).await;
    assert_eq!((&tried["ok"], &tried["said"]), (&json!(true), &json!("ready")), "{tried}");
    assert!(tried["latency_ms"].is_u64() && !tried["models"].as_array().unwrap().is_empty(), "{tried}");
    assert_eq!(world.get("/api/connections").await["connections"], json!([]), "a test keeps nothing");

    let (status, kept) = world.call(Method::PUT, "/api/connections/my%2Fmodel", at(&other)).await;
    assert_eq!(status, StatusCode::OK, "{kept}");
    assert_eq!((&kept["name"], &kept["has_key"]), (&json!("my/model"), &json!(true)));
    let listed = world.get("/api/connections").await;
    assert_eq!(listed["connections"], json!([kept]));
    let models = world.get("/api/models").await;
    assert_eq!(
        (&models["models"][0]["name"], &models["models"][0]["is_default"]),
        (&json!("my/model"), &json!(true))
    );
    for told in [&tried, &kept, &listed, &models] {
        assert!(!told.to_string().contains(KEY), "{told}");
    }
    let file = world.home.path().join(".hart/connections.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    // From now on, without a restart.
    other.push(Turn::new().text("Hello yourself."));
    let thread = world.thread().await;
    world.say(&thread, "Hello").await;
    assert_eq!(other.requests().len(), 3, "the list and the answer of the test, and the run");
    assert_eq!(other.last_request().header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(world.model.requests().len(), 0);

    let gone = world.call(Method::DELETE, "/api/connections/my%2Fmodel", Value::Null).await;
    assert_eq!(gone.0, StatusCode::NO_CONTENT);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(KEY));
    let (status, _) = world.call(Method::DELETE, "/api/connections/my%2Fmodel", Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_ne!(world.get("/api/models").await["models"][0]["name"], "my/model");
}

#[tokio::test]
async fn what_is_wrong_is_said_without_the_key() {
    let world = World::new([]).await;
    let other = ModelServer::start().await;
    let mut body = at(&other);
    let words = format!("Incorrect API key provided: {KEY}");
    other.push(Turn::status(401).body(json!({"error": {"message": words}})));
    let refused = world.post("/api/connections/test", body.clone()).await;
    assert_eq!((&refused["ok"], &refused["kind"]), (&json!(false), &json!("key")), "{refused}");
    assert!(!refused.to_string().contains(KEY), "{refused}");
    body["base_url"] = "http://127.0.0.1:1/v1".into();
    let nobody = world.post("/api/connections/test", body.clone()).await;
    assert_eq!((&nobody["ok"], &nobody["kind"]), (&json!(false), &json!("address")), "{nobody}");
    assert!(nobody["detail"].as_str().unwrap().contains("127.0.0.1:1"), "{nobody}");
    body["base_url"] = "nonsense".into();
    let (status, answer) = world.call(Method::PUT, "/api/connections/x", body.clone()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    for (provider, says) in [("nobody", "not known"), ("openai", "needs an API key"), ("", "needs `use`")] {
        let asked = json!({"provider": provider, "model": "m"});
        let answer = world.post("/api/connections/test", asked.clone()).await;
        assert_eq!(answer["kind"], "entry", "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(says), "{answer}");
        let (status, _) = world.call(Method::PUT, "/api/connections/x", asked).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    for name in ["a%20b", "%0a", "%3Cx"] {
        let (status, _) = world.call(Method::PUT, &format!("/api/connections/{name}"), at(&other)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
    }
}

#[tokio::test]
async fn a_kept_key_goes_to_its_own_address_only() {
    let world = World::new([]).await;
    let (home, thief) = (ModelServer::start().await, ModelServer::start().await);
    world.call(Method::PUT, "/api/connections/mine", at(&home)).await;
    let mut again = at(&home);
    again["name"] = "mine".into();
    again.as_object_mut().unwrap().remove("api_key");
    home.push(Turn::new().text("ready"));
    assert_eq!(world.post("/api/connections/test", again.clone()).await["ok"], true);
    assert_eq!(home.last_request().header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    thief.push(Turn::new().text("ready"));
    again["base_url"] = thief.openai_base().into();
    world.post("/api/connections/test", again.clone()).await;
    assert_eq!(thief.last_request().header("authorization"), None);
    // Moving it elsewhere leaves the key behind, too.
    let (_, moved) = world.call(Method::PUT, "/api/connections/mine", again).await;
    assert_eq!(moved["has_key"], false);
}

#[tokio::test]
async fn the_configuration_has_the_last_word_on_its_names() {
    let entry = json!({"name": "main", "use": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:1/v1"});
    let world = World::with(json!({"models": [entry]}), []).await;
    let (status, answer) = world.call(Method::PUT, "/api/connections/main", at(&world.model)).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(answer["detail"].as_str().unwrap().contains("the configuration has a model"), "{answer}");
}
