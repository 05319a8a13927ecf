//! `hart serve`: the ready line, who is let in, how it ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hart_testkit::binary::{Hart, Running};
use hart_testkit::{PATIENCE, Turn, eventually_here};
use serde_json::{Value, json};

use super::bench::{Bench, offline};

/// A server that is ready.
pub(super) struct Served {
    pub(super) process: Running,
    pub(super) address: SocketAddr,
}

impl Served {
    pub(super) fn start(hart: Hart) -> Self {
        Self::start_with(hart, &[])
    }

    fn start_with(hart: Hart, options: &[&str]) -> Self {
        let process = hart.args(["serve", "--port", "0"]).args(options.iter().copied()).spawn();
        process.wait_for_stdout("\n");
        let line = process.stdout_so_far();
        let address = line.strip_prefix("ready: http://").expect("the ready line").trim();
        Self { process, address: address.parse().unwrap() }
    }

    pub(super) fn request(&self, method: &str, path: &str, headers: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
        .unwrap();
        stream
    }

    /// The whole answer, head and body.
    pub(super) fn ask(&self, method: &str, path: &str, headers: &str, body: &Value) -> String {
        read(self.request(method, path, headers, body))
    }
}

/// All of it.
pub(super) fn read(mut stream: TcpStream) -> String {
    receive(&mut stream, None)
}

/// As much of it as has these words.
pub(super) fn read_until(stream: &mut TcpStream, needle: &str) -> String {
    receive(stream, Some(needle))
}

fn receive(stream: &mut TcpStream, until: Option<&str>) -> String {
    let (begun, mut told, mut part) = (Instant::now(), Vec::new(), [0; 16 * 1024]);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    loop {
        let text = String::from_utf8_lossy(&told);
        if until.is_some_and(|needle| text.contains(needle)) {
            return text.into_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "still no {until:?} in: {text}");
        match stream.read(&mut part).unwrap_or_else(|error| panic!("{error}, after: {text}")) {
            0 => break,
            count => told.extend_from_slice(&part[..count]),
        }
    }
    let told = String::from_utf8(told).unwrap();
    assert!(until.is_none(), "the stream ended without {until:?}: {told}");
    told
}

