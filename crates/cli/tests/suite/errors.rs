//! What goes wrong: a clear message, the right exit code, nothing lost.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use hart_testkit::{ModelServer, Turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::bench::{ALL, Bench, QUICK, frames, offline, thread_of};

#[test]
fn a_refused_key_fails_the_run_and_keeps_the_thread() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        bench.server.push(Turn::status(401).message("invalid key"));
        bench.server.push(Turn::new().text("back again"));
        let ran = bench.run("remember this");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert!(
            ran.stderr.contains("error: ")
                && ran.stderr.contains("refused the API key: invalid key (HTTP 401"),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("sk-test"), "{}", ran.stderr);
        bench.hart().args(["run", "--thread", &thread_of(&ran), "go on"]).run().success().stdout.clear();
        assert!(bench.server.last_request().texts_of("user").concat().contains("remember this"));
    }
}

#[test]
fn an_answer_that_stops_early_says_so_whatever_the_provider_calls_it() {
    for dialect in ALL {
        let bench = Bench::new(dialect);
        bench.server.push(Turn::new().text("once upon a").stop("length"));
        let ran = bench.run("tell me a story").success();
        assert!(ran.stdout.contains("once upon a"), "{dialect:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("length limit"), "{dialect:?}: {}", ran.stderr);
    }
}

#[test]
fn an_unknown_model_is_wrong_usage_and_names_those_there_are() {
    let bench = Bench::with([]);
    let ran = bench.hart().args(["run", "--model", "gpt-17", "hi"]).run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`gpt-17`") && ran.stderr.contains("demo"), "{}", ran.stderr);
    assert!(bench.server.requests().is_empty());
}

#[test]
fn a_wrong_address_in_the_environment_is_wrong_usage_and_never_the_demo() {
    for (key, variable, value, why) in [
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", "localhost:8000/v1", "must start with http:// or https://"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "proxy/hunter2", "relative URL"),
        ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "http://ada:hunter2@", "empty host"),
        ("OPENAI_API_KEY", "OPENAI_API_KEY", "sk-\u{7f}hunter2", "holds a character that no key has"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for command in [&["run", "hi"][..], &["models"], &["models", "show"], &["doctor"]] {
            let ran = offline(dir.path()).env(key, "sk-very-secret").env(variable, value).args(command).run();
            let said = format!("{}{}", ran.stdout, ran.stderr);
            let code = if command == ["doctor"] { 1 } else { 2 };
            assert_eq!(ran.code, Some(code), "{command:?} {variable}: {said}");
            assert!(said.contains(variable) && said.contains(why), "{command:?}: {said}");
            assert!(!said.contains("very-secret") && !said.contains("sk-\u{7f}"), "{command:?}: {said}");
            assert!(!said.contains("ada:"), "{command:?}: {said}");
        }
        // Whoever names another model does not need that variable.
        let demo = offline(dir.path())
            .env(key, "k")
            .env(variable, value)
            .args(["run", "--model", "demo", "1"])
            .run();
        assert!(!demo.stderr.contains(why), "{}", demo.stderr);
    }
}

#[test]
fn bad_yaml_is_shown_with_its_place() {
    let bench = Bench::with([]);
    bench.write("config.yaml", "log_level: info\nmodels:\n  - name: a: b\n");
    let ran = bench.run("hi");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("config.yaml:3:"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("error: error:"), "{}", ran.stderr);
}

#[test]
fn an_unknown_key_is_shown_with_the_one_that_was_meant() {
    let bench = Bench::with([]);
    bench.write("config.yaml", "log_levl: info\n");
    let ran = bench.run("hi");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("log_levl") && ran.stderr.contains("log_level"), "{}", ran.stderr);
}

#[test]
fn a_configuration_that_is_not_there_is_wrong_usage() {
    let bench = Bench::with([]);
    let ran = bench.hart().args(["run", "--config", "nowhere.yaml", "hi"]).run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("nowhere.yaml") && ran.stderr.contains("does not exist"), "{}", ran.stderr);
}

#[test]
fn a_server_that_is_gone_fails_the_run_with_its_address() {
    let bench = Bench::with([]);
    bench.write("config.yaml", QUICK);
    let gone = ModelServer::start_blocking().openai_base();
    let ran = bench.hart().env("OPENAI_BASE_URL", &gone).args(["run", "hi"]).run();
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cannot be reached") && ran.stderr.contains(&gone), "{}", ran.stderr);
}

