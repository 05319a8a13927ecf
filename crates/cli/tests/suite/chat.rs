//! `hart chat` without a terminal, and the demo.

use hart_testkit::Turn;

use super::bench::{Bench, offline};

#[test]
fn every_line_is_a_prompt_of_one_conversation() {
    let bench = Bench::with([Turn::new().text("Hello Ada."), Turn::new().text("Ada.")]);
    let ran = bench.hart().arg("chat").stdin("My name is Ada.\n\nWhat is my name?").run().success();
    assert_eq!(ran.stdout, "Hello Ada.\nAda.\n");
    let request = bench.server.last_request();
    assert_eq!(request.texts_of("assistant"), ["Hello Ada."]);
}

#[test]
fn lines_can_be_held_together() {
    let bench = Bench::with([Turn::new().text("one"), Turn::new().text("two")]);
    bench.hart().arg("chat").stdin("a\\\nb\n\"\"\"\nc\nd\n\"\"\"\n").run().success().stdout.clear();
    let said = bench.server.last_request().texts_of("user");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("a\nb") && said[1].contains("c\nd"), "{said:?}");
}

#[test]
fn commands_are_obeyed_and_not_sent() {
    let bench = Bench::with([Turn::new().text("one"), Turn::new().text("two")]);
    let lines =
        "/help\n/mode ultra\n/mode\n/nonsense\n/thread\n/model\n/files\nfirst\n/new\nsecond\n/quit\nnever\n";
    let ran = bench.hart().args(["chat", "--thread", "t1"]).stdin(lines).run().success();
    for part in
        ["/quit", "mode ultra", "ultra (there is", "t1", "demo", "no files", "one", "new thread", "two"]
    {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    assert!(ran.stderr.contains("no command /nonsense"), "{}", ran.stderr);
    let request = bench.server.last_request();
    assert!(request.texts_of("assistant").is_empty(), "a new thread knows nothing of the old one");
    assert_eq!(bench.server.requests().len(), 2);
}

#[test]
fn a_failed_run_does_not_end_the_conversation_but_shows_in_the_exit_code() {
    let bench = Bench::with([Turn::status(401), Turn::new().text("better")]);
    let ran = bench.hart().arg("chat").stdin("first\nsecond\n").run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "better\n"));
    assert!(ran.stderr.contains("refused the API key"), "{}", ran.stderr);
}

#[test]
fn an_unknown_model_leaves_the_old_one() {
    let bench = Bench::with([Turn::new().text("still here")]);
    let ran = bench.hart().arg("chat").stdin("/model nope\nhi\n").run();
    assert_eq!(ran.stdout, "still here\n");
    assert!(ran.stderr.contains("`nope`"), "{}", ran.stderr);
}

#[test]
fn nothing_said_to_a_real_model_is_nothing_done() {
    let bench = Bench::with([]);
    let ran = bench.hart().arg("chat").run().success();
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("hart run"), "{}", ran.stderr);
    assert!(bench.server.requests().is_empty());
}

#[test]
fn without_a_model_and_a_word_the_first_recording_plays_with_real_tools() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).arg("chat").run().success();
    assert!(ran.stderr.contains("recording") && ran.stderr.contains("ANTHROPIC_API_KEY"), "{}", ran.stderr);
    assert!(ran.stderr.contains('●') && !ran.stderr.contains('✗'), "{}", ran.stderr);
    assert!(!ran.stdout.is_empty());
    let file = ran.stderr.lines().find_map(|line| line.strip_prefix("file: ")).expect("a file");
    assert!(std::path::Path::new(file).is_file());
}

#[test]
fn each_recording_starts_by_its_number_and_by_its_prompt() {
    for number in ["1", "2", "3", "/demo 2"] {
        let dir = tempfile::tempdir().unwrap();
        let ran = offline(dir.path()).arg("chat").stdin(format!("{number}\n")).run().success();
        assert!(ran.stderr.contains("file: "), "{number}: {}", ran.stderr);
    }
    let dir = tempfile::tempdir().unwrap();
    let listed = offline(dir.path()).arg("chat").stdin("/quit\n").run().success();
    let prompt = listed.stderr.lines().find_map(|line| line.strip_prefix("    ")).expect("a prompt");
    let ran = offline(dir.path()).args(["run", prompt]).run().success();
    assert!(ran.stderr.contains("file: "), "{}", ran.stderr);
}

#[test]
fn any_other_prompt_is_told_how_to_connect_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).args(["run", "what is the weather?"]).run();
    assert!(ran.stdout.contains("API_KEY"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(1), "a script must see that nothing was done");
}

#[test]
fn an_interrupt_ends_a_chat_that_waits_for_its_pipe() {
    let bench = Bench::with([Turn::new().text("hello")]);
    let mut running = bench.hart().arg("chat").spawn();
    running.write_line("hi");
    running.wait_for_stdout("hello");
    running.interrupt();
    assert_eq!(running.wait().code, Some(130));
}
