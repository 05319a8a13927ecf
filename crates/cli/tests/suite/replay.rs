//! DeerFlow's recorded run, played through `hart serve`: its clients find the frames and keys they know.

use std::collections::BTreeSet;

use hart_testkit::{Dialect, RecordedRequest, Turn};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::Served;

/// Parts of DeerFlow's state that hart's agent has no part for, or keeps to itself (`viewed_images`).
const NOT_THERE: [&str; 4] = ["delegations", "sandbox", "skill_context", "viewed_images"];
/// What DeerFlow shows empty from the start; hart's state has a key once something was written to it.
const ONCE_WRITTEN: [&str; 2] = ["artifacts", "uploaded_files"];

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
    let missing: Vec<String> = wanted(&golden[0]).difference(&keys(&frames[0].1)).cloned().collect();
    assert!(missing.is_empty(), "metadata lacks {missing:?}");
    let values: Vec<&Value> =
        frames.iter().filter(|(name, _)| *name == "values").map(|(_, data)| data).collect();
    let at_the_end = wanted(golden.iter().rfind(|event| event["event"] == "values").unwrap());
    let missing: Vec<&String> = at_the_end
        .iter()
        .filter(|key| !NOT_THERE.contains(&key.as_str()) && !ONCE_WRITTEN.contains(&key.as_str()))
        .filter(|key| !keys(values.last().unwrap()).contains(*key))
        .collect();
    assert!(missing.is_empty(), "values lack {missing:?}: {:?}", keys(values.last().unwrap()));
    let last = values.last().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().last().unwrap()["content"], "hi from replay.");
    assert!(last["title"].is_string());
}
