//! Delegation as it is configured: who is there, what is refused, agents on other servers.

use std::time::Duration;

use hart_app::agent::Subagent;
use hart_app::config::{AppConfig, LoadOptions};
use hart_app::{App, Ask, CancellationToken, Client, Env, Server};
use hart_testkit::{ModelServer, RecordedRequest, Turn};
use serde_json::{Value, json};
use tokio::task::JoinSet;

fn env(model: &ModelServer) -> Env {
    Env::from_iter([
        ("HART_NO_PROBE", "1"),
        ("OPENAI_API_KEY", "k"),
        ("OPENAI_BASE_URL", &model.openai_base()),
    ])
}

fn settings(subagents: &Value) -> Value {
    // Whoever polls a server that takes its time is no loop here.
    json!({"title": {"enabled": false}, "loop_detection": {"enabled": false}, "subagents": subagents})
}

fn client(model: &ModelServer, home: &tempfile::TempDir, subagents: &Value) -> Client {
    let builder = Client::builder().no_file().home(home.path()).env(env(model)).config(settings(subagents));
    let mine =
        Subagent::builder("mine", "Of the program.").prompt("You are mine.").tools(["ls"]).build().unwrap();
    builder.subagent(mine).build().unwrap()
}

fn task(kind: &str) -> Turn {
    Turn::new().tool_call("a", "task", json!({"description": "d", "prompt": "p", "subagent_type": kind}))
}

fn is_lead(request: &RecordedRequest) -> bool {
    request.tool_names().contains(&"ask_clarification")
}

#[tokio::test]
async fn who_delegates_is_configured_and_chosen() {
    for (enabled, mode, option, delegates) in [
        (json!({}), "pro", None, false),
        (json!({}), "ultra", None, true),
        (json!({}), "ultra", Some(false), false),
        (json!({}), "pro", Some(true), true),
        (json!({"enabled": true}), "pro", None, true),
        (json!({"enabled": true}), "pro", Some(false), false),
        (json!({"enabled": false}), "ultra", Some(true), false),
    ] {
        let model = ModelServer::start().await;
        model.push(Turn::new().text("hi"));
        let home = tempfile::tempdir().unwrap();
        let mut ask = Ask::new("hello").mode(mode);
        if let Some(on) = option {
            ask = ask.option("subagent_enabled", on);
        }
        client(&model, &home, &enabled).chat(ask).await.unwrap();
        let has = model.last_request().tool_names().contains(&"task");
        assert_eq!(has, delegates, "{enabled} {mode} {option:?}");
    }
}

#[tokio::test]
async fn a_run_asks_for_fewer_subagents_and_never_gets_more() {
    // Two in one answer, then one more.
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => ["a", "b"].iter().fold(Turn::new(), |turn, id| {
            let args = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
            turn.tool_call(*id, "task", args)
        }),
        (true, 2) => task("general-purpose"),
        (true, _) => Turn::new().text("Done."),
        _ => Turn::new().text("Report."),
    };
    for (options, sent, says) in [
        (json!({}), 2, "2 delegations are the limit of a run"),
        (json!({"max_total_subagents": 1}), 1, "1 delegations are the limit of a run"),
        (json!({"max_total_subagents": 40}), 2, "2 delegations are the limit of a run"),
        (json!({"max_concurrent_subagents": 1}), 1, "1 delegations are the limit of an answer"),
    ] {
        let model = ModelServer::with(answers).await;
        let home = tempfile::tempdir().unwrap();
        let configured = json!({"enabled": true, "max_total_per_run": 2, "on_excess": "refuse"});
        let mut ask = Ask::new("go");
        for (key, value) in options.as_object().unwrap() {
            ask = ask.option(key, value.clone());
        }
        client(&model, &home, &configured).chat(ask).await.unwrap();
        let requests = model.requests();
        let first = requests.iter().find(|request| is_lead(request) && request.tool_results().len() == 2);
        let made =
            first.unwrap().tool_results().iter().filter(|made| made.content.contains("Report.")).count();
        assert_eq!(made, sent, "{options}");
        let last = model.last_request();
        let told: String = last.tool_results().iter().map(|made| made.content.clone()).collect();
        assert!(told.contains(says), "{options}: {told}");
    }

    let home = tempfile::tempdir().unwrap();
    let ask = Ask::new("go").option("max_total_subagents", "many");
    let error = client(&ModelServer::start().await, &home, &json!({})).chat(ask).await.unwrap_err();
    assert!(error.to_string().contains("write a whole number"), "{error}");
}

