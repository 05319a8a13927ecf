//! What a recording holds of a run: everything once, and no key.

use std::sync::Arc;

use hart_app::runtime::port::Store;
use hart_app::runtime::recording::Reel;
use hart_app::store::SqliteStore;
use hart_app::{Ask, Client, Env};
use hart_testkit::{ModelServer, Turn};
use serde_json::json;

const KEY: &str = "sk-proj-4f9aKq27LmZx81";
const OTHER: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123";

struct World {
    server: ModelServer,
    store: Arc<dyn Store>,
    client: Client,
    _dir: tempfile::TempDir,
}

async fn world(settings: serde_json::Value) -> World {
    let server = ModelServer::start().await;
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&dir.path().join("hart.db")).unwrap());
    let base = server.openai_base();
    let mut all = json!({
        "models": [{"name": "m", "use": "openai", "model": "m", "api_key": "$MY_KEY", "base_url": base}],
        "title": {"enabled": false},
    });
    for (key, value) in settings.as_object().unwrap() {
        all[key] = value.clone();
    }
    let client = Client::builder()
        .no_file()
        .config(all)
        .env(Env::from_iter([("MY_KEY", KEY)]))
        .home(dir.path())
        .store(Arc::clone(&store))
        .build()
        .unwrap();
    World { server, store, client, _dir: dir }
}

impl World {
    /// All that is recorded of a run, as text.
    async fn recorded(&self, run: &hart_app::types::RunId) -> String {
        let records = self.store.records(run).await.unwrap();
        records.iter().map(|record| String::from_utf8_lossy(&record.payload).into_owned()).collect()
    }
}

#[tokio::test]
async fn no_key_is_recorded_however_it_comes() {
    let world = world(json!({})).await;
    let (half, rest) = KEY.split_at(9);
    let command = json!({"description": "say it", "command": format!("echo {KEY}; echo {OTHER}")});
    world.server.push_all([
        Turn::new().text_fragments(["The key is ", half, rest, "."]).tool_call("c1", "bash", command),
        Turn::new().text("Done."),
    ]);
    let answer = world.client.ask(Ask::new(format!("use {KEY} and {OTHER}")).thread("t")).await.unwrap();
    let recorded = world.recorded(&answer.run).await;
    assert!(recorded.contains("[redacted]") && recorded.contains("The key is "), "{recorded}");
    for secret in [KEY, OTHER, rest] {
        assert!(!recorded.contains(secret), "{secret} is in: {recorded}");
    }
    let reel = Reel::load(world.store.as_ref(), &answer.run).await.unwrap();
    assert_eq!((reel.steps(), reel.sums().tool_calls), (3, 1));
    world.client.close().await;
}

#[tokio::test]
async fn what_a_turn_records_does_not_grow_with_the_conversation() {
    let world = world(json!({})).await;
    let mut sizes = Vec::new();
    for turn in 0..12 {
        world.server.push_all([
            Turn::new().tool_call(
                format!("c{turn}"),
                "bash",
                json!({"description": "d", "command": "echo hi"}),
            ),
            Turn::new().text(format!("{turn}: {}", "words ".repeat(800))),
        ]);
        let said = format!("{turn}: {}", "more ".repeat(800));
        let answer = world.client.ask(Ask::new(said).thread("t")).await.unwrap();
        sizes.push(world.recorded(&answer.run).await.len());
    }
    let (second, last) = (sizes[1], sizes[11]);
    assert!(last < second + 2_000, "a turn says 8 kB, and these are recorded: {sizes:?}");
    world.client.close().await;
}

/// What a subagent does is not recorded; what it used is known all the same.
#[tokio::test]
async fn what_subagents_use_is_in_the_sums() {
    let world = world(json!({"subagents": {"enabled": true}})).await;
    let task = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    world.server.push_all([
        Turn::new().tool_call("c1", "task", task).usage(10, 1),
        Turn::new().text("From inside.").usage(1000, 100),
        Turn::new().text("Done.").usage(20, 2),
    ]);
    let answer = world.client.ask(Ask::new("go").thread("t")).await.unwrap();
    let sums = Reel::load(world.store.as_ref(), &answer.run).await.unwrap().sums();
    assert_eq!((sums.model_calls, sums.usage.input_tokens, sums.usage.output_tokens), (2, 30, 3));
    let all = &sums.in_all;
    assert_eq!((all.model_calls, all.usage.input_tokens, all.usage.output_tokens), (3, 1030, 103));
    world.client.close().await;
}

#[tokio::test]
async fn recording_can_be_switched_off() {
    let world = world(json!({"recording": {"enabled": false}})).await;
    world.server.push_all([Turn::new().text("hello")]);
    let answer = world.client.ask(Ask::new("hello").thread("t")).await.unwrap();
    assert_eq!(world.recorded(&answer.run).await, "");
    world.client.close().await;
}