/// The thread's runs, once none of them is at work.
fn ended(served: &Served) -> String {
    eventually_here("the run ends", || {
        let runs = served.ask("GET", &format!("/threads/{THREAD}/runs"), "", &json!({}));
        let waits = [r#""status":"running""#, r#""status":"pending""#].iter().any(|it| runs.contains(it));
        (!waits).then_some(runs)
    })
}

pub(super) fn question() -> Value {
    json!({"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "hello"}]}})
}

#[test]
fn a_client_is_answered_and_the_server_ends_when_it_is_told_to() {
    let bench = Bench::with([Turn::new().text("Good day.")]);
    let served = Served::start(bench.hart());
    let answer = served.ask("POST", "/runs/wait", "", &question());
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Good day."), "{answer}");
    assert!(bench.server.last_request().texts_of("user").concat().contains("hello"));
    let agents = served.ask("POST", "/api/langgraph/assistants/search", "", &json!({}));
    assert!(agents.contains("lead_agent"), "{agents}");
    let database = bench.dir.path().join(".hart/hart.db");
    assert_eq!(std::fs::metadata(database).unwrap().permissions().mode() & 0o777, 0o600);
    served.process.terminate();
    let ended = served.process.wait().success();
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    assert!(ended.stderr.contains("model: ") && ended.stderr.contains(".hart"), "{}", ended.stderr);
}

#[test]
fn a_run_chooses_its_model_and_a_wrong_choice_is_told() {
    let bench = Bench::with([Turn::new().text("never")]);
    let served = Served::start(bench.hart());
    for (context, says) in [
        (json!({"model_name": "nobody"}), "there is no model `nobody`"),
        (json!({"mode": "warp"}), "the modes are flash, thinking, pro, ultra"),
    ] {
        let mut asked = question();
        asked["context"] = context;
        let answer = served.ask("POST", "/runs/wait", "", &asked);
        assert!(answer.contains(says), "{answer}");
    }
    assert!(bench.server.requests().is_empty());
}

#[test]
fn without_a_model_the_server_says_so_and_plays_the_recordings() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(offline(dir.path()));
    let answer = served.ask("POST", "/runs/wait", "", &question());
    assert!(answer.contains("No model is connected"), "{answer}");
    served.process.interrupt();
    let ended = served.process.wait().success();
    assert!(ended.stderr.contains("this is a recording"), "{}", ended.stderr);
}

#[test]
fn a_run_that_is_under_way_ends_before_the_server_does() {
    let words: Vec<String> = (0..40).map(|n| format!("word{n} ")).collect();
    let bench = Bench::with([Turn::new().text_fragments(words).event_delay(Duration::from_millis(20))]);
    let served = Served::start(bench.hart());
    let mut asked = question();
    asked["stream_mode"] = json!("messages-tuple");
    let mut stream = served.request("POST", "/runs/stream", "", &asked);
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    served.process.terminate();
    let told = read(stream);
    assert!(told.contains("word39") && told.contains("event: end"), "{told}");
    let _ = served.process.wait().success();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let bench = Bench::with([Turn::new().text_fragments(["a", "b"]).hang_after(1)]);
    bench.write("config.yaml", "server: {drain_seconds: 600}\n");
    let served = Served::start(bench.hart());
    let mut stream = served.request("POST", "/runs/stream", "", &question());
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    served.process.terminate();
    let waiting = "once more to stop at once";
    eventually_here(waiting, || served.process.stderr_so_far().contains(waiting).then_some(()));
    served.process.terminate();
    assert_eq!(served.process.wait().code, Some(130));
}

#[test]
fn a_taken_port_is_told_and_nothing_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = offline(dir.path()).args(["serve", "--port", &port]).run();
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: is hart running already?"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty() && !dir.path().join(".hart").exists());
}

#[test]
fn beyond_this_machine_it_serves_with_a_token_only() {
    let dir = tempfile::tempdir().unwrap();
    let refused = offline(dir.path()).args(["serve", "--host", "0.0.0.0", "--port", "0"]).run();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("a token is needed") && refused.stderr.contains("HART_TOKEN"));
    let unsaid = offline(dir.path()).env("HART_TOKEN", "töken").args(["serve", "--port", "0"]).run();
    assert_eq!(unsaid.code, Some(2), "{}", unsaid.stderr);
    assert!(unsaid.stderr.contains("no header can carry the token"), "{}", unsaid.stderr);
    let nowhere = offline(dir.path()).args(["serve", "--host", "no such host"]).run();
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("`no such host` is no address"), "{}", nowhere.stderr);

    std::fs::write(dir.path().join("config.yaml"), "server: {host: 0.0.0.0}\n").unwrap();
    let served = Served::start(offline(dir.path()).env("HART_TOKEN", "s3cret-text"));
    assert!(served.address.ip().is_loopback(), "a browser here finds it: {}", served.address);
    let ask = |headers: &str| served.ask("GET", "/info", headers, &json!({}));
    assert!(ask("").starts_with("HTTP/1.1 401"));
    assert!(ask("authorization: Bearer wrong\r\n").starts_with("HTTP/1.1 401"));
    assert!(ask("authorization: Bearer s3cret-text\r\n").starts_with("HTTP/1.1 200"));
    served.process.interrupt();
    let ended = served.process.wait().success();
    assert!(!ended.stderr.contains("s3cret-text"));
}

#[test]
fn a_log_for_machines_has_nothing_but_json_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let hart = offline(dir.path()).env("HART_LOG_FORMAT", "json").env("HART_LOG", "info");
    let served = Served::start(hart);
    served.ask("GET", "/ok", "", &Value::Null);
    served.process.terminate();
    let ended = served.process.wait().success();
    assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
    for line in ended.stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()), "{line}");
    }
}

#[test]
fn a_data_directory_that_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let ran = offline(dir.path()).env("HART_HOME", "/proc/nothing").args(["serve", "--port", "0"]).run();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot use /proc/nothing") && ran.stderr.contains("HART_HOME"),
        "{}",
        ran.stderr
    );
}

