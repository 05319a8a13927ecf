//! Real processes killed at every named place and at any moment: what they leave is what an undisturbed one leaves.
//!
//! A few cells of the matrix run with the other tests; `make chaos` runs all of them.
#![allow(
    clippy::disallowed_methods,
    reason = "a test is a process of its own, and told so by its environment"
)]

mod agents;
mod fuse;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_kernel::SystemClock;
use hart_runtime::port::{EventScope, RunQuery, Store};
use hart_runtime::recording::Reel;
use hart_runtime::*;
use hart_store::SqliteStore;
use hart_testkit::eventually_here;
use hart_types::{RunStatus, ThreadStatus};
use serde_json::{Value, json};

use self::agents::Agents;
use self::fuse::Fuse;
use crate::surrounded::Surrounded;
use crate::told::{Told, sort_batches, told, transcript};

const ROLE: &str = "HART_CHAOS_PROCESS";

/// The scenarios: a name, and the plan the model follows. `MARK` becomes a text that is found nowhere else.
fn scenarios() -> Vec<(&'static str, Value)> {
    let file = "/mnt/user-data/workspace/notes.txt";
    vec![
        (
            "linear",
            json!([[["notify", {"what": "one"}]], [["peek", {"what": "two"}]], [["put", {"what": "three"}]]]),
        ),
        (
            "parallel",
            json!([[["notify", {"what": "a"}], ["notify", {"what": "b"}], ["put", {"what": "c"}], ["peek", {"what": "d"}]]]),
        ),
        (
            "question",
            json!([[["notify", {"what": "before"}]], [["ask", {"what": "may I?"}], ["notify", {"what": "meanwhile"}]], [["notify", {"what": "after"}]]]),
        ),
        (
            "edit",
            json!([
                [["write_file", {"path": file, "content": "one\n"}]],
                [["write_file", {"path": file, "content": "two\n", "append": true}]],
                [["str_replace", {"path": file, "old_str": "two", "new_str": "two two"}]],
                [["read_file", {"path": file}]],
            ]),
        ),
        (
            "command",
            json!([
                [["bash", {"command": "echo begun >> log; : MARK; sleep 0.3; echo ended >> log; cat log"}]],
                [["read_file", {"path": "/mnt/user-data/workspace/log"}]],
            ]),
        ),
        (
            "compaction",
            json!([
                [["notify", {"what": "one"}]], [["put", {"what": "two"}]], [["notify", {"what": "three"}]],
                [["peek", {"what": "four"}], ["notify", {"what": "five"}]], [["notify", {"what": "six"}]],
                [["put", {"what": "seven"}]],
            ]),
        ),
    ]
}

/// Counts what was really done, whoever asked for it.
#[derive(Default)]
struct Oracle {
    port: u16,
    done: Arc<Mutex<Vec<(String, String)>>>,
}

impl Oracle {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let done: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let heard = Arc::clone(&done);
        std::thread::spawn(move || {
            for asked in listener.incoming().flatten() {
                let mut asked = BufReader::new(asked);
                let mut line = String::new();
                if asked.read_line(&mut line).unwrap_or(0) > 0 {
                    let (what, key) = line.trim_end().rsplit_once(' ').unwrap();
                    heard.lock().unwrap().push((what.to_owned(), key.to_owned()));
                    let _ = asked.get_mut().write_all(b"ok\n");
                }
            }
        });
        Self { port, done }
    }

    /// How often each thing happened. What services know by its key happens once under one key.
    fn counts(&self) -> HashMap<String, usize> {
        let mut counts: HashMap<String, Vec<String>> = HashMap::new();
        for (what, key) in self.done.lock().unwrap().iter() {
            let keys = counts.entry(what.clone()).or_default();
            if !(what.starts_with("put ") && keys.contains(key)) {
                keys.push(key.clone());
            }
        }
        counts.into_iter().map(|(what, keys)| (what, keys.len())).collect()
    }
}

/// One scenario in a home of its own.
struct Cell {
    home: tempfile::TempDir,
    oracle: Oracle,
    plan: Value,
    mark: String,
}

