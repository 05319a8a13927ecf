//! A line that is cut again and again, and a server that is started anew: nothing is lost, doubled or reordered.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hart_testkit::{PATIENCE, Turn, eventually_here};
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::Served;

const WORDS: usize = 5_000;
const THREAD: &str = "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a0aa";

/// Stands between the client and the server and cuts every line after some bytes.
struct Proxy {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// `least` to `most` bytes go through each line.
    fn start(server: SocketAddr, seed: u64, least: u64, most: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            server: Arc::new(Mutex::new(server)),
            cuts: Arc::default(),
        };
        let (server, cuts) = (Arc::clone(&proxy.server), Arc::clone(&proxy.cuts));
        std::thread::spawn(move || {
            let mut random = seed | 1;
            for line in listener.incoming() {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let allowed = least + random % (most - least);
                let to = *server.lock().unwrap();
                let Ok(line) = line else { return };
                pass(line, to, allowed, &cuts);
            }
        });
        proxy
    }

    fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// One connection at a time: the client has only one.
fn pass(mut line: TcpStream, server: SocketAddr, mut allowed: u64, cuts: &AtomicUsize) {
    let Ok(mut up) = TcpStream::connect(server) else { return };
    let mut request = [0; 4096];
    let Ok(count) = line.read(&mut request) else { return };
    if up.write_all(&request[..count]).is_err() {
        return;
    }
    let mut bytes = [0; 1024];
    while allowed > 0 {
        let Ok(count @ 1..) = up.read(&mut bytes) else { return };
        let count = count.min(usize::try_from(allowed).unwrap());
        allowed -= count as u64;
        if line.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    cuts.fetch_add(1, Ordering::SeqCst);
    let _ = line.shutdown(Shutdown::Both);
}

/// Reads whole frames until the line breaks or `last` is there. Comments are no frames.
fn read(address: SocketAddr, request: &str, frames: &mut Vec<String>, last: impl Fn(&str) -> bool) -> bool {
    let Ok(mut line) = TcpStream::connect(address) else { return false };
    if line.write_all(request.as_bytes()).is_err() {
        return false;
    }
    line.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut text, mut bytes, mut in_head) = (Vec::new(), [0; 4096], true);
    loop {
        let Ok(count @ 1..) = line.read(&mut bytes) else { return false };
        text.extend_from_slice(&bytes[..count]);
        while let Some(end) = text.windows(4).position(|end| end == b"\r\n\r\n") {
            let block = String::from_utf8(text.drain(..end + 4).collect()).unwrap();
            let block =
                block.rsplit_once("heartbeat\n\n").map_or(block.as_str(), |(_, rest)| rest).to_owned();
            if std::mem::take(&mut in_head) {
                assert!(block.starts_with("HTTP/1.0 200"), "{block}");
                continue;
            }
            frames.push(block);
            if last(frames.last().unwrap()) {
                return true;
            }
        }
    }
}

fn id(frame: &str) -> Option<&str> {
    frame.lines().find_map(|line| line.strip_prefix("id: "))
}

/// Without HTTP/1.1 there are no chunks: what is read is the stream.
fn get(path: &str, last: &str) -> String {
    format!("GET {path} HTTP/1.0\r\nhost: 127.0.0.1\r\nlast-event-id: {last}\r\n\r\n")
}

#[expect(clippy::disallowed_methods, reason = "another one each time, and it is printed")]
fn seed() -> u64 {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into();
    println!("seed: {seed}");
    seed
}

fn talkative() -> Bench {
    let words: Vec<String> = (0..WORDS).map(|n| format!("word{n} ")).collect();
    Bench::with([Turn::new().text_fragments(words).event_delay(Duration::from_micros(200))])
}

fn asked() -> Value {
    json!({
        "assistant_id": "lead_agent", "if_not_exists": "create", "context": {"mode": "flash"},
        // Small frames alone: one that is longer than a line lives would never arrive.
        "stream_mode": ["messages-tuple"],
        "input": {"messages": [{"role": "user", "content": "talk"}]},
    })
}

/// The run's address, when it is under way.
fn begin(served: &Served) -> String {
    let answer = served.ask("POST", &format!("/threads/{THREAD}/runs"), "", &asked());
    let place = answer.lines().find_map(|line| line.strip_prefix("content-location: ")).unwrap();
    place.trim().to_owned()
}

fn until_done(served: &Served, place: &str) {
    let is_done = || served.ask("GET", place, "", &Value::Null).contains("\"status\":\"success\"");
    eventually_here("the run ends", || is_done().then_some(()));
}