#[test]
fn files_are_undone_copied_and_deleted_with_their_run_and_thread() {
    let write = |id: &str, path: &str| {
        let args = json!({"description": "d", "path": format!("/mnt/user-data/{path}"), "content": "one"});
        Turn::new().tool_call(id, "write_file", args)
    };
    let bench = Bench::with([
        write("c1", "outputs/kept.txt"),
        Turn::new().text("Written."),
        write("c2", "workspace/undone.txt"),
        Turn::hang(),
    ]);
    // Each turn is answered in order; a title would take one.
    bench.write("config.yaml", "title: {enabled: false}\n");
    let served = Served::start(bench.hart());
    let ask = |method: &str, path: &str, body: &Value| -> Value {
        let answer = served.ask(method, path, "", body);
        assert!(answer.starts_with("HTTP/1.1 20"), "{method} {path}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1.trim();
        serde_json::from_str(body).unwrap_or_default()
    };
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let files =
        |thread: &str| bench.dir.path().join(format!(".hart/users/default/threads/{thread}/user-data"));

    let thread = text(&ask("POST", "/threads", &json!({})), "thread_id");
    ask("POST", &format!("/threads/{thread}/runs/wait"), &question());
    assert!(files(&thread).join("outputs/kept.txt").exists());

    let run = text(&ask("POST", &format!("/threads/{thread}/runs"), &question()), "run_id");
    let undone = files(&thread).join("workspace/undone.txt");
    eventually_here("the file", || undone.exists().then_some(()));
    ask("POST", &format!("/threads/{thread}/runs/{run}/cancel?wait=1&action=rollback"), &json!({}));
    assert!(!undone.exists() && files(&thread).join("outputs/kept.txt").exists());

    let runs = ask("GET", &format!("/threads/{thread}/runs"), &json!({}));
    let changed =
        |run: &str| ask("GET", &format!("/api/threads/{thread}/runs/{run}/workspace-changes"), &json!({}));
    let changes = changed(runs[0]["run_id"].as_str().unwrap());
    assert_eq!((&changes["available"], &changes["summary"]["created"]), (&json!(true), &json!(1)));
    assert_eq!(changes["files"][0]["path"], "/mnt/user-data/outputs/kept.txt");
    assert!(changes["files"][0]["diff"].as_str().unwrap().contains("+one"), "{changes}");

    let copy = text(&ask("POST", &format!("/threads/{thread}/copy"), &json!({})), "thread_id");
    let first = runs[0]["run_id"].as_str().unwrap();
    ask("DELETE", &format!("/threads/{thread}/runs/{first}"), &json!({}));
    assert!(!files(&thread).join("outputs/kept.txt").exists(), "the last run is undone with its files");
    ask("DELETE", &format!("/threads/{thread}"), &json!({}));
    assert!(!files(&thread).parent().unwrap().exists());
    assert_eq!(std::fs::read_to_string(files(&copy).join("outputs/kept.txt")).unwrap(), "one");
    served.process.terminate();
    let _ = served.process.wait().success();
}

#[test]
fn run_and_chat_ask_a_server_as_they_ask_themselves() {
    let bench = Bench::with([
        Turn::new().tool_call("c1", "bash", json!({"description": "compute", "command": "echo $((6 * 7))"})),
        Turn::new().text("It is 42.").usage(10, 3),
        Turn::new().text("Still 42."),
        Turn::new().text("42, I said."),
    ]);
    let served = Served::start(bench.hart());
    let url = format!("http://{}", served.address);
    // Another directory, without a model of its own.
    let elsewhere = tempfile::tempdir().unwrap();
    let ask = |args: &[&str]| {
        offline(elsewhere.path())
            .env("HART_SERVER", &url)
            .args(args.iter().copied())
            .stdin("and again\n")
            .run()
    };
    let ran = ask(&["run", "--thread", "sums", "6 times 7?"]).success();
    assert_eq!(ran.stdout, "It is 42.\n");
    assert!(ran.stderr.contains("● bash  compute") && ran.stderr.contains("✓ 42"), "{}", ran.stderr);
    assert!(ran.stderr.contains("new thread `sums`") && ran.stderr.contains("tokens: "), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("hart run --server {url} --thread sums")), "{}", ran.stderr);
    let json = ask(&["run", "--json", "--thread", "sums", "sure?"]).success();
    let last: Value = serde_json::from_str(json.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["data"]["status"]), (&json!("end"), &json!("success")));
    assert_eq!(ask(&["chat", "--thread", "sums"]).success().stdout, "42, I said.\n");
    assert!(!elsewhere.path().join(".hart").exists(), "all of it is at the server");

    let refused = ask(&["run", "--model", "nobody", "hi"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("there is no model `nobody`"), "{}", refused.stderr);
    for asked in [&["threads"][..], &["threads", "show", "sums"], &["run", "hi"]] {
        let (nowhere, at) = (format!("{url}/elsewhere"), ["--server"]);
        let lost = ask(&[asked, &at, &[nowhere.as_str()]].concat());
        assert!(lost.stderr.contains("not hart"), "the address is wrong, not what is asked: {}", lost.stderr);
    }
    served.process.terminate();
    let _ = served.process.wait().success();
    let gone = ask(&["run", "hi"]);
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(
        gone.stderr.contains("no hart answers at") && gone.stderr.contains("hart serve"),
        "{}",
        gone.stderr
    );
    let wrong = offline(elsewhere.path()).args(["run", "--server", "127.0.0.1:2026", "hi"]).run();
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("write it like http://127.0.0.1:2026"), "{}", wrong.stderr);
}

