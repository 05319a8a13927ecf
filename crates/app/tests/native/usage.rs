//! What runs have used, for charts.

use hart_testkit::Turn;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::World;

#[tokio::test]
async fn usage_is_told_by_day_model_and_thread() {
    let answer = |tokens: u64| Turn::new().text("Done.").usage(tokens, 5);
    let settings = |base: &str| {
        let pricing = json!({"input_per_million": 1_000_000.0, "output_per_million": 0.0});
        let entry = json!({
            "name": "priced", "use": "openai-compatible", "model": "m", "base_url": base, "pricing": pricing,
        });
        json!({"models": [entry], "title": {"enabled": false}})
    };
    let world = World::configured(settings, [answer(10), answer(20), answer(30)]).await;
    let (one, two) = (world.thread().await, world.thread().await);
    world.say(&one, "First").await;
    world.say(&one, "Second").await;
    world.say(&two, "Third").await;
    world.call(Method::PATCH, &format!("/threads/{one}"), json!({"metadata": {"title": "Mine"}})).await;
    let usage = world.get("/api/console/usage?days=7&utc_offset=60").await;
    let days = usage["days"].as_array().unwrap();
    assert_eq!(days.len(), 7);
    let sum = |key: &str| days.iter().filter_map(|day| day[key].as_f64()).sum::<f64>();
    assert_eq!((sum("total_tokens"), sum("runs"), sum("cost")), (75.0, 3.0, 60.0), "{usage}");
    assert_eq!(usage["total"]["total_tokens"], 75);
    assert_eq!(usage["by_model"]["priced"]["total_tokens"], 75, "{usage}");
    assert_eq!(usage["by_model"]["priced"]["llm_call_count"], 3);
    assert_eq!(usage["by_model"]["priced"]["cost"], 60.0);
    let mut threads: Vec<(&Value, &Value)> = Vec::new();
    for thread in usage["by_thread"].as_array().unwrap() {
        threads.push((&thread["title"], &thread["total_tokens"]));
    }
    assert_eq!(threads, [(&json!("Mine"), &json!(40)), (&Value::Null, &json!(35))]);
    for wrong in ["days=0", "days=x", "days=100000", "utc_offset=9999"] {
        let (status, answer) =
            world.call(Method::GET, &format!("/api/console/usage?{wrong}"), Value::Null).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}: {answer}");
    }
}
