//! What is kept of a stream, for how long, and what a reader is told that asks for more.

use std::time::Duration;

use hart_models::ScriptedTurn;
use hart_runtime::Retention;
use reqwest::Method;
use serde_json::{Value, json};

use crate::lines::{Line, Lines};
use crate::support::Server;

fn says(text: &str, modes: &[&str]) -> Value {
    let input = json!({"messages": [{"role": "user", "content": text}]});
    json!({"assistant_id": "agent", "input": input, "stream_mode": modes})
}

async fn run(server: &Server, thread: &str, modes: &[&str]) -> (String, Vec<Line>) {
    let path = format!("/threads/{thread}/runs/stream");
    let mut lines =
        Lines::open(server.request(Method::POST, &path).body(says("go", modes).to_string())).await;
    let told = lines.until(|line| line.event == "end").await;
    let run = told[0].data["run_id"].as_str().unwrap().to_owned();
    (format!("/threads/{thread}/runs/{run}/stream"), told)
}

async fn again(server: &Server, way: &str, last: &str) -> Vec<Line> {
    let mut lines = Lines::open(server.request(Method::GET, way).header("last-event-id", last)).await;
    let mut told = Vec::new();
    while let Some(line) = lines.next().await {
        told.extend((line.event != ":").then_some(line));
    }
    told
}

#[tokio::test]
async fn where_a_reader_may_come_back_to() {
    let server = Server::playing(vec![ScriptedTurn::text("one two"), ScriptedTurn::text("three")]).await;
    let thread = server.thread().await;
    let (first, earlier) = run(&server, &thread, &["values"]).await;
    let (second, told) = run(&server, &thread, &["values", "messages-tuple"]).await;
    let last = told.last().unwrap().id.clone();
    // From the start, also for an id of an earlier run: all of this one came after it.
    for from in ["-1", "-", "0-0", earlier[1].id.as_str()] {
        assert_eq!(again(&server, &second, from).await, told, "from {from}");
    }
    assert_eq!(again(&server, &second, &told[2].id).await, told[3..]);
    assert_eq!(again(&server, &second, &last).await, []);
    // An id that this run never gave: of a later one, or of another server.
    for (way, from) in [(&first, last.as_str()), (&second, "1794703711537-99999999")] {
        let gap = again(&server, way, from).await;
        assert_eq!(gap.len(), 1, "from {from}");
        assert_eq!((gap[0].event.as_str(), gap[0].id.as_str()), ("gap", ""));
        assert_eq!(gap[0].data["code"], "stream_replay_gap");
        assert_eq!(gap[0].data["requested_event_id"], from);
        assert_eq!(gap[0].data["recovery"], "reload_durable_state");
        assert!(gap[0].data["latest_available_event_id"].is_string());
    }
    for malformed in ["abc", "1", "1-", "-2", "1-x", "1-2-3", "99999999999999999999-1", "\u{e9}"] {
        let request = server.request(Method::GET, &second).header("last-event-id", malformed.as_bytes());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 422, "{malformed}");
        assert!(answer.text().await.unwrap().contains("Invalid last-event-id"));
    }
    server.close().await;
}

#[tokio::test]
async fn what_was_forgotten_is_told_as_a_gap_and_the_thread_stays() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::over(dir.path(), vec![ScriptedTurn::text("one")], Retention::default()).await;
    let thread = server.thread().await;
    let (way, told) = run(&server, &thread, &["values"]).await;
    server.close().await;
    let soon = Retention { age: Duration::ZERO, every: Duration::from_millis(5) };
    let server = Server::over(dir.path(), vec![ScriptedTurn::text("two")], soon).await;
    let requested = told[1].id.as_str();
    for from in ["-1", requested] {
        // Until it is forgotten the stream is whole; in that very moment there is nothing.
        let gap = loop {
            let lines = again(&server, &way, from).await;
            if lines.len() == 1 {
                break lines;
            }
            assert!(lines.is_empty() || lines.last() == told.last(), "{lines:?}");
        };
        assert_eq!((gap[0].event.as_str(), &gap[0].data["requested_event_id"]), ("gap", &json!(from)));
        assert_eq!(gap[0].data["earliest_available_event_id"], Value::Null);
    }
    let joined = format!("/threads/{thread}/stream");
    assert_eq!(again(&server, &joined, requested).await[0].event, "gap");
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["values"]["messages"].as_array().unwrap().len(), 2);
    // Without a place to come back to, there is nothing to tell.
    let mut none = Lines::open(server.request(Method::GET, &way)).await;
    while let Some(line) = none.next().await {
        assert_eq!(line.event, ":", "a beat is all that may come");
    }
    server.close().await;
}

/// Whoever reads a stream that ends in the middle takes it for whole, if the connection does not tell.
#[tokio::test]
async fn what_cannot_be_read_breaks_the_stream_off() {
    let dir = tempfile::tempdir().unwrap();
    // More than one row holds, so that the damage is behind the stream's first frames.
    let long = "word ".repeat(20_000);
    let server = Server::over(dir.path(), vec![ScriptedTurn::text(long)], Retention::default()).await;
    let thread = server.thread().await;
    let (way, _) = run(&server, &thread, &["messages-tuple"]).await;
    server.close().await;
    let db = rusqlite::Connection::open(dir.path().join("hart.db")).unwrap();
    let middle = "SELECT first FROM events ORDER BY first LIMIT 1 OFFSET (SELECT count(*) / 2 FROM events)";
    let sql = format!(
        "UPDATE events SET text = CAST(replace(text, 'word', 'lord') AS BLOB) WHERE first = ({middle})"
    );
    assert_eq!(db.execute(&sql, []).unwrap(), 1);
    drop(db);
    let server = Server::over(dir.path(), Vec::new(), Retention::default()).await;
    let events = format!("/threads/{thread}/stream/events");
    for request in [
        server.request(Method::GET, &way).header("last-event-id", "-1"),
        server.request(Method::GET, &format!("/threads/{thread}/stream")).header("last-event-id", "-1"),
        server.request(Method::POST, &events).body(json!({"channels": ["messages"]}).to_string()),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        let whole = hart_testkit::in_time("the end of the stream", answer.text()).await;
        assert!(whole.is_err(), "{whole:?}");
    }
    server.close().await;
}