#[test]
fn several_harts_work_on_one_data_directory_at_once() {
    let words = |n: usize| Turn::new().text_fragments([format!("{n} "), "done".into()]);
    let bench = Bench::with((0..4).map(|n| words(n).event_delay(Duration::from_millis(100))));
    let served = Served::start(bench.hart());
    let running: Vec<Running> =
        (0..3).map(|n| bench.hart().args(["run", "--thread", &format!("t{n}"), "go"]).spawn()).collect();
    let asked = served.ask("POST", "/runs/wait", "", &question());
    assert!(asked.contains("done"), "{asked}");
    for run in running {
        let ran = run.wait().success();
        assert!(ran.stdout.ends_with("done\n"), "{}", ran.stdout);
    }
    let found = served.ask("POST", "/threads/search", "", &json!({"select": ["metadata", "status"]}));
    for name in ["t0", "t1", "t2"] {
        assert!(found.contains(&format!("\"name\":\"{name}\"")), "{found}");
    }
    assert!(!found.contains("error"), "{found}");
}

#[test]
fn a_thread_whose_hart_was_killed_goes_on() {
    let bench = Bench::with([Turn::hang(), Turn::new().text("here again")]);
    let running = bench.hart().args(["run", "--thread", "t", "remember this"]).spawn();
    super::errors::block_on(bench.server.wait_for_requests(1));
    let busy = bench.hart().args(["run", "--thread", "t", "hello?"]).run();
    assert_eq!(busy.code, Some(1), "{}", busy.stderr);
    assert!(busy.stderr.contains("thread `t` is busy"), "{}", busy.stderr);
    running.kill();
    assert_eq!(running.wait().signal, Some(9));
    let ran = bench.hart().args(["run", "--thread", "t", "go on"]).run().success();
    assert_eq!(ran.stdout, "here again\n");
    assert!(bench.server.last_request().texts_of("user").concat().contains("remember this"));
}

