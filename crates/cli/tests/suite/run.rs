//! `hart run`: the answer, the tools, the events.

use std::fs;
use std::time::Duration;

use hart_testkit::binary::Hart;
use hart_testkit::{Dialect, Turn};
use serde_json::json;

use super::bench::{ALL, Bench, frames, thread_of};

#[test]
fn the_answer_is_all_there_is_on_stdout() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        bench.server.push(Turn::new().reasoning("hmm").text_fragments(["Hello, ", "world."]).usage(1200, 34));
        let ran = bench.run("greet").success();
        assert_eq!(ran.stdout, "Hello, world.\n");
        assert!(ran.stderr.contains("tokens: 1.2k in, 34 out"), "{}", ran.stderr);
        let configured = matches!(dialect, Dialect::Responses | Dialect::Ollama);
        let chosen = if configured { "model: m" } else { "API_KEY is set" };
        assert!(ran.stderr.contains(chosen), "{}", ran.stderr);
        let request = bench.server.last_request();
        assert_eq!(request.dialect(), Some(dialect));
        assert!(request.texts_of("user").concat().contains("greet"));
    }
}

#[test]
fn a_command_runs_in_the_sandbox_and_the_model_sees_what_it_printed() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        let args = json!({"description": "compute", "command": "echo $((6 * 7)) && pwd"});
        bench.server.push(Turn::new().text("Let me compute.").tool_call("call_1", "bash", args));
        bench.server.push(Turn::new().text("42, as expected."));
        let ran = bench.run("what is 6 times 7?").success();
        assert_eq!(ran.stdout, "Let me compute.\n42, as expected.\n");
        assert!(ran.stderr.contains("● bash  compute  echo"), "{}", ran.stderr);
        assert!(ran.stderr.contains("✓ 42"), "{}", ran.stderr);
        let result = bench.server.last_request().tool_result("call_1").unwrap();
        assert_eq!(result.content.trim(), "42\n/mnt/user-data/workspace");
    }
}

#[test]
fn parallel_calls_all_run_and_are_answered_in_one_request() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        let call = |n: u32| json!({"command": format!("echo result-{n}")});
        bench.server.push(Turn::new().tool_call("c1", "bash", call(1)).tool_call("c2", "bash", call(2)));
        bench.server.push(Turn::new().text("Both done."));
        let ran = bench.run("do both").success();
        assert_eq!(ran.stdout, "Both done.\n");
        let request = bench.server.last_request();
        let results = request.tool_results();
        assert_eq!(
            results.iter().map(|result| result.content.trim()).collect::<Vec<_>>(),
            ["result-1", "result-2"]
        );
    }
}

#[test]
fn broken_tool_arguments_are_answered_not_fatal() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        bench.server.push(Turn::new().tool_call_raw_args("c1", "bash", "{\"command\": [nonsense"));
        bench.server.push(Turn::new().text("I will try otherwise."));
        let ran = bench.run("do it").success();
        assert_eq!(ran.stdout, "I will try otherwise.\n");
        assert!(ran.stderr.contains('✗'), "{}", ran.stderr);
        assert!(bench.server.last_request().tool_result("c1").is_some());
    }
}

#[test]
fn files_that_are_handed_over_are_named_by_where_they_are() {
    let bench = Bench::with([
        Turn::new().tool_call(
            "c1",
            "write_file",
            json!({"path": "/mnt/user-data/outputs/poem.txt", "content": "roses"}),
        ),
        Turn::new().tool_call(
            "c2",
            "present_files",
            json!({"filepaths": ["/mnt/user-data/outputs/poem.txt"]}),
        ),
        Turn::new().text("Here it is."),
    ]);
    let ran = bench.run("write a poem").success();
    let file = ran.stderr.lines().find_map(|line| line.strip_prefix("file: ")).expect("a file");
    assert_eq!(fs::read_to_string(file).unwrap(), "roses");
}

