//! The event protocol at its HTTP boundary: what is replayed, what is filtered, what is refused.

use hart_kernel::{ModelError, ModelErrorKind};
use hart_models::ScriptedTurn;
use hart_testkit::eventually;
use reqwest::Method;
use serde_json::{Value, json};

use crate::lines::{Line, Lines};
use crate::support::Server;

const THREAD: &str = "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a001";

async fn open(server: &Server, filter: Value) -> Lines {
    let path = format!("/threads/{THREAD}/stream/events");
    Lines::open(server.request(Method::POST, &path).body(filter.to_string())).await
}

async fn command(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({"id": 7, "method": method, "params": params});
    let (status, answer) = server.call(Method::POST, &format!("/threads/{THREAD}/commands"), body).await;
    assert_eq!((status.as_u16(), &answer["id"]), (200, &json!(7)), "{answer}");
    answer
}

async fn start(server: &Server, text: &str) -> Value {
    let input = json!({"messages": [{"role": "user", "content": text}]});
    command(server, "run.start", json!({"assistant_id": "agent", "input": input})).await
}

fn ends(word: &'static str) -> impl Fn(&Line) -> bool {
    move |line| line.event == "lifecycle" && line.data["params"]["data"]["event"] == word
}

fn ids(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.data["event_id"].as_str().unwrap()).collect()
}

fn all() -> Value {
    let channels =
        ["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks", "checkpoints"];
    json!({ "channels": channels })
}