/// On a file system of a few megabytes that only the server sees; the test reaches it through the server's process.
#[test]
fn a_full_disk_makes_runs_wait_and_loses_nothing() {
    // More than fits into what the database has room for already.
    let words: Vec<String> = (0..60).map(|n| format!("word{n} {}", "x".repeat(16 * 1024))).collect();
    let bench = Bench::with([Turn::new().text_fragments(words).event_delay(Duration::from_millis(50))]);
    bench.write("config.yaml", "title: {enabled: false}\n");
    let home = bench.dir.path().join(".hart");
    std::fs::create_dir(&home).unwrap();
    let served = Served::start(bench.hart().on_a_disk_of(&home, "8m"));
    let inside = Path::new("/proc").join(served.process.pid().to_string()).join("root");
    let filler = inside.join(home.strip_prefix("/").unwrap()).join("filler");

    let other = json!({"thread_id": THREAD, "metadata": {"graph_id": "lead_agent"}});
    served.ask("POST", "/threads", "", &other);
    let mut asked = question();
    asked["stream_mode"] = json!(["messages-tuple", "custom"]);
    let mut stream = served.request("POST", "/runs/stream", "", &asked);
    read_until(&mut stream, "word0");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let told = read_until(&mut stream, "storage_full");
    assert!(told.contains("the disk is full; free some space"), "{told}");
    let found = served.ask("POST", "/threads/search", "", &json!({}));
    assert!(found.starts_with("HTTP/1.1 200"), "reading goes on: {found}");
    for (path, body) in [
        ("/threads".to_owned(), json!({})),
        (
            format!("/threads/{THREAD}/state"),
            json!({"values": {"messages": [{"role": "user", "content": "hello"}]}}),
        ),
    ] {
        let refused = served.ask("POST", &path, "", &body);
        assert!(refused.starts_with("HTTP/1.1 507"), "{path}: {refused}");
    }
    let metrics = served.ask("GET", "/metrics", "", &json!({}));
    assert!(metrics.contains("\nhart_store_full 1\n"), "{metrics}");

    drop(file);
    std::fs::remove_file(&filler).unwrap();
    let rest = read(stream);
    assert!(
        rest.contains("word59") && rest.contains("event: end") && !rest.contains("event: error"),
        "{rest}"
    );
    let metrics = served.ask("GET", "/metrics", "", &json!({}));
    assert!(metrics.contains("\nhart_store_full 0\n"), "{metrics}");
    served.process.terminate();
    let _ = served.process.wait().success();
}