#[test]
fn a_stream_survives_two_hundred_cuts_and_two_restarts() {
    let bench = talkative();
    let mut served = Served::start(bench.hart());
    let place = begin(&served);
    let way = format!("{place}/stream");
    let proxy = Proxy::start(served.address, seed(), 2_000, 26_000);
    let is_last = |frame: &str| frame.starts_with("event: end");
    let mut frames: Vec<String> = Vec::new();
    let mut restarts = 0;
    loop {
        let last = frames.last().and_then(|frame| id(frame)).unwrap_or("-1").to_owned();
        if read(proxy.address, &get(&way, &last), &mut frames, is_last) {
            break;
        }
        if restarts < 2 && frames.len() > (restarts + 1) * WORDS / 3 {
            until_done(&served, &place);
            // Once with its leave, once without: by then all is on the disk.
            match restarts {
                0 => served.process.terminate(),
                _ => served.process.kill(),
            }
            let _ = served.process.wait();
            served = Served::start(bench.hart());
            *proxy.server.lock().unwrap() = served.address;
            restarts += 1;
        }
    }
    let mut whole = Vec::new();
    assert!(read(served.address, &get(&way, "-1"), &mut whole, is_last));
    assert!(whole.len() > WORDS, "{}", whole.len());
    assert_eq!(frames.len(), whole.len());
    let differs = frames.iter().zip(&whole).find(|(one, other)| one != other);
    assert_eq!(differs, None, "lost, doubled or reordered");
    assert_eq!(restarts, 2);
    assert!(proxy.cuts() >= 200, "{} cuts", proxy.cuts());
}

/// What each message of the model says in the end, as a client puts it together.
fn spoken(frames: &[String]) -> Vec<String> {
    let mut messages: Vec<(String, String)> = Vec::new();
    for frame in frames.iter().filter(|frame| frame.starts_with("event: messages")) {
        let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let message = &serde_json::from_str::<Value>(data).unwrap()[0];
        let id = message["id"].as_str().unwrap().to_owned();
        let text = message["content"].as_str().unwrap_or_default();
        match message["type"].as_str().unwrap() {
            "remove" => messages.retain(|(known, _)| *known != id),
            kind if !kind.starts_with("AI") => {}
            _ => match messages.iter_mut().find(|(known, _)| *known == id) {
                Some((_, said)) => said.push_str(text),
                None => messages.push((id, text.to_owned())),
            },
        }
    }
    messages.into_iter().map(|(_, said)| said).collect()
}

/// The server is killed in the middle of the run: what it told and had not kept is taken back, the rest comes once.
#[test]
fn a_stream_survives_a_kill_in_the_middle_of_its_run() {
    let words: Vec<String> = (0..WORDS).map(|n| format!("word{n} ")).collect();
    let turn = || Turn::new().text_fragments(words.clone()).event_delay(Duration::from_micros(200));
    let bench = Bench::with([turn(), turn()]);
    bench.write("config.yaml", "title: {enabled: false}\n");
    let mut served = Served::start(bench.hart());
    let place = begin(&served);
    let way = format!("{place}/stream");
    let proxy = Proxy::start(served.address, seed(), 2_000, 26_000);
    let is_last = |frame: &str| frame.starts_with("event: end");
    let (mut frames, mut killed): (Vec<String>, _) = (Vec::new(), false);
    loop {
        let last = frames.last().and_then(|frame| id(frame)).unwrap_or("-1").to_owned();
        if read(proxy.address, &get(&way, &last), &mut frames, is_last) {
            break;
        }
        if !killed && frames.len() > 100 {
            served.process.kill();
            let _ = served.process.wait();
            served = Served::start(bench.hart());
            *proxy.server.lock().unwrap() = served.address;
            killed = true;
        }
    }
    assert!(killed && bench.server.requests().len() == 2, "it was killed while the model spoke");
    assert_eq!(spoken(&frames), [words.concat()]);
    let mut whole = Vec::new();
    assert!(read(served.address, &get(&way, "-1"), &mut whole, is_last));
    let in_store: HashSet<&String> = whole.iter().collect();
    let kept: Vec<&String> = frames.iter().filter(|frame| in_store.contains(frame)).collect();
    let differs = kept.iter().zip(&whole).find(|(one, other)| **one != *other);
    assert_eq!((differs, kept.len()), (None, whole.len()), "lost, doubled or reordered");
}

#[test]
fn the_event_protocol_is_resumed_with_since() {
    let bench = talkative();
    let served = Served::start(bench.hart());
    let place = begin(&served);
    let path = format!("/threads/{THREAD}/stream/events");
    let post = |since: &str| {
        let filter = format!("{{\"channels\":[\"messages\",\"lifecycle\"],\"since\":{since}}}");
        let length = filter.len();
        format!("POST {path} HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n\r\n{filter}")
    };
    let is_last = |frame: &str| frame.contains("\"event\":\"completed\"");
    let proxy = Proxy::start(served.address, seed(), 60_000, 120_000);
    let mut frames: Vec<String> = Vec::new();
    loop {
        let last = frames.last().and_then(|frame| id(frame)).unwrap_or("0").to_owned();
        if read(proxy.address, &post(&last), &mut frames, is_last) {
            break;
        }
    }
    until_done(&served, &place);
    let mut whole = Vec::new();
    assert!(read(served.address, &post("0"), &mut whole, is_last));
    assert!(whole.len() > WORDS, "{}", whole.len());
    assert!(frames == whole, "lost, doubled or reordered");
    assert!(proxy.cuts() >= 10, "{} cuts", proxy.cuts());
}
