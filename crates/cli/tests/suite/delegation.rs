//! Subagents of the binary: what is shown of them, and what a `kill -9` in their middle does not undo.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hart_testkit::{Dialect, RecordedRequest, Turn};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::{Served, read_until};

const CONFIG: &str = "\
title: {enabled: false}
interrupt_on: {write_file: true}
subagents:
  enabled: true
  custom_agents:
    sloth: {description: Takes its time., timeout_seconds: 12}
";
const THREAD: &str = "0199a0b1-0000-7000-8000-000000000008";

fn task(prompt: &str, kind: &str) -> Value {
    json!({"description": format!("to {prompt}"), "prompt": prompt, "subagent_type": kind})
}

fn bash(file: &str) -> Turn {
    Turn::new().tool_call(
        "b",
        "bash",
        json!({"command": format!("echo once >> {file}"), "description": "write"}),
    )
}

fn is_lead(request: &RecordedRequest) -> bool {
    request.tool_names().contains(&"task")
}

fn prompt(request: &RecordedRequest) -> String {
    request.texts_of("user").first().cloned().unwrap_or_default()
}

/// Three at once. Before the kill those that have done something hang; after it one answers, one still hangs.
fn cast(request: &RecordedRequest, killed: bool) -> Turn {
    match (is_lead(request), prompt(request).as_str(), request.tool_results().len()) {
        (true, _, 0) => Turn::new()
            .tool_call("quick", "task", task("be quick", "general-purpose"))
            .tool_call("slow", "task", task("be slow", "sloth"))
            .tool_call("asks", "task", task("ask first", "general-purpose")),
        (true, ..) => Turn::new().text("All three are in."),
        (_, "be quick", 0) => bash("quick.log"),
        (_, "be quick", _) if killed => Turn::new().text("Quick."),
        (_, "be slow", 0) => bash("slow.log"),
        (_, "ask first", 0) => {
            let path = "/mnt/user-data/workspace/asked.txt";
            Turn::new().tool_call("w", "write_file", json!({"path": path, "content": "yes"}))
        }
        (_, "ask first", _) => Turn::new().text("Written."),
        _ => Turn::hang(),
    }
}

#[test]
fn three_subagents_go_on_where_they_were_when_the_server_was_killed() {
    let killed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&killed);
    let bench = Bench::answering(Dialect::OpenAi, move |request| cast(request, seen.load(Ordering::SeqCst)));
    bench.write("config.yaml", CONFIG);
    let served = Served::start(bench.hart());
    served.ask("POST", "/threads", "", &json!({"thread_id": THREAD}));
    let asked = json!({
        "assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "go"}]},
        "stream_mode": ["updates", "custom"], "stream_subgraphs": true,
    });
    let mut stream = served.request("POST", &format!("/threads/{THREAD}/runs/stream"), "", &asked);
    let told = read_until(&mut stream, "__interrupt__");
    assert!(told.contains("event: updates|tools:"), "{told}");
    assert_eq!(told.matches(r#""type":"task_started""#).count(), 3, "{told}");
    // The lead, two that were asked twice, and the one that waits.
    while bench.server.requests().len() < 6 {
        std::thread::sleep(Duration::from_millis(5));
    }
    served.process.kill();
    assert_eq!(served.process.wait().signal, Some(9));
    killed.store(true, Ordering::SeqCst);

    let served = Served::start(bench.hart());
    let ended = loop {
        let runs = served.ask("GET", &format!("/threads/{THREAD}/runs"), "", &json!({}));
        if !runs.contains(r#""status":"running""#) && !runs.contains(r#""status":"pending""#) {
            break runs;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(ended.contains(r#""status":"success""#), "{ended}");
    let state = served.ask("GET", &format!("/threads/{THREAD}/state"), "", &json!({}));
    assert!(state.contains("write_file") && state.contains("action_requests"), "{state}");

    let answer = json!({
        "assistant_id": "lead_agent", "command": {"resume": {"decisions": [{"type": "approve"}]}},
    });
    let done = served.ask("POST", &format!("/threads/{THREAD}/runs/wait"), "", &answer);
    assert!(done.contains("All three are in."), "{done}");
    let requests = bench.server.requests();
    let last = requests.last().unwrap();
    let result = |id: &str| last.tool_result(id).unwrap().content;
    assert_eq!(result("quick"), "Task Succeeded. Result: Quick.");
    assert!(result("slow").starts_with("Task timed out."), "{}", result("slow"));
    assert_eq!(result("asks"), "Task Succeeded. Result: Written.");

    // Nothing was done twice, and nobody was asked twice what was answered before.
    let files = bench.dir.path().join(format!(".hart/users/default/threads/{THREAD}/user-data/workspace"));
    for name in ["quick.log", "slow.log"] {
        assert_eq!(std::fs::read_to_string(files.join(name)).unwrap(), "once\n", "{name}");
    }
    assert_eq!(std::fs::read_to_string(files.join("asked.txt")).unwrap(), "yes");
    for begins in ["be quick", "be slow", "ask first"] {
        let first = requests.iter().filter(|request| !is_lead(request) && prompt(request) == begins);
        assert_eq!(first.filter(|request| request.tool_results().is_empty()).count(), 1, "{begins}");
    }
    assert_eq!(requests.iter().filter(|request| is_lead(request)).count(), 2);
    served.process.terminate();
    let _ = served.process.wait();
}

#[test]
fn a_subagent_is_a_line_when_it_begins_and_one_when_it_ends() {
    let bench =
        Bench::answering(Dialect::OpenAi, |request| match (is_lead(request), request.tool_results().len()) {
            (true, 0) => Turn::new().tool_call("a", "task", task("count the files", "counter")),
            (true, _) => Turn::new().text("There are none."),
            (false, _) => Turn::new().text("None.").usage(1000, 234),
        });
    bench.write("config.yaml", "title: {enabled: false}\nsubagents: {enabled: true}\n");
    std::fs::create_dir_all(bench.dir.path().join(".hart/agents")).unwrap();
    let file = "---\ndescription: Counts.\ntools: ls, glob\n---\nYou count files.\n";
    bench.write(".hart/agents/counter.md", file);
    bench.write(".hart/agents/broken.md", "no front matter");
    let ran = bench.run("how many files are there?").success();
    assert_eq!(ran.stdout, "There are none.\n");
    for line in ["▸ to count the files (counter)", "▪ to count the files: completed, 1.2k tokens"] {
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
    }
    assert!(ran.stderr.contains("broken.md: it does not begin with `---`"), "{}", ran.stderr);
    let requests = bench.server.requests();
    let child = requests.iter().find(|request| !is_lead(request)).unwrap();
    assert_eq!(child.tool_names(), ["ls", "glob"]);
    assert!(child.system().starts_with("You count files."));
}
