//! Agents of the user's own, from a command and from a server.

use std::fs;

use hart_testkit::{RecordedRequest, Turn};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::Served;

fn write(bench: &Bench, file: &str, text: &str) {
    let path = bench.dir.path().join(".hart/agents").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn bench(answers: usize) -> Bench {
    let bench = Bench::with((0..answers).map(|n| Turn::new().text(format!("answer {n}"))));
    bench.write("config.yaml", "title: {enabled: false}\n");
    write(&bench, "poet/SOUL.md", "You speak in rhymes.");
    write(
        &bench,
        "poet/config.yaml",
        "description: Rhymes.\ntool_groups: [file:read]\nskills: [deep-research]\n",
    );
    bench
}

/// The names of the tools that the model was offered.
fn tools(request: &RecordedRequest) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn souls(request: &RecordedRequest) -> bool {
    request.body["messages"][0].to_string().contains("You speak in rhymes.")
}

#[test]
fn a_task_is_given_to_an_agent_by_its_name() {
    let bench = bench(2);
    let hart = |args: &[&str]| bench.hart().args(args.iter().copied()).run();
    hart(&["run", "--agent", "Poet", "rain"]).success().stdout.clear();
    let asked = bench.server.last_request();
    let offered = tools(&asked);
    assert!(souls(&asked), "{}", asked.body["messages"][0]);
    assert!(offered.iter().any(|name| name == "read_file"), "{offered:?}");
    assert!(!offered.iter().any(|name| name == "bash" || name == "write_file"), "{offered:?}");
    let knows = |request: &RecordedRequest, skill: &str| request.body.to_string().contains(skill);
    assert!(knows(&asked, "deep-research") && !knows(&asked, "chart-making"), "{}", asked.body);
    hart(&["run", "rain"]).success().stdout.clear();
    let lead = bench.server.last_request();
    assert!(!souls(&lead) && tools(&lead).iter().any(|name| name == "bash"));
    assert!(knows(&lead, "chart-making"));

    let served = Served::start(bench.hart());
    let server = format!("http://{}", served.address);
    for at in [&[][..], &["--server", server.as_str()]] {
        let refused = hart(&[&["run", "--agent", "nobody", "x"], at].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("there is no agent `nobody`"), "{}", refused.stderr);
    }
    assert_eq!(bench.server.requests().len(), 2);
}

#[test]
fn a_server_sees_a_new_folder_at_the_next_request_and_passes_over_a_broken_one() {
    let bench = bench(3);
    let served = Served::start(bench.hart());
    let ask = |path: &str, body: Value| -> String { served.ask("POST", path, "", &body) };
    let found = ask("/assistants/search", json!({"graph_id": "poet"}));
    assert!(found.contains("Rhymes."), "{found}");

    write(&bench, "critic/SOUL.md", "You speak in rhymes. Not.");
    write(&bench, "broken/config.yaml", "tool_groups: [everything]\n");
    let says = |assistant: &str, context: Value| {
        let input = json!({"messages": [{"role": "user", "content": "hello"}]});
        json!({"assistant_id": assistant, "input": input, "context": context})
    };
    for (assistant, context) in
        [("critic", json!({})), ("poet", json!({})), ("lead_agent", json!({"agent_name": "poet"}))]
    {
        let answer = ask("/runs/wait", says(assistant, context));
        assert!(answer.contains("answer "), "{assistant}: {answer}");
        assert!(souls(&bench.server.last_request()), "{assistant}");
    }
    let refused = ask("/runs/wait", says("broken", json!({})));
    assert!(refused.starts_with("HTTP/1.1 422"), "{refused}");
    let beside = ask("/runs/wait", says("lead_agent", json!({"agent_name": "broken"})));
    assert!(beside.contains("there is no agent `broken`; there is: lead_agent, critic, poet"), "{beside}");

    fs::remove_dir_all(bench.dir.path().join(".hart/agents/critic")).unwrap();
    assert!(ask("/runs/wait", says("critic", json!({}))).starts_with("HTTP/1.1 422"));
    served.process.terminate();
    let ended = served.process.wait().success();
    assert_eq!(ended.stderr.matches("an agent cannot be used").count(), 1, "{}", ended.stderr);

    fs::create_dir(bench.dir.path().join(".hart/agents/lost")).unwrap();
    bench.write(".hart/agents/lost/config.yaml", "model: nowhere\n");
    let doctor = bench.hart().arg("doctor").run();
    let said = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(said.contains("no run of lost can begin: there is no model `nowhere`"), "{said}");
    assert!(said.contains("poet") && said.contains("there is no tool group `everything`"), "{said}");
}
