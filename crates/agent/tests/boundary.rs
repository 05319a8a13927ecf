//! What the model is sent, and what its answers make happen, in every dialect.

use std::sync::Arc;

use hart_agent::SuperAgent;
use hart_kernel::{RunContext, Update};
use hart_testkit::{Dialect, Turn};
use hart_tools::Artifacts;
use hart_types::{Ai, Body, Message, ThreadId, ToolCall};
use serde_json::{Map, json};

use crate::support::{DIALECTS, World};

#[tokio::test]
async fn a_task_is_worked_on_and_a_file_handed_over() {
    for dialect in DIALECTS {
        let out = "/mnt/user-data/outputs/sum.txt";
        let script = json!({"description": "script", "path": "sum.sh", "content": "echo $((6 * 7))\n"});
        let run = json!({"description": "run it", "command": format!("sh sum.sh > {out}")});
        let look = json!({"description": "look", "path": out});
        let turns = [
            Turn::new().text("Writing.").tool_call("c1", "write_file", script),
            Turn::new().tool_call("c2", "bash", run),
            Turn::new().tool_call("c3", "read_file", look).tool_call(
                "c4",
                "present_files",
                json!({"filepaths": [out]}),
            ),
            Turn::new().text("It is 42."),
        ];
        let world = World::new(dialect, turns).await;
        let report = world.ask("What is 6 times 7? Give me a file.").await;
        report.outcome.as_ref().unwrap();
        assert_eq!(report.answer().as_deref(), Some("It is 42."));
        assert_eq!(report.state().get::<Artifacts>().unwrap(), &[out]);
        let last = world.server.last_request();
        let result = |id| last.tool_result(id).unwrap().content;
        assert_eq!(result("c1"), "OK");
        assert_eq!(result("c2"), "(no output)");
        assert_eq!(result("c3").trim(), "42");
        assert_eq!(result("c4"), "Successfully presented files");
    }
}

#[tokio::test]
async fn the_first_request_has_the_prompt_and_the_tools() {
    for dialect in DIALECTS {
        let world = World::new(dialect, [Turn::new().text("hi")]).await;
        world.ask("hello").await.outcome.unwrap();
        let request = world.server.last_request();
        assert!(request.system().contains("/mnt/user-data/outputs"));
        assert!(request.texts_of("user")[0].contains("hello"));
        assert_eq!(request.tool_names().len(), 12);
    }
}

