//! What the sections of the chain's parts say, as the model sees it.

use std::sync::Arc;

use hart_app::{Answer, Ask, Client, ClientBuilder, Mode, Resume};
use hart_testkit::{ModelServer, RecordedRequest, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A client with two models, `main` and `small`, on one scripted server.
struct World {
    home: TempDir,
    server: ModelServer,
}

impl World {
    async fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let server = ModelServer::start().await;
        server.push_all(turns);
        Self { home: tempfile::tempdir().unwrap(), server }
    }

    fn builder(&self, settings: Value) -> ClientBuilder {
        let model = |name: &str| {
            json!({"name": name, "use": "openai-compatible", "model": name, "api_key": "k",
                "base_url": self.server.openai_base(), "max_retries": 0})
        };
        let models = json!({"models": [model("main"), model("small")]});
        Client::builder().no_file().home(self.home.path()).config(models).config(settings)
    }

    async fn ask(&self, settings: Value, ask: impl Into<Ask>) -> Answer {
        self.builder(settings).build().unwrap().ask(ask).await.unwrap()
    }

    fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        self.server.requests()
    }

    /// How often each request holds the words.
    fn said(&self, words: &str) -> Vec<usize> {
        let count =
            |request: &Arc<RecordedRequest>| String::from_utf8_lossy(&request.raw).matches(words).count();
        self.requests().iter().map(count).collect()
    }
}

fn ls(id: &str) -> Turn {
    Turn::new().tool_call(id, "ls", json!({"description": "l", "path": "/mnt/user-data/workspace"}))
}

fn text(words: &str) -> Turn {
    Turn::new().text(words)
}

#[tokio::test]
async fn repetition_and_calls_are_bounded_as_configured() {
    for (warn, noted) in [(2, [0, 0, 1, 1]), (3, [0, 0, 0, 1])] {
        let world = World::new([ls("a"), ls("b"), ls("c"), text("done")]).await;
        world.ask(json!({"loop_detection": {"warn_threshold": warn}}), "go").await;
        assert_eq!(world.said("[LOOP DETECTED]"), noted);
    }
    let world = World::new([ls("a"), ls("b"), text("done")]).await;
    world.ask(json!({"call_limits": {"tools": {"ls": {"run_limit": 1}}}}), "go").await;
    let last = world.server.last_request();
    assert!(last.tool_result("b").unwrap().content.contains("limit"), "{:?}", last.tool_results());
    assert!(!last.tool_result("a").unwrap().content.contains("limit"));
}

#[tokio::test]
async fn titles_and_summaries_are_made_as_configured() {
    let world = World::new([text("one"), text("two"), text("Greetings among friends")]).await;
    let untitled = world.ask(json!({"title": {"enabled": false}}), "hello there").await;
    assert!(untitled.values.to_json().get("title").is_none());
    let titled = world.ask(json!({"title": {"model_name": "small", "max_words": 1}}), "hello there").await;
    assert_eq!(titled.values.to_json()["title"], "Greetings");
    assert_eq!(world.server.last_request().model(), "small");
    assert_eq!(titled.usage.total_tokens, 30, "the title's tokens are the run's");

    let world = World::new([text("one"), text("two"), text("They said hello."), text("three")]).await;
    let settings = json!({"summarization":
        {"model_name": "small", "trigger": {"messages": 5}, "keep": {"type": "messages", "value": 1}}});
    let long = "What is to be forgotten. ".repeat(200);
    for words in [long.as_str(), "second", "third"] {
        world.ask(settings.clone(), Ask::new(words).thread("t1")).await;
    }
    let models: Vec<String> = world.requests().iter().map(|request| request.model().to_owned()).collect();
    assert_eq!(models, ["main", "main", "small", "main"]);
    assert_eq!(world.said("They said hello."), [0, 0, 0, 1]);
    assert_eq!(
        world.said("/conversation_history/"),
        [0, 0, 0, 1],
        "it has a sandbox to put the history into"
    );
}