#[tokio::test]
async fn a_thread_that_nobody_uses_goes_when_its_time_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let often = Retention { every: Duration::from_millis(5), ..Retention::default() };
    let server = Server::over(dir.path(), Vec::new(), often).await;
    let made = async |ttl: Value| {
        let thread = server.post("/threads", json!({ "ttl": ttl })).await;
        format!("/threads/{}", thread["thread_id"].as_str().unwrap())
    };
    let (soon, later) = (made(json!(0.001)).await, made(json!({"ttl": 90, "strategy": "keep_latest"})).await);
    while server.call(Method::GET, &soon, Value::Null).await.0.as_u16() != 404 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(server.get(&later).await.get("ttl").is_none(), "it is told to whoever asks");
    let told = &server.get(&format!("{later}?include=ttl")).await["ttl"];
    assert_eq!((&told["strategy"], &told["ttl_minutes"]), (&json!("keep_latest"), &json!(90.0)));
    assert!(told["expires_at"].is_string());
    let (_, patched) = server.call(Method::PATCH, &later, json!({"ttl": 60})).await;
    assert!(patched["thread_id"].is_string(), "{patched}");
    let told = &server.get(&format!("{later}?include=ttl")).await["ttl"];
    assert_eq!((&told["strategy"], &told["ttl_minutes"]), (&json!("delete"), &json!(60.0)));
    server.close().await;
}

/// As recorded: what is left to do is done, and here nothing is.
#[tokio::test]
async fn an_answer_to_nothing_comes_to_the_state_as_it_is() {
    let server = Server::playing(vec![ScriptedTurn::text("hello")]).await;
    let thread = server.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let answer = json!({"assistant_id": "agent", "command": {"resume": "x"}});
    let refused = server.post(&wait, answer.clone()).await;
    assert!(refused["__error__"]["message"].as_str().unwrap().contains("waits for an answer"), "{refused}");
    let first = server.post(&wait, says("hi", &["values"])).await;
    assert_eq!(first["messages"].as_array().unwrap().len(), 2);
    assert_eq!(server.post(&wait, answer).await, first);
    assert_eq!(server.get(&format!("/threads/{thread}")).await["status"], "idle");
    server.close().await;
}

/// As recorded from LangGraph's server: what starts, what is streamed and what ends, under which names.
#[tokio::test]
async fn events_are_told_as_recorded() {
    let server = Server::playing(vec![
        ScriptedTurn::text("hi"),
        ScriptedTurn::call("c", "get_weather", json!({"city": "Paris"})),
        ScriptedTurn::text("sunny"),
    ])
    .await;
    let thread = server.thread().await;
    let (way, told) = run(&server, &thread, &["events"]).await;
    let events: Vec<&Value> =
        told.iter().filter(|line| line.event == "events").map(|line| &line.data).collect();
    let recorded = std::fs::read_to_string(format!(
        "{}/../../contracts/wire/sse_events.txt",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    let recorded: Vec<Value> = recorded
        .lines()
        .filter_map(|line| line.strip_prefix("data: {\"event\""))
        .map(|data| serde_json::from_str(&format!("{{\"event\"{data}")).unwrap())
        .collect();
    let shape = |event: &Value| {
        let keys = |value: &Value| {
            let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let parents = event["parent_ids"].as_array().unwrap().len();
        format!("{} {:?} {:?} {parents}", event["event"], keys(event), keys(&event["data"]))
    };
    let shapes = |events: &mut dyn Iterator<Item = &Value>| {
        let mut shapes: Vec<String> = events.map(shape).collect();
        shapes.dedup();
        shapes
    };
    assert_eq!(shapes(&mut events.iter().copied()), shapes(&mut recorded.iter()));
    let output = &events.last().unwrap()["data"]["output"]["messages"];
    assert_eq!(output.as_array().unwrap().len(), 2);
    // In its middle as well.
    for (at, line) in told.iter().enumerate() {
        assert_eq!(again(&server, &way, &line.id).await, told[at + 1..], "after {}", line.id);
    }
    let (_, told) = run(&server, &thread, &["events"]).await;
    let of_tool: Vec<&Line> = told
        .iter()
        .filter(|line| line.data["event"].as_str().is_some_and(|e| e.starts_with("on_tool")))
        .collect();
    assert_eq!(of_tool.len(), 2);
    assert_eq!(of_tool[0].data["name"], "get_weather");
    assert_eq!(of_tool[0].data["data"]["input"], json!({"city": "Paris"}));
    assert_eq!(of_tool[1].data["data"]["output"]["content"], "It is sunny in Paris.");
    assert_eq!(of_tool[0].data["run_id"], of_tool[1].data["run_id"]);
    server.close().await;
}

#[tokio::test]
async fn a_silent_stream_beats() {
    let server = Server::playing(vec![ScriptedTurn::Hang]).await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/runs/stream");
    let mut lines =
        Lines::open(server.request(Method::POST, &path).body(says("go", &["values"]).to_string())).await;
    lines.until(|line| line.event == "values").await;
    for _ in 0..3 {
        assert_eq!(lines.next().await.unwrap().event, ":");
    }
    assert_eq!(hart_gateway::Settings::default().heartbeat, Duration::from_secs(15));
    server.close().await;
}