#[tokio::test]
async fn a_thread_is_replayed_with_the_same_ids_and_stays_open() {
    let turns = vec![
        ScriptedTurn::call("c", "get_weather", json!({"city": "Paris"})),
        ScriptedTurn::text("sunny"),
        ScriptedTurn::text("again"),
    ];
    let server = Server::playing(turns).await;
    let mut live = open(&server, all()).await;
    start(&server, "one").await;
    let mut told = live.until(ends("completed")).await;
    // After the run there is still a heart.
    while live.next().await.unwrap().event != ":" {}
    start(&server, "two").await;
    told.extend(live.until(ends("completed")).await);
    let seqs: Vec<u64> = told.iter().map(|line| line.data["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=told.len() as u64).collect::<Vec<_>>());
    for channel in ["updates", "custom", "tasks", "checkpoints"] {
        assert!(told.iter().any(|line| line.event == channel), "{channel}");
    }
    let last = ids(&told).last().unwrap().to_string();
    let mut again = open(&server, all()).await;
    assert_eq!(again.until(|line| line.data["event_id"] == last.as_str()).await, told);
    // Another filter gives the same events the same ids.
    let mut some = open(&server, json!({"channels": ["lifecycle", "checkpoints"]})).await;
    let some = some.until(|line| line.data["event_id"] == last.as_str()).await;
    let expected: Vec<&str> = told
        .iter()
        .filter(|line| ["lifecycle", "checkpoints"].contains(&line.event.as_str()))
        .map(|line| line.data["event_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids(&some), expected);
    // Whoever says what it has gets the rest.
    let mut filter = all();
    for since in [1, 5, told.len() - 1] {
        filter["since"] = since.into();
        let mut rest = open(&server, filter.clone()).await;
        assert_eq!(rest.until(|line| line.data["event_id"] == last.as_str()).await, told[since..]);
    }
    server.close().await;
}

#[tokio::test]
async fn a_run_that_fails_says_why_and_the_next_one_works() {
    let failure = ModelError::new(ModelErrorKind::BadRequest, "scripted", "no such thing");
    let server = Server::playing(vec![ScriptedTurn::from(failure), ScriptedTurn::text("fine")]).await;
    let mut lines = open(&server, json!({"channels": ["lifecycle"]})).await;
    start(&server, "one").await;
    let failed = lines.until(ends("failed")).await.pop().unwrap();
    assert!(failed.data["params"]["data"]["error"].as_str().unwrap().contains("no such thing"));
    start(&server, "two").await;
    lines.until(ends("completed")).await;
    server.close().await;
}

#[tokio::test]
async fn speaking_to_a_thread_that_asked_is_an_answer() {
    let turns = vec![
        ScriptedTurn::call("c", "ask_human", json!({"question": "Deploy?"})),
        ScriptedTurn::text("done"),
    ];
    let server = Server::playing(turns).await;
    let mut lines = open(&server, json!({"channels": ["lifecycle", "tools"]})).await;
    start(&server, "one").await;
    lines.until(ends("interrupted")).await;
    let params = json!({"assistant_id": "agent", "input": "yes"});
    assert_eq!(command(&server, "run.start", params).await["type"], "success");
    let told = lines.until(ends("completed")).await;
    let finished = told.iter().find(|line| line.data["params"]["data"]["event"] == "tool-finished").unwrap();
    assert_eq!(finished.data["params"]["data"]["output"]["content"], "Human answered: yes");
    server.close().await;
}

async fn wait_until_asked(server: &Server) {
    let is_asked = async || server.get(&format!("/threads/{THREAD}")).await["status"] == "interrupted";
    eventually("the question", async || is_asked().await.then_some(())).await;
}

#[tokio::test]
async fn what_is_wrong_with_a_command_is_told_in_its_answer() {
    let server = Server::playing(vec![ScriptedTurn::call("c", "ask_human", json!({"question": "?"}))]).await;
    let refused = |answer: Value| answer["error"].as_str().unwrap_or("none").to_owned();
    for (method, params, code) in [
        ("bogus", json!({}), "unknown_command"),
        ("state.get", json!({}), "unknown_command"),
        ("run.start", json!({"input": {}}), "invalid_argument"),
        ("run.start", json!({"assistant_id": "nobody"}), "invalid_argument"),
        ("run.start", json!({"assistant_id": "agent", "config": 1}), "invalid_argument"),
        ("run.start", json!({"assistant_id": "agent", "multitaskStrategy": "x"}), "invalid_argument"),
        ("input.respond", json!({"interrupt_id": "x", "response": 1}), "no_such_run"),
        ("subscription.subscribe", all(), "unsupported"),
        ("agent.getTree", json!({}), "unsupported"),
    ] {
        let answer = command(&server, method, params.clone()).await;
        assert_eq!(refused(answer), code, "{method} {params}");
    }
    start(&server, "ask").await;
    wait_until_asked(&server).await;
    for (params, code) in [
        (json!({"interrupt_id": "x", "response": 1}), "no_such_interrupt"),
        (json!({"response": 1}), "invalid_argument"),
        (json!({"responses": []}), "invalid_argument"),
    ] {
        assert_eq!(refused(command(&server, "input.respond", params).await), code);
    }
    let path = format!("/threads/{THREAD}/commands");
    for (body, key) in [("{\"method\":\"run.start\"}", "error"), ("{\"id\":\"1\"}", "error"), ("{", "detail")]
    {
        let response = server.request(Method::POST, &path).body(body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 400);
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert!(answer[key].is_string(), "{body}: {answer}");
    }
    let (status, answer) = server
        .call(Method::POST, &format!("/threads/{THREAD}/stream/events"), json!({"channels": ["zz"]}))
        .await;
    assert_eq!(status.as_u16(), 400);
    assert!(answer["detail"].as_str().unwrap().contains("zz"));
    let (status, _) = server.call(Method::POST, "/threads/no-uuid/stream/events", all()).await;
    assert_eq!(status.as_u16(), 422);
    server.close().await;
}

#[tokio::test]
async fn a_call_that_failed_is_an_error_and_no_result() {
    let turns = vec![ScriptedTurn::call("c", "nothing_of_the_kind", json!({})), ScriptedTurn::text("done")];
    let server = Server::playing(turns).await;
    let mut lines = open(&server, json!({"channels": ["lifecycle", "tools"], "namespaces": []})).await;
    start(&server, "one").await;
    let told = lines.until(ends("completed")).await;
    let failed = told.iter().find(|line| line.data["params"]["data"]["event"] == "tool-error").unwrap();
    assert_eq!(failed.data["params"]["data"]["tool_call_id"], "c");
    assert!(failed.data["params"]["data"]["message"].is_string());
    server.close().await;
}
