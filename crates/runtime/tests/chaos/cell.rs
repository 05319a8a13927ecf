//! One scenario in a home of its own: its processes, one after the other, and whoever counts what they do.

use std::cell::Cell as Slot;
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hart_testkit::PATIENCE;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_long;
use super::scenarios::Scenario;

/// Where a process is told what it is.
pub(crate) const ROLE: &str = "HART_CHAOS_PROCESS";

/// What a process is to do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(crate) home: PathBuf,
    pub(crate) oracle: u16,
    pub(crate) plan: String,
    /// At how many messages a conversation is summed up.
    pub(crate) compact_at: usize,
    /// Where to die.
    pub(crate) fuse: String,
    /// Leaves its run to the next one as soon as something has happened in it.
    pub(crate) leaves: bool,
    /// How many there were before it.
    pub(crate) nth: u32,
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

pub(crate) struct Cell {
    home: tempfile::TempDir,
    oracle: Oracle,
    plan: String,
    compact_at: usize,
    mark: String,
    /// How many processes there were.
    began: Slot<u32>,
}

impl Cell {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mark = format!("mark-{}", uuid::Uuid::now_v7());
        Self {
            home: tempfile::tempdir().unwrap(),
            oracle: Oracle::start(),
            plan: scenario.plan.to_string().replace("MARK", &mark),
            compact_at: scenario.compact_at,
            mark,
            began: Slot::new(0),
        }
    }

    /// As its processes are told.
    pub(crate) fn role(&self, fuse: &str) -> Role {
        Role {
            home: self.home.path().to_owned(),
            oracle: self.oracle.port,
            plan: self.plan.clone(),
            compact_at: self.compact_at,
            fuse: fuse.to_owned(),
            leaves: false,
            nth: self.began.replace(self.began.get() + 1),
        }
    }

    pub(crate) fn process(&self, role: &Role) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "chaos::process::to_be_killed", "--nocapture", "--test-threads=1"])
            .env(ROLE, serde_json::to_string(role).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// To its end; whether it was killed.
    pub(crate) fn run(&self, fuse: &str) -> bool {
        self.play(&self.role(fuse))
    }

    /// As long as it is let; whether it was killed.
    pub(crate) fn run_for(&self, time: Duration) -> bool {
        let role = self.role("");
        let mut process = self.process(&role);
        let status = ended(&mut process, time).unwrap_or_else(|| {
            process.kill().unwrap();
            process.wait().unwrap()
        });
        was_killed(status, &role)
    }

    pub(crate) fn play(&self, role: &Role) -> bool {
        let mut process = self.process(role);
        // The longest run has hundreds of steps.
        let patience = if is_long() { PATIENCE * 8 } else { PATIENCE };
        let status = ended(&mut process, patience);
        let status = status.unwrap_or_else(|| panic!("{}: a process does not end", role.fuse));
        was_killed(status, role)
    }

    /// How often the last process passed each place.
    pub(crate) fn counts(&self) -> HashMap<String, u32> {
        let counts = std::fs::read(self.home.path().join("counts.json")).unwrap();
        serde_json::from_slice(&counts).unwrap()
    }

    /// What really happened, by what it is.
    pub(crate) fn effects(&self) -> HashMap<String, usize> {
        self.oracle.counts()
    }

    pub(crate) fn nobody_is_left(&self) -> bool {
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

/// How it ended, if it does within this time.
fn ended(process: &mut Child, within: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + within;
    loop {
        let status = process.try_wait().unwrap();
        if status.is_some() || Instant::now() >= until {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn was_killed(status: ExitStatus, role: &Role) -> bool {
    assert!(status.success() || status.signal() == Some(9), "{}: {status}", role.fuse);
    !status.success()
}

/// What a plan says to a model: a list of batches of calls, or a number of times and the list, in which `#` is the how
/// manyth time it is.
pub(crate) fn batches(plan: &str) -> Option<Vec<Vec<(String, Value)>>> {
    #[derive(Deserialize)]
    struct Again {
        times: usize,
        batches: Value,
    }
    if let Ok(Again { times, batches }) = serde_json::from_str(plan) {
        let text = batches.to_string();
        let once = |nth: usize| serde_json::from_str::<Vec<_>>(&text.replace('#', &nth.to_string())).unwrap();
        return Some((0..times).flat_map(once).collect());
    }
    serde_json::from_str(plan).ok()
}