/// A run is cut off, and the server that takes it up finds no room on the disk.
#[test]
fn a_server_starts_on_a_full_disk_and_goes_on_when_there_is_room() {
    let bench = Bench::with([Turn::new().text("half ").hang_after(1), Turn::new().text("The whole answer.")]);
    bench.write("config.yaml", "title: {enabled: false}\n");
    let served = Served::start(bench.hart());
    served.ask("POST", "/threads", "", &json!({"thread_id": THREAD}));
    let mut stream = served.request("POST", &format!("/threads/{THREAD}/runs/stream"), "", &question());
    read_until(&mut stream, "event: ");
    eventually_here("a request", || (!bench.server.requests().is_empty()).then_some(()));
    served.process.kill();
    let _ = served.process.wait();

    let home = bench.dir.path().join(".hart");
    let served = Served::start(bench.hart().on_a_full_disk_of(&home, "8m"));
    let thread = served.ask("GET", &format!("/threads/{THREAD}/state"), "", &json!({}));
    assert!(thread.starts_with("HTTP/1.1 200") && thread.contains("hello"), "reading goes on: {thread}");
    let refused = served.ask("POST", "/threads", "", &json!({}));
    assert!(refused.starts_with("HTTP/1.1 507"), "{refused}");
    let inside = Path::new("/proc").join(served.process.pid().to_string()).join("root");
    std::fs::remove_file(inside.join(home.strip_prefix("/").unwrap()).join("filler")).unwrap();
    let runs = ended(&served);
    assert!(runs.contains(r#""status":"success""#), "{runs}");
    let thread = served.ask("GET", &format!("/threads/{THREAD}/state"), "", &json!({}));
    assert!(thread.contains("The whole answer."), "{thread}");
}

/// Where a file was closed properly, SQLite has something to make beside it before it can be read.
#[test]
fn what_was_closed_properly_is_read_on_a_full_disk() {
    let bench = Bench::with([Turn::new().text("Good day.")]);
    bench.write("config.yaml", "title: {enabled: false}\n");
    let home = bench.dir.path().join(".hart");
    let _ = bench.hart().args(["run", "--thread", THREAD, "hello"]).run().success();
    let threads = bench.hart().on_a_full_disk_of(&home, "8m").args(["threads"]).run().success();
    assert!(threads.stdout.contains(THREAD), "{}", threads.stdout);
    let doctor = bench.hart().on_a_full_disk_of(&home, "8m").args(["doctor"]).run();
    assert!(doctor.stdout.contains("free some space on its disk"), "{}", doctor.stdout);
    let served = Served::start(bench.hart().on_a_full_disk_of(&home, "8m"));
    let state = served.ask("GET", &format!("/threads/{THREAD}/state"), "", &json!({}));
    assert!(state.starts_with("HTTP/1.1 200") && state.contains("Good day."), "{state}");
    let refused = served.ask("POST", "/threads", "", &json!({}));
    assert!(refused.starts_with("HTTP/1.1 507"), "{refused}");
    served.process.terminate();
    let _ = served.process.wait().success();

    std::fs::remove_file(home.join("hart.db-reserve")).unwrap();
    let threads = bench.hart().on_a_full_disk_of(&home, "8m").args(["threads"]).run();
    assert_eq!(threads.code, Some(1), "{}", threads.stdout);
    let told = &threads.stderr;
    assert!(told.contains("the disk is full; free some space and try again"), "{told}");

    let new = bench.dir.path().join("new");
    std::fs::create_dir(&new).unwrap();
    let begun = bench.hart().env("HART_HOME", &new).on_a_full_disk_of(&new, "1m").args(["run", "hi"]).run();
    assert_eq!(begun.code, Some(1), "{}", begun.stdout);
    assert!(begun.stderr.contains("the disk is full; free some space and try again"), "{}", begun.stderr);
}

#[test]
fn a_run_that_was_cut_off_goes_on_after_a_restart_unless_it_may_not() {
    for (options, status, calls) in [(&[][..], "success", 2), (&["--no-resume"][..], "error", 1)] {
        let bench =
            Bench::with([Turn::new().text("half ").hang_after(1), Turn::new().text("The whole answer.")]);
        bench.write("config.yaml", "title: {enabled: false}\n");
        let served = Served::start(bench.hart());
        let thread = served.ask("POST", "/threads", "", &json!({"thread_id": THREAD}));
        assert!(thread.starts_with("HTTP/1.1 200"), "{thread}");
        let mut stream = served.request("POST", &format!("/threads/{THREAD}/runs/stream"), "", &question());
        read_until(&mut stream, "event: ");
        eventually_here("a request", || (!bench.server.requests().is_empty()).then_some(()));
        served.process.kill();
        let _ = served.process.wait();

        let served = Served::start_with(bench.hart(), options);
        let ended = ended(&served);
        assert!(ended.contains(&format!(r#""status":"{status}""#)), "{options:?}: {ended}");
        assert_eq!(bench.server.requests().len(), calls, "{options:?}");
    }
}

#[test]
fn a_server_that_stops_is_no_client_that_leaves() {
    for way in ["stream", "wait"] {
        let bench =
            Bench::with([Turn::new().text("half ").hang_after(1), Turn::new().text("The whole answer.")]);
        bench.write("config.yaml", "title: {enabled: false}\nserver: {drain_seconds: 0}\n");
        let served = Served::start(bench.hart());
        served.ask("POST", "/threads", "", &json!({"thread_id": THREAD}));
        let mut asked = question();
        asked["on_disconnect"] = json!("cancel");
        let open = served.request("POST", &format!("/threads/{THREAD}/runs/{way}"), "", &asked);
        eventually_here("a request", || (!bench.server.requests().is_empty()).then_some(()));
        served.process.terminate();
        let _ = served.process.wait();
        let told = read(open);
        assert!(told.contains("transfer-encoding: chunked"), "{way}: {told}");
        assert!(!told.ends_with("0\r\n\r\n"), "{way}: it looks whole: {told}");

        let served = Served::start(bench.hart());
        let ended = ended(&served);
        assert!(ended.contains(r#""status":"success""#), "{way}: {ended}");
    }
}

#[test]
fn a_failed_run_of_the_lead_agent_says_where_and_why() {
    let bench = Bench::with([Turn::status(400).message("scripted failure")]);
    let served = Served::start(bench.hart());
    served.ask("POST", "/threads", "", &json!({"thread_id": THREAD}));
    let told = served.ask("POST", &format!("/threads/{THREAD}/runs/wait"), "", &question());
    assert!(told.contains("__error__"), "{told}");
    let state = served.ask("GET", &format!("/threads/{THREAD}/state"), "", &json!({}));
    let (_, body) = state.split_once("\r\n\r\n").unwrap();
    let state: Value = serde_json::from_str(body.trim()).unwrap();
    assert_eq!(state["next"], json!(["model"]), "{state}");
    assert!(state["tasks"][0]["error"].as_str().unwrap().contains("scripted failure"), "{state}");
}

pub(super) const THREAD: &str = "0199a0b1-0000-7000-8000-000000000001";