#[tokio::test]
async fn those_of_files_configuration_and_program_are_there() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => task("reviewer"),
        (true, _) => Turn::new().text("Done."),
        _ => Turn::new().text("Reviewed."),
    };
    let model = ModelServer::with(answers).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("agents")).unwrap();
    let file = "---\ndescription: From a file.\ntools: [ls]\n---\nYou are of a file.";
    std::fs::write(home.path().join("agents/reviewer.md"), file).unwrap();
    std::fs::write(home.path().join("agents/other.md"), file).unwrap();
    let configured = json!({
        "enabled": true,
        "agents": {"general-purpose": {"max_turns": 3}, "reviewer": {"timeout_seconds": 60}},
        "custom_agents": {"reviewer": {
            "description": "Configured.", "system_prompt": "You are configured.", "tools": ["read_file", "web_search"],
            "model": "inherit", "skills": ["chart-making", "x"],
        }},
    });
    client(&model, &home, &configured).chat(Ask::new("go")).await.unwrap();
    let requests = model.requests();
    let lead = requests[0].system();
    for line in [
        "- general-purpose:",
        "- bash:",
        "- reviewer: Configured.",
        "- other: From a file.",
        "- mine: Of the",
    ] {
        assert!(lead.contains(line), "{line} in {lead}");
    }
    assert_eq!(requests[1].tool_names(), ["read_file"], "what is not there is passed over");
    let child = requests[1].system();
    assert!(child.starts_with("You are configured.") && child.contains("- chart-making: "), "{child}");
    assert!(
        lead.contains("- data-analysis: ") && !child.contains("- data-analysis: "),
        "of all only those it names"
    );
}

#[tokio::test]
async fn a_file_says_which_files_it_may_write_and_what_its_report_looks_like() {
    let rules = "{rules: [{operations: [write], paths: ['/mnt/user-data/outputs/**'], mode: deny}]}";
    let file = |tools: &str| {
        format!(
            "---\ndescription: Counts.\ntools: {tools}\npermissions: {rules}\nresponse_format: {{type: object, \
             required: [count], properties: {{count: {{type: integer}}}}}}\n---\nYou count."
        )
    };
    let write = json!({"description": "d", "path": "/mnt/user-data/outputs/x.txt", "content": "x"});
    let answers = move |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => task("counter"),
        (true, _) => Turn::new().text("Done."),
        (_, 0) => Turn::new().tool_call("w", "write_file", write.clone()),
        _ => Turn::new().text("many"),
    };
    let model = ModelServer::with(answers).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("agents")).unwrap();
    std::fs::write(home.path().join("agents/counter.md"), file("[ls, write_file]")).unwrap();
    std::fs::write(home.path().join("agents/other.md"), file("[bash]")).unwrap();
    client(&model, &home, &json!({"enabled": true})).chat(Ask::new("go")).await.unwrap();
    let requests = model.requests();
    assert!(!requests[0].system().contains("- other:"), "rules that a command passes are none");
    let refused = &requests[2].tool_results()[0];
    assert!(refused.content.contains("denied"), "{refused:?}");
    let reported =
        requests.iter().rev().find(|request| is_lead(request)).unwrap().tool_results()[0].content.clone();
    assert!(reported.contains("its report is not the JSON that was asked for"), "{reported}");
}