impl Cell {
    fn new(plan: &Value) -> Self {
        let mark = format!("mark-{}", uuid::Uuid::now_v7());
        let plan = serde_json::from_str(&plan.to_string().replace("MARK", &mark)).unwrap();
        Self { home: tempfile::tempdir().unwrap(), oracle: Oracle::start(), plan, mark }
    }

    fn process(&self, fuse: &str) -> Child {
        let role = json!({
            "home": self.home.path(), "oracle": self.oracle.port, "plan": self.plan.to_string(), "fuse": fuse,
        });
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "chaos::a_process_to_be_killed", "--nocapture", "--test-threads=1"])
            .env(ROLE, role.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// To its end; whether it was killed.
    fn run(&self, fuse: &str) -> bool {
        let mut process = self.process(fuse);
        let status = eventually_here("a process ends", || process.try_wait().unwrap());
        assert!(status.success() || status.signal() == Some(9), "{fuse}: {status}");
        !status.success()
    }

    /// What is left when all is over.
    fn outcome(&self) -> Outcome {
        assert!(self.nobody_is_left(), "a command outlived its process");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let done = runtime.block_on(async {
            let store = SqliteStore::open(&self.home.path().join("hart.db")).unwrap();
            read(Arc::new(store), self.home.path(), self.oracle.port).await
        });
        Outcome { effects: self.oracle.counts(), ..done }
    }

    fn nobody_is_left(&self) -> bool {
        let is_there = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
                .any(|line| String::from_utf8_lossy(&line).contains(&self.mark))
        };
        (0..100).any(|_| {
            let gone = !is_there();
            if !gone {
                std::thread::sleep(Duration::from_millis(100));
            }
            gone
        })
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    /// `(kind, text)` of every message of the thread.
    transcript: Vec<(String, String)>,
    /// The same as a reader of the streams puts it together.
    streamed: Vec<(String, String)>,
    effects: HashMap<String, usize>,
    workspace: Vec<(String, String)>,
    /// Whether the model was shown a summary in place of what was said.
    compacted: bool,
    /// Steps and tool calls of each run, as its recording has them.
    recorded: Vec<(u32, u64)>,
}

impl Outcome {
    /// Whether whoever followed the streams knows what the thread holds. Results of one batch are told as they come, and
    /// are in the thread in the order of their calls.
    fn is_told(&self) -> bool {
        let mut transcript = self.transcript.clone();
        sort_batches(&mut transcript);
        self.streamed == transcript
    }
}

const UNKNOWN: &str = "not known whether it took effect";

/// The outcome is that of an undisturbed run, but for what is said to be unknown.
fn assert_same(place: &str, outcome: Outcome, expected: &Outcome) {
    let unknown: Vec<bool> = outcome.transcript.iter().map(|(_, text)| text.contains(UNKNOWN)).collect();
    let has_unknown = unknown.contains(&true);
    assert_eq!(outcome.transcript.len(), expected.transcript.len(), "{place}: {:#?}", outcome.transcript);
    assert!(outcome.is_told(), "{place}: the stream has holes: {outcome:#?}");
    assert_eq!(outcome.compacted, expected.compacted, "{place}");
    for ((found, wanted), unknown) in outcome.transcript.iter().zip(&expected.transcript).zip(&unknown) {
        // Of a command that was cut off, a file tells how far it came.
        let differs = *unknown || (place.starts_with("command") && has_unknown && found.0 == "tool");
        if !differs {
            assert_eq!(found, wanted, "{place}");
        }
    }
    for (what, wanted) in &expected.effects {
        let found = outcome.effects.get(what).copied().unwrap_or(0);
        if what.starts_with("peek ") {
            continue;
        }
        assert!(found <= *wanted, "{place}: {what} happened {found} times");
        assert!(found == *wanted || has_unknown, "{place}: {what} did not happen, and nobody said so");
    }
    assert_eq!(outcome.recorded, expected.recorded, "{place}: the recording holds every step once");
    if !has_unknown {
        assert_eq!(outcome.workspace, expected.workspace, "{place}");
    }
    let log = outcome.workspace.iter().find(|(name, _)| name == "log").map_or("", |(_, text)| text.as_str());
    assert!(log.matches("begun").count() <= 1, "{place}: the command ran twice: {log:?}");
}