#[test]
fn a_thread_goes_on() {
    let bench = Bench::with([Turn::new().text("Hello Ada."), Turn::new().text("Ada.")]);
    let first = bench.run("My name is Ada.").success();
    let thread = thread_of(&first);
    let second = bench.hart().args(["run", "--thread", &thread, "What is my name?"]).run().success();
    assert_eq!(second.stdout, "Ada.\n");
    assert!(!second.stderr.contains("new thread"), "{}", second.stderr);
    let request = bench.server.last_request();
    let said = request.texts_of("user").concat();
    assert!(said.contains("My name is Ada.") && said.contains("What is my name?"), "{said}");
    assert_eq!(request.texts_of("assistant"), ["Hello Ada."]);
}

#[test]
fn a_thread_may_be_given_a_name() {
    let bench = Bench::with([Turn::new().text("one"), Turn::new().text("two")]);
    let first = bench.hart().args(["run", "--thread", "my/odd ../name", "a"]).run().success();
    assert!(first.stderr.contains("new thread `my/odd ../name`"), "{}", first.stderr);
    let second = bench.hart().args(["run", "--thread", "my/odd ../name", "b"]).run().success();
    assert!(!second.stderr.contains("new thread"), "{}", second.stderr);
    assert_eq!(bench.server.last_request().texts_of("assistant"), ["one"]);
}

#[test]
fn a_question_ends_the_run_and_the_answer_continues_it() {
    let question = json!({"question": "Which colour?", "options": ["red", "blue"]});
    let bench = Bench::with([
        Turn::new().tool_call("c1", "ask_clarification", question),
        Turn::new().text("Blue it is."),
    ]);
    let asked = bench.run("paint it").success();
    assert!(asked.stdout.contains("Which colour?") && asked.stdout.contains("blue"), "{}", asked.stdout);
    assert!(asked.stderr.contains("to answer: hart run --thread"), "{}", asked.stderr);
    let answered = bench.hart().args(["run", "--thread", &thread_of(&asked), "blue"]).run().success();
    assert_eq!(answered.stdout, "Blue it is.\n");
}

#[test]
fn stdin_is_the_task_or_its_appendix() {
    let piped = |args: &[&str]| {
        let bench = Bench::with([Turn::new().text("ok")]);
        let ran = bench.hart().arg("run").args(args.iter().copied()).stdin("from stdin").run().success();
        assert_eq!(ran.stdout, "ok\n");
        bench.server.last_request().texts_of("user").concat()
    };
    assert!(piped(&["-"]).contains("from stdin"));
    assert!(piped(&[]).contains("from stdin"));
    assert!(piped(&["two", "words", "-"]).contains("two words\n\nfrom stdin"));
    assert!(!piped(&["words"]).contains("from stdin"));
}

#[test]
fn json_is_one_event_a_line_from_metadata_to_end() {
    let bench = Bench::with([
        Turn::new().tool_call("c1", "bash", json!({"command": "echo hi"})),
        Turn::new().text_fragments(["Do", "ne."]),
    ]);
    let ran = bench.hart().args(["run", "--json", "--thread", "t1", "go"]).run().success();
    let frames = frames(&ran);
    let events: Vec<&str> = frames.iter().map(|frame| frame["event"].as_str().unwrap()).collect();
    assert_eq!(events.first(), Some(&"metadata"));
    assert_eq!(events[events.len() - 2..], ["values", "end"]);
    assert_eq!(events.iter().filter(|event| **event == "values").count(), 1);
    for event in ["messages", "updates", "tasks"] {
        assert!(events.contains(&event), "{event} in {events:?}");
    }
    assert_eq!(frames[0]["data"]["thread_id"], "t1");
    assert_eq!(frames.last().unwrap()["data"]["status"], "success");
    let values = &frames[frames.len() - 2]["data"]["messages"];
    assert_eq!(values.as_array().unwrap().last().unwrap()["content"], "Done.");
    assert!(!ran.stderr.contains('●'), "{}", ran.stderr);
}