#[tokio::test]
async fn a_question_ends_the_run_and_the_next_message_answers_it() {
    let ask = json!({"question": "Which colour?", "clarification_type": "missing_info", "options": ["red", "blue"]});
    let world = World::new(Dialect::OpenAi, [Turn::new().tool_call("c1", "ask_clarification", ask)]).await;
    let report = world.ask("Paint it.").await;
    report.outcome.as_ref().unwrap();
    let question = report.state().messages().last().unwrap();
    assert_eq!(question.id.as_ref().unwrap().as_str(), "clarification:c1");
    assert!(question.text().contains("Which colour?"));
    let payload = &question.as_tool_result().unwrap().artifact.as_ref().unwrap()["human_input"];
    assert_eq!(payload["kind"], "human_input_request");
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_call_interrupted_by_a_crash_is_answered_before_the_next_question() {
    for dialect in DIALECTS {
        let world = World::new(dialect, [Turn::new().text("fine")]).await;
        let calls = Ai { tool_calls: vec![ToolCall::new("c1", "bash", Map::new())], ..Ai::default() };
        let history =
            vec![Message::human("do it"), Message::new(Body::Ai(calls), ""), Message::human("still there?")];
        let cx = RunContext::new(ThreadId::from("t1"));
        world.agent.run(Update::none().messages(history), &cx).await.outcome.unwrap();
        let result = world.server.last_request().tool_result("c1").unwrap();
        assert!(result.content.contains("interrupted"), "{result:?}");
    }
}

#[tokio::test]
async fn broken_calls_come_back_as_errors_and_the_thread_stays_usable() {
    for dialect in DIALECTS {
        let turns = [
            Turn::new().tool_call_raw_args("c1", "bash", "{\"command\": "),
            Turn::new().tool_call("c2", "launch_rocket", json!({})),
            Turn::new().tool_call("c3", "read_file", json!({"description": "x", "path": "/etc/passwd"})),
            Turn::new().text("sorry"),
        ];
        let world = World::new(dialect, turns).await;
        let report = world.ask("go").await;
        report.outcome.as_ref().unwrap();
        let last = world.server.last_request();
        let result = |id| last.tool_result(id).unwrap().content;
        assert!(result("c1").contains("valid JSON"), "{}", result("c1"));
        assert!(result("c2").contains("there is no tool `launch_rocket`") && result("c2").contains("bash"));
        assert!(result("c3").contains("outside"), "{}", result("c3"));
    }
}

#[tokio::test]
async fn an_agent_without_a_sandbox_has_only_its_own_tools() {
    let model = Arc::new(hart_models::ScriptedModel::new(Vec::<Message>::new()));
    let agent = SuperAgent::builder(model).build().unwrap();
    assert_eq!(agent.tools().len(), 1);
}

/// As a model would find its way: look, search, read, change several places in one answer, look again.
#[tokio::test]
async fn files_are_found_read_and_changed() {
    let notes = "/mnt/user-data/workspace/src/notes.txt";
    let text = "alpha = 1\nbeta = 2\r\ngamma = 3\ndelta = 4\n";
    let change = |old: &str, new: &str| json!({"path": notes, "old_str": old, "new_str": new});
    let turns = [
        Turn::new().tool_call("w", "write_file", json!({"path": notes, "content": text})),
        Turn::new()
            .tool_call("g", "glob", json!({"pattern": "notes*"}))
            .tool_call("f", "grep", json!({"pattern": "beta|delta", "context": 1}))
            .tool_call("n", "grep", json!({"pattern": "= \\d", "output_mode": "count"})),
        Turn::new().tool_call("m", "read_file", json!({"path": "/mnt/user-data/workspace/notes.txt"})),
        Turn::new().tool_call("r", "read_file", json!({"path": notes})),
        Turn::new()
            .tool_call("e1", "str_replace", change("alpha = 1", "alpha = one"))
            .tool_call("e2", "str_replace", change("gamma = 3\ndelta", "gamma = 3\ndelta2"))
            .tool_call("e3", "write_file", json!({"path": notes, "content": "omega\n", "append": true})),
        Turn::new().tool_call("l", "read_file", json!({"path": notes, "start_line": 4})),
        Turn::new().text("Done."),
    ];
    let world = World::new(Dialect::Anthropic, turns).await;
    world.ask("Change the notes.").await.outcome.unwrap();
    let last = world.server.last_request();
    let expected = [
        ("g", "Found 1 paths under /mnt/user-data/workspace\n1. /mnt/user-data/workspace/src/notes.txt"),
        (
            "f",
            "Found 2 matches under /mnt/user-data/workspace\n/mnt/user-data/workspace/src/notes.txt:\n  \
             1- alpha = 1\n  2: beta = 2\n  3- gamma = 3\n  4: delta = 4",
        ),
        (
            "n",
            "Found 1 files with matches under /mnt/user-data/workspace\n\
             /mnt/user-data/workspace/src/notes.txt: 4",
        ),
        (
            "m",
            "Error: no such file or directory: `/mnt/user-data/workspace/notes.txt`; list its parent directory \
             to see what is there. There is `/mnt/user-data/workspace/src/notes.txt`",
        ),
        ("r", text),
        ("e1", "OK"),
        ("e2", "OK"),
        ("e3", "OK"),
        ("l", "delta2 = 4\nomega\n"),
    ];
    for (id, content) in expected {
        assert_eq!(last.tool_result(id).unwrap().content, content, "{id}");
    }
}