#[tokio::test]
async fn a_subagent_says_what_of_the_chain_it_has() {
    // Here nobody is held up in a loop, unless that is said; and the date is the agent's alone.
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => ["careful", "plain"].into_iter().fold(Turn::new(), |turn, kind| {
            let args = json!({"description": "d", "prompt": "p", "subagent_type": kind});
            turn.tool_call(kind, "task", args)
        }),
        (true, _) => Turn::new().text("Done."),
        (false, n) if n > 8 || request.body["tool_choice"] == "none" => Turn::new().text("Always the same."),
        (false, n) => Turn::new().tool_call(format!("l{n}"), "ls", json!({"path": "/mnt/user-data"})),
    };
    let model = ModelServer::with(answers).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("agents")).unwrap();
    let file = |name: &str, middleware: &str| {
        let text = format!("---\ndescription: d\n{middleware}---\nYou are {name}.");
        std::fs::write(home.path().join(format!("agents/{name}.md")), text).unwrap();
    };
    file("careful", "middleware: {loop_detection: true}\n");
    file("plain", "");
    file("wrong", "middleware: {loop_detecton: false}\n");
    let over = json!({"enabled": true, "agents": {"careful": {"middleware": {"dynamic_context": true}}}});
    client(&model, &home, &over).chat(Ask::new("go")).await.unwrap();
    let requests = model.requests();
    let of = |name: &str| requests.iter().rfind(|request| request.system().starts_with(name)).unwrap();
    let (careful, plain) = (of("You are careful."), of("You are plain."));
    let knows_the_date = |request: &RecordedRequest| {
        request.texts_of("user").iter().any(|text| text.contains("<current_date>"))
    };
    assert!(knows_the_date(careful) && !knows_the_date(plain), "{:?}", careful.texts_of("user"));
    let lead = model.last_request();
    let report = |id: &str| lead.tool_result(id).unwrap().content;
    assert!(report("careful").contains("loop_capped"), "{}", report("careful"));
    assert_eq!(report("plain"), "Task Succeeded. Result: Always the same.");
    assert!(!lead.system().contains("- wrong:"), "one that names what is not there is left out");
}

fn skill(home: &tempfile::TempDir, name: &str, front: &str, agents: &str) {
    let folder = home.path().join("skills/custom").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: About {name}.\n{front}---\nThe method.\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    std::fs::write(folder.join("agents.yaml"), agents).unwrap();
}

