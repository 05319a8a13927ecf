//! A data directory that something happened to, and a machine that has nothing left: told, and nothing more is lost.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use hart_testkit::{Dialect, Turn, eventually_here};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::{Served, question, read, read_until};

fn database(bench: &Bench) -> PathBuf {
    bench.dir.path().join(".hart/hart.db")
}

pub(super) fn thread(served: &Served) -> String {
    let answer = served.ask("POST", "/threads", "", &json!({}));
    let body = answer.split_once("\r\n\r\n").unwrap().1.trim();
    let body: Value = serde_json::from_str(body).unwrap();
    body["thread_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_log_that_was_cut_is_told_and_the_rest_is_served() {
    let bench = Bench::answering(Dialect::OpenAi, |_| Turn::new().text("always the same"));
    bench.write("config.yaml", "title: {enabled: false}\n");
    let served = Served::start(bench.hart());
    let thread = thread(&served);
    for _ in 0..2 {
        served.ask("POST", &format!("/threads/{thread}/runs/wait"), "", &question());
    }
    served.process.kill();
    let _ = served.process.wait();
    let log = fs::OpenOptions::new().write(true).open(database(&bench).with_extension("db-wal")).unwrap();
    log.set_len(log.metadata().unwrap().len() / 10 * 9).unwrap();

    let served = Served::start(bench.hart());
    eventually_here("the warning", || {
        served.process.stderr_so_far().contains("database_older").then_some(())
    });
    let state = served.ask("GET", &format!("/threads/{thread}/state"), "", &Value::Null);
    assert!(state.starts_with("HTTP/1.1 200") && state.contains("always the same"), "{state}");
    let answer = served.ask("POST", &format!("/threads/{thread}/runs/wait"), "", &question());
    assert!(answer.contains("always the same"), "{answer}");
    served.process.terminate();
    let _ = served.process.wait();
    // Said once: from here on it is what it is.
    let served = Served::start(bench.hart());
    assert!(!served.process.stderr_so_far().contains("database_older"));
}

#[test]
fn a_database_of_a_newer_hart_or_none_at_all_is_refused_and_left_alone() {
    let bench = Bench::with([]);
    let served = Served::start(bench.hart());
    served.process.terminate();
    let _ = served.process.wait();
    let copy = bench.dir.path().join("copy.db");
    let _ = bench.hart().arg("backup").arg(&copy).run().success();
    fs::remove_dir_all(bench.dir.path().join(".hart")).unwrap();
    fs::create_dir(bench.dir.path().join(".hart")).unwrap();
    // A copy has no log of its own that would hide what is done to it.
    fs::copy(&copy, database(&bench)).unwrap();
    // Where SQLite keeps the version of what is in it, and where it says what it is.
    for (at, told) in [(60, "is of a newer hart"), (0, "is damaged")] {
        let path = database(&bench);
        let whole = fs::read(&path).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[0x7F; 4]).unwrap();
        drop(file);
        let broken = fs::read(&path).unwrap();
        let finished = bench.hart().args(["serve", "--port", "0"]).run();
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
        assert_ne!(finished.code, Some(0));
        let examined = bench.hart().env("OPENAI_MODEL", "mock").arg("doctor").run();
        assert!(examined.code == Some(1) && examined.stdout.contains(told), "{}", examined.stdout);
        assert_eq!(fs::read(&path).unwrap(), broken, "nothing is written to it");
        fs::write(&path, whole).unwrap();
    }
    Served::start(bench.hart()).process.terminate();
}

#[test]
fn a_damaged_thread_is_listed_with_the_others_and_says_so_itself() {
    let bench = Bench::answering(Dialect::OpenAi, |request| {
        let asked = request.body.to_string();
        Turn::new().text(if asked.contains("of the ill one") { "an ill word" } else { "a sound word" })
    });
    bench.write("config.yaml", "title: {enabled: false}\n");
    let served = Served::start(bench.hart());
    let threads = [thread(&served), thread(&served)];
    for (thread, words) in threads.iter().zip(["of the ill one", "of the sound one"]) {
        let body = json!({
            "assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": words}]},
        });
        served.ask("POST", &format!("/threads/{thread}/runs/wait"), "", &body);
    }
    served.process.terminate();
    let _ = served.process.wait();
    let mut bytes = fs::read(database(&bench)).unwrap();
    let words = b"an ill word";
    let found: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(words)).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|at| bytes[at] ^= 1);
    fs::write(database(&bench), bytes).unwrap();

    let listed = bench.hart().args(["threads", "--json"]).run().success();
    let served = Served::start(bench.hart());
    let found = served.ask("POST", "/threads/search", "", &json!({}));
    assert!(found.starts_with("HTTP/1.1 200") && found.contains("a sound word"), "{found}");
    for thread in &threads {
        assert!(listed.stdout.contains(thread) && found.contains(thread), "{} {found}", listed.stdout);
    }
    let state = |thread: &str| served.ask("GET", &format!("/threads/{thread}/state"), "", &Value::Null);
    assert!(state(&threads[0]).contains("cannot be read"), "{}", state(&threads[0]));
    assert!(state(&threads[1]).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_data_directory_that_is_none_is_told_by_whoever_looks_into_it() {
    let bench = Bench::with([]);
    bench.write("file", "no directory");
    let hart = || bench.hart().env("HART_HOME", bench.dir.path().join("file").to_str().unwrap());
    let listed = hart().arg("threads").run();
    assert!(listed.code != Some(0) && listed.stderr.contains("cannot use"), "{}", listed.stderr);
    let examined = hart().env("OPENAI_MODEL", "mock").arg("doctor").run();
    assert!(examined.code == Some(1) && examined.stdout.contains("✗ data"), "{}", examined.stdout);
}

#[test]
fn without_file_descriptors_new_clients_wait_and_runs_go_on() {
    let words: Vec<String> = (0..40).map(|n| format!("word{n} ")).collect();
    let bench = Bench::with([Turn::new().text_fragments(words).event_delay(Duration::from_millis(50))]);
    bench.write("config.yaml", "title: {enabled: false}\n");
    let served = Served::start(bench.hart());
    let mut asked = question();
    asked["stream_mode"] = json!("messages-tuple");
    let mut stream = served.request("POST", "/runs/stream", "", &asked);
    let begun = read_until(&mut stream, "word0");
    let pid = Pid::from_raw(i32::try_from(served.process.pid()).unwrap()).unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", served.process.pid())).unwrap().count() as u64;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let before = prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(open), maximum }).unwrap();

    // The kernel lets them in; nobody is there to hear them.
    let mut waiting: Vec<TcpStream> =
        (0..8).map(|_| served.request("POST", "/threads/search", "", &json!({}))).collect();
    let rest = read(stream);
    assert!(rest.contains("word39") && rest.contains("event: end"), "{begun}{rest}");
    assert!(!rest.contains("event: error"), "{rest}");

    let told = || served.process.stderr_so_far().contains("Too many open files");
    eventually_here("the operator is told", || told().then_some(()));

    prlimit(Some(pid), Resource::Nofile, before).unwrap();
    for client in &mut waiting {
        client.set_read_timeout(Some(hart_testkit::PATIENCE)).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    served.process.terminate();
    let _ = served.process.wait();
}
