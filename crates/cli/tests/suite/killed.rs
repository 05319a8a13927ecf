//! `hart serve` itself, killed while its agents work: files count what they did.

use std::path::PathBuf;

use hart_testkit::{Dialect, RecordedRequest, Turn, eventually_here};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::{Served, read_until};

const THREAD: &str = "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a0ab";
const MARKS: [&str; 3] = ["one", "inside", "two"];

/// A call whose every making leaves a line.
fn mark(id: &str, mark: &str) -> Turn {
    let command = format!("echo {mark} >> ledger.txt");
    Turn::new().tool_call(id, "bash", json!({"description": "leave a mark", "command": command}))
}

/// A command, a subagent that has one of its own, another command.
fn answer(request: &RecordedRequest) -> Turn {
    let is_lead = request.tool_names().contains(&"task");
    match (is_lead, request.tool_results().len()) {
        (true, 0) => mark("first-call", "one"),
        (true, 1) => {
            let args = json!({"description": "a part", "prompt": "go", "subagent_type": "general-purpose"});
            Turn::new().tool_call("second-call", "task", args)
        }
        (true, 2) => mark("third-call", "two"),
        (true, _) => Turn::new().text("All is done."),
        (false, 0) => mark("inner-call", "inside"),
        (false, _) => Turn::new().text("My part is done."),
    }
}

fn asked() -> Value {
    json!({
        "assistant_id": "lead_agent", "if_not_exists": "create", "on_disconnect": "continue",
        "stream_mode": ["messages-tuple", "updates", "custom"], "stream_subgraphs": true,
        "input": {"messages": [{"role": "user", "content": "do it"}]},
    })
}

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let json = body.get(body.find('{').unwrap()..=body.rfind('}').unwrap()).unwrap();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn ledger(bench: &Bench) -> String {
    let files: PathBuf =
        bench.dir.path().join(format!(".hart/users/default/threads/{THREAD}/user-data/workspace"));
    std::fs::read_to_string(files.join("ledger.txt")).unwrap_or_default()
}

/// Each cell kills as soon as these words are in the stream.
#[test]
fn a_server_is_killed_while_its_agents_work_and_nothing_is_done_twice() {
    for words in
        ["event: metadata", "first-call", "second-call", "inner-call", "My part", "third-call", "All is"]
    {
        let bench = Bench::answering(Dialect::OpenAi, answer);
        bench.write("config.yaml", "title: {enabled: false}\nsubagents: {enabled: true}\n");
        let served = Served::start(bench.hart());
        let path = format!("/threads/{THREAD}/runs");
        let mut stream = served.request("POST", &format!("{path}/stream"), "", &asked());
        read_until(&mut stream, words);
        served.process.kill();
        let _ = served.process.wait();

        let served = Served::start(bench.hart());
        eventually_here("the run goes on to its end", || {
            let runs = served.ask("GET", &path, "", &Value::Null);
            assert!(!runs.contains("\"status\":\"error\""), "{words}: {runs}");
            runs.contains("\"status\":\"success\"").then_some(())
        });
        let state = body(&served.ask("GET", &format!("/threads/{THREAD}/state"), "", &Value::Null));
        let messages = state["values"]["messages"].as_array().unwrap();
        let results = messages.iter().filter(|message| message["type"] == "tool").count();
        let last = messages.last().and_then(|message| message["content"].as_str());
        assert_eq!((results, last), (3, Some("All is done.")), "{words}: {messages:#?}");
        let runs = served.ask("GET", &path, "", &Value::Null);
        let run = runs.split("\"run_id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let all = format!("{path}/{run}/stream?stream_mode=custom");
        let told = served.ask("GET", &all, "last-event-id: -1\r\n", &Value::Null);
        let is_unknown = told.contains("effect_unknown");
        for mark in MARKS {
            let count = ledger(&bench).lines().filter(|line| *line == mark).count();
            assert!(count == 1 || (count == 0 && is_unknown), "{words}: `{mark}` happened {count} times");
        }
        served.process.terminate();
        let _ = served.process.wait();
    }
}