#[test]
fn a_mode_is_one_of_four() {
    let bench = Bench::with([Turn::new().text("ok")]);
    bench.hart().args(["run", "--mode", "flash", "hi"]).run().success().stdout.clear();
    let wrong = bench.hart().args(["run", "--mode", "warp", "hi"]).run();
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("flash") && wrong.stderr.contains("ultra"), "{}", wrong.stderr);
}

#[test]
fn a_plan_is_kept_where_it_is_asked_for() {
    for (args, plans) in [
        (&["--mode", "flash"][..], false),
        (&["--mode", "flash", "--plan"], true),
        (&["--mode", "pro"], true),
        (&["--plan=false"], false),
    ] {
        let bench = Bench::with([Turn::new().text("ok")]);
        let _ = bench.hart().args(["run"]).args(args.iter().copied()).args(["hi"]).run().success();
        let has = bench.server.last_request().tool_names().contains(&"write_todos");
        assert_eq!(has, plans, "{args:?}");
    }
}

#[test]
fn a_run_at_its_budget_waits_and_goes_on_with_more() {
    let look = Turn::new().tool_call("c1", "ls", json!({"description": "", "path": "."}));
    let bench = Bench::with([look, Turn::new().text("Done.")]);
    bench.write("config.yaml", "budget: {max_model_calls: 1}\n");
    let waits = bench.run("look around");
    assert_eq!(waits.code, Some(3), "{}", waits.stderr);
    assert!(waits.stderr.contains("1 of 1 model calls"), "{}", waits.stderr);
    assert!(waits.stderr.contains("waiting for an answer; to answer: hart run --thread"), "{}", waits.stderr);
    let (_, answer) = waits.stderr.rsplit_once("--resume '").unwrap();
    let answer = answer.split('\'').next().unwrap();
    let done = bench.hart().args(["run", "--thread", &thread_of(&waits), "--resume", answer]).run().success();
    assert_eq!(done.stdout, "Done.\n");
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    // The model never ends its answer: only the broken pipe can end the run.
    let words: Vec<String> = (0..200).map(|n| format!("word {n} ")).collect();
    for flags in ["", "--json"] {
        let bench = Bench::with([Turn::new()
            .text_fragments(words.clone())
            .event_delay(Duration::from_millis(10))
            .hang_after(190)]);
        let script = format!("set -o pipefail; \"$HART\" run {flags} talk | head -c 1");
        let ran = Hart::with_bin("/bin/bash", bench.dir.path())
            .env("HART", env!("CARGO_BIN_EXE_hart"))
            .env("HART_NO_PROBE", "1")
            .env("OPENAI_API_KEY", "sk-test")
            .env("OPENAI_BASE_URL", bench.server.openai_base())
            .args(["-c", &script])
            .run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    }
}

#[test]
fn a_recording_plays_again_without_a_model() {
    let bench = Bench::with([
        Turn::new().tool_call("c1", "bash", json!({"command": "echo 42"})),
        Turn::new().text("It is 42."),
    ]);
    let cassette = bench.dir.path().join("tape.json");
    let cassette = cassette.to_str().unwrap();
    bench.hart().args(["run", "--record", cassette, "compute"]).run().success().stdout.clear();
    let asked = bench.server.requests().len();
    let played = bench.hart().args(["run", "--replay", cassette, "compute"]).run().success();
    assert_eq!(played.stdout, "It is 42.\n");
    assert!(played.stderr.contains("✓ 42"), "{}", played.stderr);
    assert_eq!(bench.server.requests().len(), asked);
}

#[test]
fn the_model_of_the_configuration_comes_before_keys() {
    let bench = Bench::new(Dialect::Anthropic);
    bench.server.push(Turn::new().text("configured"));
    let config = format!(
        "models:\n  - name: mine\n    use: openai\n    model: some-model\n    api_key: k\n    base_url: {}\n",
        bench.server.openai_base()
    );
    bench.write("config.yaml", &config);
    let ran = bench.run("hi").success();
    assert_eq!(ran.stdout, "configured\n");
    assert!(ran.stderr.contains("model: mine"), "{}", ran.stderr);
    assert_eq!(bench.server.last_request().model(), "some-model");
}
