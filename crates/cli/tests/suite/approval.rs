//! A call that needs approval: at a terminal, without one, and answered by another process.

use hart_testkit::Turn;
use hart_testkit::binary::Finished;
use serde_json::{Value, json};

use super::bench::{Bench, frames, thread_of};
use super::serve::{Served, THREAD, question, read};
use super::terminal::Seat;

const CONFIG: &str = "interrupt_on:\n  write_file: true\n  bash: {allowed_decisions: [approve, reject], description: Runs a command.}\n";

fn write(id: &str, path: &str) -> Turn {
    Turn::new().tool_call(id, "write_file", args(path))
}

fn args(path: &str) -> Value {
    json!({"description": "", "path": path, "content": format!("this is {path}\n")})
}

fn bench(turns: impl IntoIterator<Item = Turn>) -> Bench {
    let bench = Bench::with(turns);
    bench.write("config.yaml", CONFIG);
    bench
}

fn done() -> Turn {
    Turn::new().text("It is done.")
}

fn result(bench: &Bench, id: &str) -> String {
    bench.server.last_request().tool_result(id).unwrap().content
}

fn resume(bench: &Bench, thread: &str, answer: &Value) -> Finished {
    bench.hart().args(["run", "--thread", thread, "--resume", &answer.to_string()]).run()
}

#[test]
fn at_a_terminal_each_call_is_decided_about() {
    let three = write("c1", "a.txt").tool_call("c2", "bash", json!({"command": "echo one\necho two"}));
    let three = three.tool_call("c3", "write_file", args("c.txt"));
    let bench = bench([three, done()]);
    let mut seat = Seat::take(&bench, &["--color", "never", "run", "write"]);
    seat.sees("write_file (1 of 3)");
    seat.sees("needs approval before it runs");
    seat.sees("path: a.txt");
    seat.sees("a(pprove) / e(dit) / r(eject) [reason] / respond: ");
    seat.type_keys("maybe\r");
    seat.sees("write one of: a(pprove)");
    seat.type_keys("a\r");
    seat.sees("bash (2 of 3)");
    seat.sees("Runs a command.");
    seat.sees("echo two");
    seat.sees("a(pprove) / r(eject) [reason]: ");
    seat.type_keys("e\r");
    seat.sees("`edit` is not allowed here");
    seat.type_keys("r\r");
    seat.sees("reason (may be empty): ");
    seat.type_keys("too noisy\r");
    seat.sees("write_file (3 of 3)");
    seat.sees("respond: ");
    seat.type_keys("respond I did it myself\r");
    seat.sees("It is done.");
    let (status, rest) = seat.leave();
    assert_eq!(status.code(), Some(0), "{rest}");
    assert_eq!(result(&bench, "c1"), "OK");
    assert!(result(&bench, "c2").contains("The reason given: too noisy"), "{}", result(&bench, "c2"));
    assert_eq!(result(&bench, "c3"), "I did it myself");
}

#[test]
fn at_a_terminal_a_call_can_be_changed() {
    let bench = bench([write("c1", "a.txt"), done()]);
    let mut seat = Seat::take(&bench, &["--color", "never", "run", "write"]);
    seat.sees("respond: ");
    seat.type_keys("e\r");
    seat.sees("arguments: ");
    seat.type_keys("\x15oops\r");
    seat.sees("not a JSON object");
    seat.sees("arguments: ");
    seat.type_keys("\x15{\"path\": \"b.txt\", \"content\": \"mine\"}\r");
    seat.sees("It is done.");
    assert_eq!(seat.leave().0.code(), Some(0));
    let heard = result(&bench, "c1");
    assert!(
        heard.contains("What ran was `write_file` with {\"path\":\"b.txt\",\"content\":\"mine\"}"),
        "{heard}"
    );
}

#[test]
fn a_question_that_was_left_is_answered_by_another_process() {
    let bench = bench([write("c1", "a.txt"), done()]);
    let mut seat = Seat::take(&bench, &["--color", "never", "run", "--thread", "left", "write"]);
    seat.sees("respond: ");
    seat.type_keys("\x04");
    seat.sees("waiting for approval; to answer: hart run --thread left --resume");
    assert_eq!(seat.leave().0.code(), Some(3));
    let mut seat = Seat::take(&bench, &["--color", "never", "chat", "--thread", "left"]);
    seat.sees("path: a.txt");
    seat.sees("respond: ");
    seat.type_keys("\x03");
    seat.sees("/approve shows it again");
    seat.sees("> ");
    seat.type_keys("/approve\r");
    seat.sees("respond: ");
    seat.type_keys("approve\r");
    seat.sees("It is done.");
    seat.sees("> ");
    seat.type_keys("\x04");
    assert_eq!(seat.leave().0.code(), Some(0));
    assert_eq!(result(&bench, "c1"), "OK");
}

