//! Run streams against what LangGraph's own server was recorded to say: the names of events, and the fields they have.

use std::path::PathBuf;
use std::time::Duration;

use hart_kernel::{ModelError, ModelErrorKind};
use hart_models::ScriptedTurn;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

/// What is compared by no test, and why.
const LEFT_OUT: [(&str, &str); 2] = [
    ("sse_nested_sub", "hart's agents have no graphs as nodes"),
    ("sse_error_tool", "a tool that fails ends no run of hart's: the model is told"),
];

/// What that server says about itself and about its tracing; and a second name of the namespace, which tools lack there.
const ITS_OWN: [&str; 11] = [
    "checkpoint_ns",
    "ls_integration",
    "ls_temperature",
    "lc_agent_name",
    "lc_versions",
    "run_attempt",
    "langgraph_version",
    "langgraph_api_version",
    "langgraph_plan",
    "langgraph_host",
    "langgraph_api_url",
];

fn recordings() -> Vec<String> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contracts/wire");
    let names = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".txt").map(str::to_owned))
        .filter(|name| name.starts_with("sse_"))
        .filter(|name| LEFT_OUT.iter().all(|(left_out, _)| left_out != name))
        .collect();
    names.sort();
    names
}

fn read(name: &str) -> String {
    let path = format!("{}/../../contracts/wire/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// What was asked there.
fn asked(recording: &str) -> Value {
    let body = recording.lines().filter_map(|line| line.strip_prefix("> ")).nth(1).unwrap();
    serde_json::from_str(body).unwrap()
}

pub(crate) fn frames(text: &str) -> Vec<(String, Value)> {
    let field =
        |block: &str, name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let blocks = text.replace("\r\n", "\n");
    let blocks = blocks.split("\n\n").filter_map(|block| {
        let data = serde_json::from_str(&field(block, "data: ")?).unwrap();
        Some((field(block, "event: ")?, data))
    });
    blocks.collect()
}

fn keys(value: &Value) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let mut keys: Vec<String> = fields.filter(|key| !ITS_OWN.contains(&key.as_str())).collect();
    keys.sort();
    keys
}

/// A place in it is told without what that server's configuration had.
fn checkpoint(data: &Value) -> String {
    let (about, next, values) = (&data["metadata"], &data["next"], keys(&data["values"]));
    format!("{:?} {about} {next} {values:?} {:?}", keys(data), keys(&data["tasks"][0]))
}

fn task(data: &Value) -> String {
    let input = keys(&data["input"]);
    format!("{:?} {} {input:?} {:?}", keys(data), data["name"], keys(&data["result"]))
}

/// The name without ids, and the fields of whatever has any.
fn shape((event, data): &(String, Value)) -> String {
    let node = |segment: &str| segment.split(':').next().unwrap_or_default().to_owned();
    let name: Vec<String> = event.split('|').map(node).collect();
    let fields = match name[0].as_str() {
        "messages" | "messages/partial" => {
            let fields = data.as_array().unwrap().iter().map(|part| format!("{:?}", keys(part)));
            format!("{} {}", data[1]["langgraph_step"], fields.collect::<String>())
        }
        "messages/metadata" => {
            let about = data.as_object().unwrap().values().next().unwrap();
            format!("{:?}", keys(&about["metadata"]))
        }
        "debug" => {
            let told = match data["type"].as_str().unwrap() {
                "checkpoint" => checkpoint(&data["payload"]),
                _ => task(&data["payload"]),
            };
            format!("{} {} {:?} {told}", data["step"], data["type"], keys(data))
        }
        "tasks" => task(data),
        "events" => format!("{} {:?}", data["event"], keys(data)),
        "checkpoints" => checkpoint(data),
        // That server tells whose run it is in a header alone.
        "metadata" => "[\"attempt\", \"run_id\"]".to_owned(),
        "updates" => {
            let update = data.as_object().unwrap().iter().next().unwrap();
            format!("{} {:?}", update.0, keys(update.1))
        }
        _ => format!("{:?} {}", keys(data), signed(data)),
    };
    format!("{} {fields}", name.join("|"))
}

/// Who said what.
fn signed(state: &Value) -> String {
    let said = state["messages"].as_array().into_iter().flatten();
    said.map(|message| format!("{} by {}, ", message["type"], message["name"])).collect()
}

fn shapes(frames: &[(String, Value)]) -> Vec<String> {
    let mut shapes: Vec<String> = frames.iter().map(shape).collect();
    shapes.dedup();
    shapes
}

/// What the recorded model does with such words.
fn turns(words: &str) -> Vec<ScriptedTurn> {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    match verb {
        "SAY" => vec![ScriptedTurn::text(rest)],
        "SLOW" => vec![ScriptedTurn::Hang],
        "FAIL" => vec![ModelError::new(ModelErrorKind::BadRequest, "m", "scripted failure").into()],
        _ => {
            let (tool, args) = rest.split_once(' ').unwrap();
            let args: Value = serde_json::from_str(args).unwrap();
            let inside = args["description"].as_str().map(turns).unwrap_or_default();
            let call = ScriptedTurn::call("call_1", tool, args.clone());
            [call].into_iter().chain(inside).chain([ScriptedTurn::text("Tool said: so")]).collect()
        }
    }
}

async fn heard(server: &Server, thread: &str, name: &str, body: &Value) -> Vec<(String, Value)> {
    let path = format!("/threads/{thread}/runs");
    let stream = server.request(Method::POST, &format!("{path}/stream")).body(body.to_string());
    let response = stream.send().await.unwrap();
    if name == "sse_cancelled" {
        while server.get(&format!("/threads/{thread}/state")).await["next"] != json!(["model"]) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let run = server.get(&path).await[0]["run_id"].as_str().unwrap().to_owned();
        server.call(Method::POST, &format!("{path}/{run}/cancel"), Value::Null).await;
    }
    let mut frames = frames(&response.text().await.unwrap());
    assert_eq!(frames.pop().map(|(event, _)| event).as_deref(), Some("end"), "{name}");
    frames
}

#[tokio::test]
async fn streams_have_the_recorded_events_and_fields() {
    let mut different = Vec::new();
    for name in recordings() {
        let recording = read(&name);
        let server = Server::playing(Vec::new()).await;
        let thread = server.thread().await;
        let body = match name.as_str() {
            "sse_resume" => {
                let before = asked(&read("sse_interrupt"));
                let words = before["input"]["messages"][0]["content"].as_str().unwrap().to_owned();
                turns(&words).into_iter().for_each(|turn| server.say(turn));
                server.post(&format!("/threads/{thread}/runs/wait"), before).await;
                asked(&recording)
            }
            _ => {
                let body = asked(&recording);
                let words = body["input"]["messages"][0]["content"].as_str().unwrap();
                turns(words).into_iter().for_each(|turn| server.say(turn));
                body
            }
        };
        let ours = heard(&server, &thread, &name, &body).await;
        for (event, data) in &ours {
            // Old clients tell by it which words are of an agent inside of a call.
            if let Some(("messages", inside)) = event.split_once('|') {
                let place = data[1]["langgraph_checkpoint_ns"].as_str().unwrap();
                assert!(place.starts_with(&format!("{inside}|model:")), "{place} in {inside}");
                assert_eq!(data[1]["checkpoint_ns"], inside);
            }
        }
        let (ours, theirs) = (shapes(&ours), shapes(&frames(&recording)));
        if ours != theirs {
            different.push(format!("{name}\n  hart: {ours:#?}\n  recorded: {theirs:#?}"));
        }
        server.close().await;
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[tokio::test]
async fn a_task_has_one_id_in_streams_and_states() {
    let server = Server::playing(Vec::new()).await;
    let thread = server.thread().await;
    turns(r#"CALL ask_human {"question": "Deploy?"}"#).into_iter().for_each(|turn| server.say(turn));
    let body = json!({
        "assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "go"}]},
        "stream_mode": ["tasks", "checkpoints"],
    });
    let frames = heard(&server, &thread, "", &body).await;
    let of = |name: &str| -> Vec<&Value> {
        frames.iter().filter(|(event, _)| event == name).map(|(_, data)| data).collect()
    };
    let (tasks, checkpoints) = (of("tasks"), of("checkpoints"));
    // The model's, as the state before it names it, when it begins and when it is done.
    assert_eq!(checkpoints[1]["tasks"][0]["id"], tasks[0]["id"]);
    assert_eq!(tasks[0]["id"], tasks[1]["id"]);
    // The call's, which is done with a question.
    assert_eq!(checkpoints[2]["tasks"][0]["id"], tasks[2]["id"]);
    assert_eq!((&tasks[3]["id"], &tasks[3]["name"]), (&tasks[2]["id"], &json!("tools")));
    assert_eq!(tasks[2]["input"][0]["name"], "ask_human");
    assert_eq!(tasks[3]["interrupts"][0]["value"], json!({"question": "Deploy?"}));
    let state = server.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["tasks"][0]["id"], tasks[2]["id"]);
    assert_eq!(checkpoints.last().unwrap()["tasks"][0]["id"], tasks[2]["id"]);
    let told = json!([{"id": tasks[3]["interrupts"][0]["id"], "value": tasks[3]["interrupts"][0]["value"]}]);
    assert_eq!(state["tasks"][0]["interrupts"], told);
    let threads = server.get(&format!("/threads/{thread}")).await;
    assert_eq!(threads["interrupts"][state["tasks"][0]["id"].as_str().unwrap()], told);
    // What came of a task is beside it in the history.
    let body = json!({"assistant_id": "agent", "command": {"resume": "yes"}, "stream_mode": "tasks"});
    let resumed = heard(&server, &thread, "", &body).await;
    let begun = resumed.iter().find(|(event, _)| event == "tasks").map(|(_, data)| &data["id"]);
    assert_eq!(begun, Some(&tasks[2]["id"]), "it goes on");
    let history = server.post(&format!("/threads/{thread}/history"), json!({"limit": 20})).await;
    let results: Vec<&Value> = history
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|state| state["tasks"].as_array().unwrap())
        .filter(|task| task["path"][0] == "__pregel_push" && !task["result"].is_null())
        .collect();
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!(results[0]["result"]["messages"][0]["tool_call_id"], "call_1");
    server.close().await;
}

/// What callers say about their runs is told wherever runs are told of.
#[tokio::test]
async fn what_is_said_about_a_run_is_said_in_its_stream() {
    let server = Server::new(&["hi"]).await;
    let thread = server.post("/threads", json!({"metadata": {"of_thread": 1}})).await;
    let thread = thread["thread_id"].as_str().unwrap();
    let body = json!({
        "assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "go"}]},
        "metadata": {"of_run": 3}, "stream_mode": ["messages-tuple", "tasks", "events"],
        "config": {"tags": ["q"], "run_name": "rn", "metadata": {"of_config": 2}},
    });
    let frames = heard(&server, thread, "", &body).await;
    let first = |name: &str| frames.iter().find(|(event, _)| event == name).map(|(_, data)| data).unwrap();
    for about in [&first("messages")[1], &first("tasks")["metadata"], &first("events")["metadata"]] {
        let said = ["of_thread", "of_config", "of_run", "created_by"].map(|key| about[key].clone());
        assert_eq!(said, [json!(1), json!(2), json!(3), json!("system")], "{about}");
    }
    assert_eq!(first("messages")[1]["tags"], json!(["q"]));
    let begins = first("events");
    assert_eq!((&begins["name"], &begins["tags"]), (&json!("rn"), &json!(["q"])));
    server.close().await;
}

/// A model inside of a call has its input told as the run's own has.
#[tokio::test]
async fn a_subagents_model_is_told_of_with_what_it_was_given() {
    let body = asked(&read("sse_subagent_sub"));
    let words = body["input"]["messages"][0]["content"].as_str().unwrap().to_owned();
    let server = Server::playing(turns(&words)).await;
    let thread = server.thread().await;
    let mut body = body;
    body["stream_mode"] = json!(["tasks"]);
    let frames = heard(&server, &thread, "", &body).await;
    let inside = frames.iter().find(|(event, data)| event.starts_with("tasks|") && data["name"] == "model");
    let given = &inside.expect("a task inside of the call").1["input"]["messages"];
    assert_eq!(given[0]["type"], "human", "{given}");
    server.close().await;
}

/// The mode `events` tells of them to everybody, as LangChain's does.
#[tokio::test]
async fn events_tell_of_subagents_without_being_asked() {
    let mut body = asked(&read("sse_subagent_sub"));
    let words = body["input"]["messages"][0]["content"].as_str().unwrap().to_owned();
    let server = Server::playing(turns(&words)).await;
    let thread = server.thread().await;
    (body["stream_mode"], body["stream_subgraphs"]) = (json!(["events", "updates"]), json!(false));
    let frames = heard(&server, &thread, "", &body).await;
    let models = frames.iter().filter(|(_, data)| data["event"] == "on_chat_model_start").count();
    assert_eq!(models, 3, "the run's own twice, and the subagent's");
    assert!(frames.iter().all(|(event, _)| !event.contains('|')), "nothing else of it");
    server.close().await;
}