#[tokio::test]
async fn a_budget_pauses_or_ends_the_run_and_can_be_extended() {
    let world = World::new([ls("a"), text("done")]).await;
    let client = world.builder(json!({"budget": {"max_model_calls": 1}})).build().unwrap();
    let paused = client.ask(Ask::new("go").thread("t1")).await.unwrap();
    let question = &paused.interrupts()[0].value;
    assert_eq!(
        (&question["type"], &question["resource"]),
        (&json!("budget"), &json!("model_calls")),
        "{question}"
    );
    let more = Resume::from_json(json!({"extend": {"model_calls": 1}}));
    assert_eq!(client.resume("t1", more).await.unwrap().text, "done");

    let tokens = json!({"token_budget": {"enabled": true, "max_tokens": 10}});
    let paused = world.ask(tokens, "go").await;
    assert_eq!(paused.interrupts()[0].value["resource"], "tokens");
    let ends = json!({"token_budget": {"enabled": true, "max_tokens": 10}, "budget": {"on_limit": "end"}});
    assert!(world.ask(ends, "go").await.text.starts_with("[BUDGET]"));
    assert_eq!(world.requests().len(), 2, "nothing was asked that does not fit");
}

#[tokio::test]
async fn words_reach_the_model_as_configured() {
    let world = World::new([text("one"), text("two")]).await;
    world.ask(json!({}), "write to ada@example.org").await;
    let settings = json!({
        "input_sanitization": {"enabled": false},
        "dynamic_context": {"date": false, "lines": ["The office is in Oslo."]},
        "pii": {"rules": [{"type": "email"}]},
    });
    world.ask(settings, "write to ada@example.org").await;
    assert_eq!(world.said("BEGIN USER INPUT ---\\nwrite"), [1, 0]);
    assert_eq!(world.said("<current_date>"), [1, 0]);
    assert_eq!(world.said("The office is in Oslo."), [0, 1]);
    assert_eq!(world.said("ada@example.org"), [1, 0]);
    assert_eq!(world.said("[REDACTED_EMAIL]"), [0, 1]);
}

#[tokio::test]
async fn tools_come_and_go_as_configured() {
    let world = World::new((0..5).map(|_| text("ok"))).await;
    let off = json!({"enabled": false});
    world.ask(json!({}), Ask::new("go").mode(Mode::Flash)).await;
    world.ask(json!({"uploads": off, "view_image": off}), Ask::new("go").mode(Mode::Flash)).await;
    world.ask(json!({}), Ask::new("go").mode(Mode::Flash).plan_mode(true)).await;
    world.ask(json!({}), Ask::new("go").plan_mode(false)).await;
    let chosen = json!({"tool_selection": {"enabled": true, "max_tools": 1, "always_include": ["bash"]}});
    world.ask(chosen, Ask::new("list the folder")).await;
    let has = |name: &str| {
        let has = |request: &Arc<RecordedRequest>| request.tool_names().contains(&name);
        world.requests().iter().map(has).collect::<Vec<_>>()
    };
    assert_eq!(has("list_uploaded_files")[..2], [true, false]);
    assert_eq!(has("write_todos")[..4], [false, false, true, false]);
    assert!(
        has("bash")[4] && world.requests()[4].tool_names().len() < 5,
        "{:?}",
        world.requests()[4].tool_names()
    );
}

#[tokio::test]
async fn failures_and_refusals_are_shown_as_configured() {
    let refused = || Turn::new().text("No.").stop("content_filter");
    let world = World::new([refused(), refused(), Turn::status(400), Turn::status(400)]).await;
    assert!(world.ask(json!({}), "go").await.text.contains("declined"));
    let off = json!({"safety_finish_reason": {"enabled": false}, "token_usage": {"enabled": false}});
    let answer = world.ask(off, "go").await;
    assert_eq!(answer.text, "No.");
    assert!(answer.values.to_json().get("token_usage").is_none());
    for told in [false, true] {
        let settings = json!({"model_error": {"fallback_message": told}});
        let client = world.builder(settings).build().unwrap();
        client.ask(Ask::new("go").thread("t1")).await.unwrap_err();
        let state = Value::from(client.thread("t1").await.unwrap().values.to_json()).to_string();
        assert_eq!(state.contains("deerflow_error_fallback"), told, "{state}");
    }
}