#[test]
fn ctrl_c_ends_a_hanging_model_cleanly() {
    for (json, turn) in [(false, Turn::hang()), (false, Turn::hang_before_headers()), (true, Turn::hang())] {
        let bench = Bench::with([turn, Turn::new().text("here again")]);
        let hart = bench.hart().args(["run", "--thread", "t1"]);
        let running = if json { hart.args(["--json", "wait"]) } else { hart.arg("wait") }.spawn();
        block_on(bench.server.wait_for_requests(1));
        running.interrupt();
        let ran = running.wait();
        assert_eq!(ran.code, Some(130), "{}", ran.stderr);
        assert!(ran.stderr.contains("cancelling"), "{}", ran.stderr);
        block_on(bench.server.wait_for_disconnect());
        if json {
            assert_eq!(frames(&ran).last().unwrap()["data"]["status"], "interrupted");
        }
        bench.hart().args(["run", "--thread", "t1", "go on"]).run().success().stdout.clear();
        assert!(bench.server.last_request().texts_of("user").concat().contains("wait"));
    }
}

#[test]
fn ctrl_c_ends_a_running_command() {
    let bench =
        Bench::with([Turn::new().tool_call("c1", "bash", json!({"command": "echo started; sleep 1000"}))]);
    let running = bench.hart().args(["run", "--json", "sleep"]).spawn();
    running.wait_for_stdout("tool_progress");
    running.terminate();
    let ran = running.wait();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the process under test is hart itself")]
fn ctrl_c_is_heard_while_nobody_takes_the_answer() {
    let bench = Bench::with([Turn::new().text("x".repeat(1 << 20)).hang_after(2)]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_hart"))
        .args(["run", "talk"])
        .current_dir(bench.dir.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HART_HOME", bench.dir.path().join(".hart"))
        .env("OPENAI_API_KEY", "sk-test")
        .env("OPENAI_BASE_URL", bench.server.openai_base())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    block_on(bench.server.wait_for_requests(1));
    // The pipe is full by then, or the first signal ends the run cleanly: both are right.
    let status = loop {
        thread::sleep(Duration::from_millis(300));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => kill_process(Pid::from_child(&child), Signal::INT).unwrap(),
        }
    };
    assert_eq!(status.code(), Some(130));
}

#[test]
fn an_answer_that_breaks_off_is_a_failure_and_what_came_is_shown() {
    let bench = Bench::new(hart_testkit::Dialect::Anthropic);
    bench.write("config.yaml", QUICK);
    let broken = || Turn::new().text_fragments(["half ", "an answer", "…"]).chunk_chars(4).cut_after(5);
    // More often than it is asked again.
    bench.server.push_all((0..20).map(|_| broken().delay(Duration::ZERO)));
    let ran = bench.run("talk");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("half"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with('\n'));
    assert!(ran.stderr.contains("error: ") && ran.stderr.contains("3 attempts"), "{}", ran.stderr);
    assert_eq!(
        ran.stdout.matches("half").count(),
        3,
        "each attempt once, and not again at the end: {}",
        ran.stdout
    );
}

#[test]
fn a_failed_run_in_json_ends_with_its_error() {
    let bench = Bench::with([Turn::status(401)]);
    let ran = bench.hart().args(["run", "--json", "hi"]).run();
    assert_eq!(ran.code, Some(1));
    assert_eq!(frames(&ran).last().unwrap()["data"]["status"], "error");
    assert!(ran.stderr.contains("error: "), "{}", ran.stderr);
}

#[test]
fn no_task_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["run"][..], &["run", "-"], &["run", " "], &["run", ""]] {
        let ran = offline(dir.path()).args(args.iter().copied()).run();
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("hart run \""), "{}", ran.stderr);
    }
}

#[test]
fn stdin_that_is_no_text_is_wrong_usage() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).args(["run", "-"]).stdin(vec![0xff, 0xfe]).run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("UTF-8"), "{}", ran.stderr);
}

#[test]
fn a_task_without_run_is_led_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).arg("do something").run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("hart run \"do something\""), "{}", ran.stderr);
    let ran = offline(dir.path()).arg("modles").run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'models'"), "{}", ran.stderr);
}

#[test]
fn a_home_that_cannot_be_written_fails_with_the_remedy() {
    let bench = Bench::with([]);
    bench.write("file", "");
    let ran = bench.hart().env("HART_HOME", bench.dir.path().join("file")).args(["run", "hi"]).run();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("HART_HOME"), "{}", ran.stderr);
}

pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}