#[tokio::test]
async fn a_skill_brings_its_subagents_along_while_it_is_on() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) if request.system().contains("- checker:") => task("checker"),
        (true, _) => Turn::new().text("Done."),
        _ => Turn::new().text("Checked."),
    };
    let model = ModelServer::with(answers).await;
    let home = tempfile::tempdir().unwrap();
    let checker =
        "checker: {description: Checks facts., system_prompt: You check., tools: [Read, bash], skills: []}\n";
    skill(&home, "facts", "allowed-tools: [read_file, task]\n", checker);
    // None of these names is free.
    let taken = "bash: {description: X1, system_prompt: p}\nmine: {description: X2, system_prompt: p}\n\
                 rev: {description: X3, system_prompt: p}\nchecker: {description: X4, system_prompt: p}\n\
                 other: {description: Free., system_prompt: p, model: nowhere}\n";
    skill(&home, "takes", "", taken);
    let configured =
        json!({"enabled": true, "custom_agents": {"rev": {"description": "Reviews.", "system_prompt": "r"}}});
    let client = client(&model, &home, &configured);
    client.chat(Ask::new("go")).await.unwrap();
    let requests = model.requests();
    let lead = requests[0].system();
    assert!(lead.contains("- checker: Checks facts.") && lead.contains("- rev: Reviews."), "{lead}");
    for none in ["X1", "X2", "X3", "X4", "- other:"] {
        assert!(!lead.contains(none), "{none} in {lead}");
    }
    assert_eq!(requests[1].tool_names(), ["read_file"], "what it wants and its skill allows");
    assert!(requests[1].system().starts_with("You check.") && !requests[1].system().contains("<skills>"));

    // Switched off, held back: gone with the next run; and back with one.
    let states = home.path().join("extensions_config.json");
    let lead = async || {
        client.chat(Ask::new("go")).await.unwrap();
        let requests = model.requests();
        requests.iter().rev().find(|request| is_lead(request)).unwrap().system()
    };
    std::fs::write(&states, r#"{"skills": {"facts": {"enabled": false}}}"#).unwrap();
    let told = lead().await;
    assert!(!told.contains("Checks facts.") && told.contains("- checker: X4"), "{told}");
    std::fs::write(&states, r#"{"skills": {"takes": {"enabled": false}}}"#).unwrap();
    assert!(lead().await.contains("- checker: Checks facts."));
    skill(&home, "facts", "", "checker: {description: Changed behind its back., system_prompt: p}\n");
    let told = lead().await;
    assert!(!told.contains("- checker:"), "what is held back brings nobody: {told}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let yaml = "models:\n  - {name: small, use: ollama, model: m}\nsubagents:\n  max_concurrent: 0\n  custom_agents:\n    \
                a: {system_prompt: x}\n    b: {description: d, model: smal}\n  remote:\n    far: {url: here, graph_id: g}\n";
    std::fs::write(dir.path().join("config.yaml"), yaml).unwrap();
    let env = Env::from_iter([("HART_NO_PROBE", "1")]);
    let load = || LoadOptions { path: None, cwd: dir.path().to_owned(), env: &env, overrides: None };
    let report = AppConfig::check(load());
    let text: String = report.problems.iter().map(|problem| format!("{problem}\n")).collect();
    assert!(text.contains("subagents.max_concurrent"), "{text}");
    std::fs::write(dir.path().join("config.yaml"), yaml.replace("  max_concurrent: 0\n", "")).unwrap();
    let report = AppConfig::check(load());
    let text: String = report.problems.iter().map(|problem| format!("{problem}\n")).collect();
    let more = "subagents:\n  token_budget: {max_tokns: 5}\n  agents:\n    nobody: {max_turns: 3}\n    bash: {tools: [ls]}\n  \
                custom_agents:\n    bad name!: {description: d}\n    c: {description: d, timeout_seconds: -1}\n    \
                e: {description: d, middleware: {loop_detecton: false}}\n    \
                d: {description: d, permissions: {rules: [{operations: [read], paths: [relative]}]}}\n";
    std::fs::write(dir.path().join("config.yaml"), more).unwrap();
    let report = AppConfig::check(load());
    let mended: String = report.problems.iter().map(|problem| format!("{problem}\n")).collect();
    for says in [
        "subagents.token_budget: there is no key `max_tokns`",
        "did you mean `max_tokens`?",
        "subagents.agents.bash.tools: this is not changed here",
        "subagents.custom_agents.bad name!: a subagent cannot be called that",
        "subagents.custom_agents.c.timeout_seconds: no time at all",
        "subagents.custom_agents.d.permissions.rules: ",
        "subagents.custom_agents.e.middleware: a subagent does not choose about `loop_detecton`",
        "write `loop_detection`; there is: call_limits, context_editing,",
        "subagents.custom_agents.d.permissions: the rules do not hold for commands",
    ] {
        assert!(mended.contains(says), "{says} in {mended}");
    }
    let warned: String = report.warnings.iter().map(|warning| warning.message.clone()).collect();
    assert!(warned.contains("subagents.agents.nobody: changes something only if"), "{warned}");
    for says in [
        "subagents.custom_agents.a: a subagent needs a description",
        "subagents.custom_agents.b.model: there is no model `smal`; did you mean `small`?",
        "subagents.remote.far: `description` is missing",
        "subagents.remote.far.url: not an address",
    ] {
        assert!(text.contains(says), "{says} in {text}");
    }
}

/// A hart elsewhere, whose model says what it was told.
async fn elsewhere() -> (String, ModelServer, JoinSet<()>, tempfile::TempDir) {
    let model = ModelServer::with(|request| {
        let said = request.texts_of("user").last().cloned().unwrap_or_default();
        // What was said before an interruption may stand in the same message.
        if said.contains("here") { Turn::new().text("Found it far away.") } else { Turn::hang() }
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let env = env(&model);
    let overrides = Some(json!({"title": {"enabled": false}}));
    let app =
        App::open(LoadOptions { path: None, cwd: home.path().to_owned(), env: &env, overrides }).unwrap();
    let server = Server::bind(&app, None, Some(0)).await.unwrap();
    let (url, mut tasks) = (server.url(), JoinSet::new());
    tasks.spawn(async move {
        server.run(CancellationToken::new()).await.unwrap();
        drop(app);
    });
    (url, model, tasks, home)
}

/// The newest of the results, and the id in the first.
fn newest(request: &RecordedRequest) -> (usize, String, String) {
    let results = request.tool_results();
    let first = results.first().map(|result| result.content.clone()).unwrap_or_default();
    let id =
        first.split("id is ").nth(1).and_then(|rest| rest.split('.').next()).unwrap_or_default().to_owned();
    (results.len(), id, results.last().map(|result| result.content.clone()).unwrap_or_default())
}

#[tokio::test]
async fn an_agent_on_another_server_works_in_the_background() {
    let (url, far, _tasks, _far_home) = elsewhere().await;
    let answers = |request: &RecordedRequest| {
        let (results, id, newest) = newest(request);
        let far = json!({"description": "look for it, but hang", "subagent_type": "far"});
        match results {
            0 => Turn::new().tool_call("s", "start_async_task", far),
            1 => Turn::new().tool_call("l", "list_async_tasks", json!({"status_filter": "running"})),
            2 => Turn::new().tool_call(
                "u",
                "update_async_task",
                json!({"task_id": id, "message": "look here"}),
            ),
            n if newest.contains("Found it") => Turn::new().text(format!("It was found after {n}.")),
            n => Turn::new()
                .tool_call(format!("c{n}"), "check_async_task", json!({"task_id": id}))
                .delay(Duration::from_millis(50)),
        }
    };
    let model = ModelServer::with(answers).await;
    let home = tempfile::tempdir().unwrap();
    let remote =
        json!({"remote": {"far": {"description": "Far away.", "url": url, "graph_id": "lead_agent"}}});
    let client = client(&model, &home, &remote);
    let answer = client.ask(Ask::new("find it").option("is_plan_mode", false)).await.unwrap();
    assert!(answer.text.starts_with("It was found"), "{}", answer.text);
    let last = model.last_request();
    let listed = last.tool_result("l").unwrap().content;
    assert!(listed.ends_with("(far): running"), "{listed}");
    // One request or two: the first run may have been interrupted before it asked its model anything.
    assert!(far.last_request().texts_of("user").concat().contains("look here"), "it was told something more");
    let tasks = answer.values.get("async_tasks").cloned().unwrap();
    let (_, task) = tasks.as_object().unwrap().iter().next().unwrap();
    assert_eq!((&task["agent_name"], &task["status"]), (&json!("far"), &json!("success")));
}

#[tokio::test]
async fn a_server_that_is_gone_and_a_task_that_never_was_are_told_of() {
    let (url, _far, mut tasks, _far_home) = elsewhere().await;
    let answers = |request: &RecordedRequest| {
        let (results, id, _) = newest(request);
        match results {
            0 => Turn::new().tool_call(
                "s",
                "start_async_task",
                json!({"description": "look and hang", "subagent_type": "far"}),
            ),
            1 => Turn::new()
                .tool_call("x", "check_async_task", json!({"task_id": "nowhere"}))
                .tool_call("w", "start_async_task", json!({"description": "d", "subagent_type": "farther"}))
                .tool_call("k", "cancel_async_task", json!({"task_id": id})),
            _ => Turn::new().text("Noted."),
        }
    };
    let model = ModelServer::with(answers).await;
    let home = tempfile::tempdir().unwrap();
    let remote =
        json!({"remote": {"far": {"description": "Far away.", "url": url, "graph_id": "lead_agent"}}});
    let here = client(&model, &home, &remote);
    here.chat(Ask::new("go")).await.unwrap();
    let last = model.last_request();
    let result = |id: &str| last.tool_result(id).unwrap().content;
    assert!(result("x").contains("there is no task `nowhere`; there is: "), "{}", result("x"));
    assert!(
        result("w").contains("there is no remote agent `farther`; choose one of: far"),
        "{}",
        result("w")
    );
    assert!(result("k").starts_with("Cancelled the task"), "{}", result("k"));
    tasks.shutdown().await;

    let gone = ModelServer::with(|request: &RecordedRequest| match request.tool_results().len() {
        0 => Turn::new().tool_call(
            "s",
            "start_async_task",
            json!({"description": "d", "subagent_type": "far"}),
        ),
        _ => Turn::new().text("It is gone."),
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let answer = client(&gone, &home, &remote).chat(Ask::new("go")).await.unwrap();
    assert_eq!(answer, "It is gone.");
    let told = gone.last_request().tool_result("s").unwrap().content;
    assert!(told.contains("does not answer"), "{told}");
}