#[test]
fn without_a_terminal_the_question_is_printed_and_the_exit_code_says_so() {
    let two = write("c1", "a.txt").tool_call("c2", "bash", json!({"command": "echo hi"}));
    let bench = bench([two, done()]);
    let ran = bench.run("write");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{}", ran.stderr);
    for part in ["? write_file\n", "  path: a.txt\n", "? bash\n  Runs a command.\n  command: echo hi\n"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("without an answer"), "{}", ran.stderr);
    let thread = thread_of(&ran);
    let approve = json!({"type": "approve"});

    let short = resume(&bench, &thread, &json!({"decisions": [approve]}));
    assert_eq!(short.code, Some(1));
    let why = "1 decisions were given, but 2 are needed, one for each of write_file, bash in this order";
    assert!(short.stderr.contains(why) && short.stderr.contains("to answer: hart run"), "{}", short.stderr);
    let edit = json!({"type": "edit", "edited_action": {"name": "bash", "args": {}}});
    let forbidden = resume(&bench, &thread, &json!({"decisions": [approve, edit]}));
    assert!(forbidden.stderr.contains("`edit` is not allowed for `bash`"), "{}", forbidden.stderr);
    assert_eq!(bench.server.requests().len(), 1, "nothing went on");

    let reject = json!({"type": "reject", "message": "no"});
    let ended = resume(&bench, &thread, &json!({"decisions": [approve, reject]})).success();
    assert_eq!(ended.stdout, "It is done.\n");
    assert_eq!(result(&bench, "c1"), "OK");
    assert!(result(&bench, "c2").contains("a person rejected this call of `bash`"));

    let again = resume(&bench, &thread, &json!({"decisions": [approve, approve]}));
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("nothing in this thread waits for an answer"), "{}", again.stderr);
}

#[test]
fn frames_carry_the_question_and_an_answer_may_name_its_id() {
    let bench = bench([write("c1", "a.txt"), done()]);
    let ran = bench.hart().args(["run", "--json", "--thread", "t", "write"]).run();
    assert_eq!(ran.code, Some(3));
    let lines = frames(&ran);
    let interrupts = lines.iter().find_map(|frame| frame["data"].get("__interrupt__")).unwrap();
    assert_eq!(interrupts[0]["value"]["action_requests"][0]["name"], "write_file");
    assert_eq!(lines.last().unwrap()["data"]["status"], "paused");
    let id = interrupts[0]["id"].as_str().unwrap();
    let answer = json!({ (id): {"decisions": [{"type": "approve"}]} }).to_string();
    let ran = bench.hart().args(["run", "--json", "--thread", "t", "--resume", &answer]).run().success();
    assert_eq!(frames(&ran).last().unwrap()["data"]["status"], "success");
    assert_eq!(result(&bench, "c1"), "OK");
}

