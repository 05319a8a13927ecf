//! DeerFlow's recorded run, played through `hart serve`: its clients find the frames and keys they know.

use std::collections::BTreeSet;

use hart_testkit::{Dialect, RecordedRequest, Turn};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::Served;

/// What of DeerFlow's state is not in hart's, each with the reason.
const NOT_THERE: [(&str, &str); 6] = [
    ("delegations", "a ledger of subagents, which this agent has none of"),
    ("sandbox", "the id of a container; hart's sandbox is found by the thread"),
    ("skill_context", "what skills were read, which this agent has none of"),
    ("viewed_images", "pictures as base64; hart keeps them to itself, and out of every frame"),
    ("artifacts", "nothing was handed over: hart's state has a key once something was written to it"),
    ("uploaded_files", "nothing was uploaded, as above"),
];
/// What hart's has beyond it, each with the reason.
const BEYOND: [(&str, &str); 2] = [
    ("todos", "the plan, which DeerFlow's state has once one was made"),
    ("token_usage", "what the run used so far"),
];
/// LangGraph's own server says which attempt it is, and DeerFlow's does not.
const BEYOND_IN_METADATA: [&str; 1] = ["attempt"];

fn contract(name: &str) -> Value {
    let path = format!("{}/../../contracts/deerflow/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What the recorded model said to this caller, by how far the conversation has come.
fn recorded_turn(scenario: &Value, request: &RecordedRequest) -> Turn {
    let is_agent = request.tool_names().contains(&"write_file");
    let caller = if is_agent { "lead_agent" } else { "middleware:title" };
    let turns = scenario["turns"].as_array().unwrap().iter().filter(|turn| turn["caller"] == caller);
    let output = &turns.clone().nth(request.tool_results().len()).unwrap()["output"]["data"];
    let turn = match output["content"].as_str().unwrap() {
        "" => Turn::new(),
        text => Turn::new().text(text),
    };
    output["tool_calls"].as_array().unwrap().iter().fold(turn, |turn, call| {
        turn.tool_call(call["id"].as_str().unwrap(), call["name"].as_str().unwrap(), call["args"].clone())
    })
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

#[test]
fn deerflows_recorded_run_gives_its_frames_and_keys() {
    let scenario = contract("write_read_file.ultra.json");
    let golden = contract("write_read_file.ultra.events.json");
    let played = scenario.clone();
    let bench = Bench::answering(Dialect::OpenAi, move |request| recorded_turn(&played, request));
    let served = Served::start(bench.hart());
    // As DeerFlow's frontend asks.
    let content = json!([{"type": "text", "text": scenario["prompt"]}]);
    let asked = json!({
        "assistant_id": "lead_agent", "stream_mode": ["values"], "if_not_exists": "create",
        "input": {"messages": [{"type": "human", "content": content, "additional_kwargs": {}}]},
        "config": {"recursion_limit": 1000}, "context": scenario["context"],
    });
    let path = "/api/langgraph/threads/0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a0de/runs/stream";
    let told = served.ask("POST", path, "", &asked);
    let fields = |name: &'static str| told.lines().filter_map(move |line| line.strip_prefix(name));
    let frames: Vec<(&str, Value)> =
        fields("event: ").zip(fields("data: ").map(|data| serde_json::from_str(data).unwrap())).collect();
    let names = |mut names: Vec<String>| {
        names.dedup();
        names
    };
    let golden = golden["events"].as_array().unwrap();
    let expected = golden.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names(frames.iter().map(|(name, _)| (*name).to_owned()).collect()), names(expected));
    let wanted = |event: &Value| -> BTreeSet<String> {
        serde_json::from_value::<BTreeSet<String>>(event["keys"].clone()).unwrap_or_default()
    };
    let beside = keys(&frames[0].1).difference(&wanted(&golden[0])).cloned().collect::<Vec<_>>();
    assert_eq!(beside, BEYOND_IN_METADATA, "{:?}", frames[0]);
    assert!(wanted(&golden[0]).is_subset(&keys(&frames[0].1)), "{:?}", frames[0]);
    let is = |list: &[(&str, &str)], key: &str| list.iter().any(|(name, _)| *name == key);
    let values: Vec<&Value> =
        frames.iter().filter(|(name, _)| *name == "values").map(|(_, data)| data).collect();
    // Keys in the order in which they come; hooks are nodes there, so a state is told more often.
    let theirs: Vec<_> = golden.iter().filter(|event| event["event"] == "values").map(wanted).collect();
    let ours: Vec<_> = values.iter().map(|state| keys(state)).collect();
    let theirs = order(&theirs).into_iter().filter(|key| !is(&NOT_THERE, key)).collect::<Vec<_>>();
    let (beyond, ours): (Vec<_>, Vec<_>) = order(&ours).into_iter().partition(|key| is(&BEYOND, key));
    assert_eq!(ours, theirs, "beside {beyond:?}");
    assert!(ours.iter().all(|key| !is(&NOT_THERE, key)), "an exception is needless: {ours:?}");
    let last = values.last().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().last().unwrap()["content"], "hi from replay.");
    assert!(last["title"].is_string());
    // One who speaks, one who calls, one who answers: the conversation itself is the recorded one.
    let kinds = last["messages"].as_array().unwrap().iter().filter_map(|message| message["type"].as_str());
    // The day's date is a message of its own, hidden from clients.
    let kinds: Vec<&str> = kinds.filter(|kind| *kind != "system").collect();
    assert_eq!(kinds, ["human", "ai", "tool", "ai", "tool", "ai"]);
    assert_eq!(frames.last().unwrap(), &("end", Value::Null));
}

/// Each key where it is first seen; one that is gone again is an error.
fn order(states: &[BTreeSet<String>]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for state in states {
        assert!(seen.iter().all(|key| state.contains(key)), "{seen:?} before {state:?}");
        seen.extend(state.iter().filter(|key| !seen.contains(key)).cloned().collect::<Vec<_>>());
    }
    seen
}