/// What [`Cell::process`] does; by itself it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_to_be_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let role: Value = serde_json::from_str(&role).unwrap();
    let home = PathBuf::from(role["home"].as_str().unwrap());
    let fuse = Fuse::parse(role["fuse"].as_str().unwrap());
    let oracle = u16::try_from(role["oracle"].as_u64().unwrap()).unwrap();
    let inner = SqliteStore::open(&home.join("hart.db")).unwrap();
    let store: Arc<dyn Store> = Arc::new(Surrounded { inner, by: Arc::clone(&fuse) });
    let runtime = open(store, &home, oracle, &fuse).await;
    let plan = format!("PLAN {}", role["plan"].as_str().unwrap());
    let words = Input::Values(object(json!({"messages": [{"role": "user", "content": plan}]})));
    finish(&runtime, "words", words).await;
    let thread = runtime.store().thread(&"t".into()).await.unwrap().unwrap();
    let answered =
        runtime.store().runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap().len() > 1;
    if thread.status == ThreadStatus::Interrupted || answered {
        finish(&runtime, "answer", Input::Resume { answer: json!("yes"), update: object(json!({})) }).await;
    }
    runtime.close(Duration::from_secs(20)).await;
    let counts = serde_json::to_vec(&fuse.counts()).unwrap();
    std::fs::write(home.join("counts.json"), counts).unwrap();
}

/// Asked again after a crash, the same key is the same run.
async fn finish(runtime: &Runtime, key: &str, input: Input) {
    let request = StartRun {
        thread: Some("t".into()),
        create_thread: true,
        idempotency_key: Some(key.to_owned()),
        ..StartRun::new("agent", "agent".into(), input)
    };
    let run = runtime.start(request).await.unwrap();
    runtime.wait(&run.id).await;
    let run = runtime.store().run(&run.id).await.unwrap().unwrap();
    assert_eq!(run.status, RunStatus::Success, "{:?}", run.error);
}

async fn open(store: Arc<dyn Store>, home: &Path, oracle: u16, fuse: &Arc<Fuse>) -> Runtime {
    let agents = Agents { home: home.to_owned(), oracle, fuse: Arc::clone(fuse) };
    let parts = Parts {
        store,
        agents: Arc::new(agents),
        workspaces: Arc::new(NoWorkspaces),
        clock: Arc::new(SystemClock),
    };
    Runtime::open(parts).await.unwrap()
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn read(store: Arc<dyn Store>, home: &Path, oracle: u16) -> Outcome {
    let runs = store.runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap();
    assert!(runs.iter().all(|run| run.status == RunStatus::Success), "{runs:#?}");
    let events = store.events(&EventScope::Thread("t".into()), 0, 100_000).await.unwrap();
    let compacted =
        events.iter().any(|event| String::from_utf8_lossy(&event.payload).contains("context_compacted"));
    let Told { messages: mut streamed, ended } = told(&events);
    assert_eq!(ended, runs.len(), "every run's log ends once");
    let mut recorded = Vec::new();
    for run in &runs {
        let sums = Reel::load(store.as_ref(), &run.id).await.unwrap().sums();
        recorded.push((sums.steps, sums.tool_calls));
    }
    let runtime = open(store, home, oracle, &Fuse::parse("")).await;
    let state = runtime.state(&"t".into(), None).await.unwrap();
    let values: Value = serde_json::from_slice(&state.values).unwrap();
    let transcript = transcript(&values);
    sort_batches(&mut streamed);
    let workspace = home.join("users/default/threads/t/user-data/workspace");
    let mut files: Vec<_> = std::fs::read_dir(workspace)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    Outcome { transcript, streamed, effects: HashMap::new(), workspace: files, compacted, recorded }
}

/// The operations a run's life is made of.
const PLACES: [&str; 11] = [
    "create_thread",
    "admit",
    "claim",
    "append_steps",
    "append_events",
    "begin_effect",
    "effect",
    "finish_effect",
    "end_run",
    "numbers",
    "join",
];

/// All of the matrix, or a few cells of it.
fn is_long() -> bool {
    std::env::var("HART_CHAOS").is_ok_and(|how| how == "long")
}

/// An undisturbed run: what must come out, and how often each place is passed.
fn undisturbed(plan: &Value) -> (Outcome, HashMap<String, u32>) {
    let cell = Cell::new(plan);
    assert!(!cell.run(""));
    let counts = std::fs::read(cell.home.path().join("counts.json")).unwrap();
    let outcome = cell.outcome();
    assert!(outcome.is_told(), "{outcome:#?}");
    (outcome, serde_json::from_slice(&counts).unwrap())
}

fn killed_everywhere(scenario: &str) {
    let (_, plan) = scenarios().into_iter().find(|(name, _)| *name == scenario).unwrap();
    let (expected, counts) = undisturbed(&plan);
    assert_eq!(expected.compacted, scenario == "compaction");
    let mut cells = Vec::new();
    for place in PLACES {
        let passed = counts.get(place).copied().unwrap_or(0);
        for nth in 1..=passed {
            // In the short matrix one passage of each place, another one for each scenario.
            let picked = 1 + u32::try_from(scenario.len() + place.len()).unwrap() % passed;
            if is_long() || nth == picked {
                let sides = if is_long() {
                    vec!["before", "after"]
                } else {
                    vec![["before", "after"][(place.len() + scenario.len()) % 2]]
                };
                cells.extend(sides.into_iter().map(|when| format!("{when}:{place}:{nth}")));
            }
        }
    }
    let left = Mutex::new(cells);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(place) = left.lock().unwrap().pop() else { return };
                    let cell = Cell::new(&plan);
                    let killed = cell.run(&place);
                    // Events are written in groups, so a late one may be passed less often.
                    assert!(killed || place.contains("append_events"), "{scenario} {place}: it survived");
                    for attempt in 0.. {
                        assert!(attempt < 3, "{scenario} {place}: it does not end");
                        if !cell.run("") {
                            break;
                        }
                    }
                    assert_same(&format!("{scenario} {place}"), cell.outcome(), &expected);
                }
            });
        }
    });
}

