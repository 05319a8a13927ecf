//! Readers that ask for a stream and never read it, and what the server holds for them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hart_testkit::{Turn, eventually_here};
use serde_json::{Value, json};

use super::bench::Bench;
use super::damage::thread;
use super::serve::Served;

/// What one may cost, in KiB.
const COST: usize = 64;
/// Enough of them that what the process needs for itself, whoever reads, does not count.
const MANY: usize = 96;

/// More than a connection and its other end hold.
fn talk() -> Turn {
    let words = (0..2000).map(|n| format!("{n} {} ", "much ".repeat(100)));
    Turn::new().text_fragments(words.collect::<Vec<_>>())
}

/// The address of a run on a thread of its own, when it was admitted.
fn begin(served: &Served) -> String {
    let asked = json!({
        "assistant_id": "lead_agent", "context": {"mode": "flash"},
        "input": {"messages": [{"role": "user", "content": "talk"}]},
    });
    let answer = served.ask("POST", &format!("/threads/{}/runs", thread(served)), "", &asked);
    let place = answer.lines().find_map(|line| line.strip_prefix("content-location: ")).unwrap();
    place.trim().to_owned()
}

fn until_done(served: &Served, place: &str) {
    let is_done = || served.ask("GET", place, "", &Value::Null).contains("\"status\":\"success\"");
    eventually_here("the run ends", || is_done().then_some(()));
}

/// They ask for all of the run, and are served, and do nothing more.
fn stuck(served: &Served, place: &str, count: usize) -> Vec<TcpStream> {
    let path = format!("{place}/stream?stream_mode=messages-tuple");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nlast-event-id: -1\r\n\r\n", served.address);
    let one = |_| {
        let mut line = TcpStream::connect(served.address).unwrap();
        line.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        line.read_exact(&mut head).unwrap();
        assert_eq!(head, *b"HTTP/1.1 200");
        line
    };
    (0..count).map(one).collect()
}

/// What memory the server has of its own, in KiB, once it does nothing more.
fn memory(served: &Served) -> usize {
    let now = || {
        let status = fs::read_to_string(format!("/proc/{}/status", served.process.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    let (mut last, mut same) = (now(), 0);
    eventually_here("the server comes to rest", || {
        std::thread::sleep(Duration::from_millis(100));
        let is = now();
        same = if is == last { same + 1 } else { 0 };
        last = is;
        (same == 10).then_some(is)
    })
}

/// What each of many costs a server, in KiB.
fn cost() -> usize {
    let bench = Bench::with((0..4).map(|_| talk()));
    bench.write("config.yaml", "title: {enabled: false}\n");
    // Without places of their own for threads, in which what was given back would be counted.
    let served = Served::start(bench.hart().env("MALLOC_ARENA_MAX", "1"));
    let mut asleep = Vec::new();
    // What there is more of when a run has ended: its log stays at hand for a while, whoever reads it.
    let mut live = |count| {
        let (before, place) = (memory(&served), begin(&served));
        asleep.extend(stuck(&served, &place, count));
        until_done(&served, &place);
        (place, memory(&served).saturating_sub(before))
    };
    live(0);
    let ((_, one), (_, other), (place, many)) = (live(0), live(0), live(MANY));
    // As many again come when it is over, and read from the disk. What the others needed for a moment serves them.
    let before = memory(&served);
    asleep.extend(stuck(&served, &place, MANY));
    let late = memory(&served).saturating_sub(before);
    println!(
        "KiB: {one} and {other} for a run, {many} for one with {MANY} readers, {late} for {MANY} late ones"
    );
    drop(asleep);
    served.process.terminate();
    let _ = served.process.wait();
    (many + late).saturating_sub(one.min(other)) / (2 * MANY)
}

/// What all of them need for a moment cannot always be given back, when a busy machine lets many have it at once: that is
/// not what they cost, and not so every time.
#[test]
fn a_reader_that_never_reads_costs_at_most_64_kib() {
    let mut costs = Vec::new();
    while costs.len() < 3 && costs.last().is_none_or(|cost| *cost > COST) {
        costs.push(cost());
    }
    assert!(costs.last().is_some_and(|cost| *cost <= COST), "{costs:?} KiB each");
}