/// In every mode, also where hooks note something on leaving; at a state that lists and streams call the same.
#[test]
fn a_servers_clients_are_told_what_is_asked_about_an_answer() {
    let bench = Bench::with([write("c1", "a.txt"), write("c2", "b.txt"), done()]);
    bench
        .write("config.yaml", &format!("{CONFIG}budget: {{max_seconds: 3600}}\ntitle: {{enabled: false}}\n"));
    let served = Served::start(bench.hart());
    served.ask("POST", "/threads", "", &json!({"thread_id": THREAD}));
    let runs = format!("/threads/{THREAD}/runs");
    let mut asked = question();
    asked["stream_mode"] = json!(["values", "updates", "tasks", "checkpoints"]);
    let told = read(served.request("POST", &format!("{runs}/stream"), "", &asked));
    let frames: Vec<(&str, Value)> = told
        .split("event: ")
        .skip(1)
        .filter_map(|frame| frame.split_once("\r\ndata: "))
        .map(|(event, rest)| (event, serde_json::from_str(rest.lines().next().unwrap()).unwrap()))
        .collect();
    let of = |mode: &str| {
        let of_mode = frames.iter().filter(|(event, _)| *event == mode);
        of_mode.map(|(_, data)| data).collect::<Vec<_>>()
    };
    let question = &of("values").last().unwrap()["__interrupt__"][0];
    assert_eq!(question["value"]["action_requests"][0]["name"], "write_file", "{told}");
    assert!(of("updates").iter().any(|update| update["__interrupt__"][0]["id"] == question["id"]), "{told}");
    let asking = *of("tasks").last().unwrap();
    assert_eq!((&asking["name"], &asking["interrupts"][0]["id"]), (&json!("after_model"), &question["id"]));
    // What is waited for comes in pieces.
    let json_of = |answer: String| {
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let json = body.get(body.find(['{', '[']).unwrap()..).unwrap();
        serde_json::Deserializer::from_str(json).into_iter::<Value>().next().unwrap().unwrap()
    };
    let state = json_of(served.ask("GET", &format!("/threads/{THREAD}/state"), "", &json!({})));
    assert_eq!((&state["tasks"][0]["id"], &state["next"]), (&asking["id"], &json!(["after_model"])));
    let listed = json_of(served.ask("POST", &format!("/threads/{THREAD}/history"), "", &json!({"limit": 9})));
    let listed = listed.as_array().unwrap();
    let names: Vec<&Value> =
        of("checkpoints").iter().map(|at| &at["config"]["configurable"]["checkpoint_id"]).collect();
    assert!(listed.iter().rev().map(|state| &state["checkpoint_id"]).eq(names), "{told}");
    let approve = json!({"resume": {"decisions": [{"type": "approve"}]}});
    let waited = json!({"assistant_id": "lead_agent", "command": approve});
    let values = json_of(served.ask("POST", &format!("{runs}/wait"), "", &waited));
    assert!(values["__interrupt__"][0]["id"].is_string(), "the second call is asked about: {values}");
    let values = json_of(served.ask("POST", &format!("{runs}/wait"), "", &waited));
    assert_eq!(values["messages"].as_array().unwrap().last().unwrap()["content"], "It is done.");
}

#[test]
fn a_piped_chat_stops_at_the_question() {
    let bench = bench([write("c1", "a.txt"), done()]);
    let ran = bench.hart().arg("chat").stdin("write\nthis would drop it\n").run();
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert_eq!(bench.server.requests().len(), 1);
    let thread = thread_of(&ran);
    resume(&bench, &thread, &json!({"decisions": [{"type": "approve"}]})).success().stdout.clear();
    assert_eq!(result(&bench, "c1"), "OK");
}

#[test]
fn an_answer_to_nothing_is_wrong_usage() {
    let bench = bench([]);
    for (args, why) in [
        (vec!["run", "--resume", "{}"], "--thread"),
        (vec!["run", "--thread", "t", "--resume", "{oops"], "--resume is not JSON"),
        (vec!["run", "--thread", "t", "--resume", "{}"], "there is no thread `t`"),
        (vec!["run", "--thread", "t", "--resume", "{}", "a task"], "cannot be used with"),
    ] {
        let ran = bench.hart().args(args).run();
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
    assert!(bench.server.requests().is_empty());
}

#[test]
fn rules_about_paths_and_lists_of_tools_are_kept() {
    let calls = Turn::new().tool_call("c1", "write_file", args("/mnt/user-data/uploads/a.txt")).tool_call(
        "c2",
        "delete",
        json!({"path": "x"}),
    );
    let bench = Bench::with([calls, done()]);
    bench.write(
        "config.yaml",
        "permissions:\n  allow_bash: true\n  rules:\n    - {operations: [write], paths: [/mnt/user-data/uploads/**], mode: \
         deny}\nguardrails:\n  enabled: true\n  provider: {config: {denied_tools: [delete]}}\n",
    );
    let ran = bench.run("go").success();
    assert_eq!(ran.stdout, "It is done.\n");
    assert!(
        result(&bench, "c1").contains("permission denied: `/mnt/user-data/uploads/a.txt` may not be changed")
    );
    assert!(
        result(&bench, "c2")
            .starts_with("Guardrail denied: the tool `delete` is denied here (oap.tool_not_allowed)")
    );
}