#[test]
fn a_linear_run_is_killed_everywhere() {
    killed_everywhere("linear");
}

#[test]
fn a_run_with_parallel_calls_is_killed_everywhere() {
    killed_everywhere("parallel");
}

#[test]
fn a_run_with_a_question_is_killed_everywhere() {
    killed_everywhere("question");
}

#[test]
fn a_run_that_edits_files_is_killed_everywhere() {
    killed_everywhere("edit");
}

#[test]
fn a_run_that_is_compacted_is_killed_everywhere() {
    killed_everywhere("compaction");
}

#[test]
fn a_run_with_a_command_is_killed_everywhere() {
    killed_everywhere("command");
}

/// Kills at moments that nobody chose, until the run is through.
#[test]
fn runs_are_killed_at_any_moment() {
    let rounds = if is_long() { 300 } else { 5 };
    let plans: Vec<_> =
        scenarios().into_iter().map(|(name, plan)| (name, undisturbed(&plan).0, plan)).collect();
    // A simple generator whose seed is printed: the moments can be had again, the machine's own timing cannot.
    let seed = uuid::Uuid::now_v7().as_u128() as u64;
    println!("seed {seed}");
    let mut random = seed | 1;
    for round in 0..rounds {
        let (name, expected, plan) = &plans[round % plans.len()];
        let cell = Cell::new(plan);
        let mut killed = 0;
        loop {
            let mut process = cell.process("");
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Not for ever: a run that gets nowhere five times is given up.
            let patience = if killed < 4 { 30 + (random >> 33) % 400 } else { 60_000 };
            assert!(killed < 6, "{name}, seed {seed}: it does not end");
            let until = std::time::Instant::now() + Duration::from_millis(patience);
            let status = loop {
                if let Some(status) = process.try_wait().unwrap() {
                    break Some(status);
                }
                if std::time::Instant::now() >= until {
                    process.kill().unwrap();
                    process.wait().unwrap();
                    break None;
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            match status {
                Some(status) => {
                    assert!(status.success(), "{name}, seed {seed}: {status}");
                    break;
                }
                None => killed += 1,
            }
        }
        assert_same(&format!("{name}, killed {killed} times, seed {seed}"), cell.outcome(), expected);
    }
}
