//! Readers that do not read: the run goes on, the others hear it all, and what they miss is not kept for them in memory.

use std::time::Duration;

use hart_models::ScriptedTurn;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::lines::Lines;
use crate::support::Server;

const WORDS: usize = 20_000;

fn says(modes: &[&str]) -> Value {
    let input = json!({"messages": [{"role": "user", "content": "talk"}]});
    json!({"assistant_id": "agent", "input": input, "stream_mode": modes})
}

/// Asks for a stream and then does nothing, with as little room for what comes as the system allows.
async fn sleeper(server: &Server, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    // It is served: the head is there.
    stream.read_exact(&mut [0; 12]).await.unwrap();
    stream
}

/// Also while the server is busy with something else, so that nobody is accepted for a while.
#[tokio::test]
async fn hundreds_of_clients_may_come_at_once() {
    let listener = hart_gateway::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let mut at_the_door = Vec::new();
    for _ in 0..500 {
        let coming = TcpStream::connect(listener.address());
        // Whoever is turned away knocks again until then, and in vain.
        let came = tokio::time::timeout(Duration::from_secs(10), coming).await;
        at_the_door.push(came.expect("there is room").unwrap());
    }
}

#[tokio::test]
async fn whoever_asks_nothing_or_half_is_not_waited_for_for_ever() {
    let listener = hart_gateway::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, stop) = (listener.address(), tokio_util::sync::CancellationToken::new());
    let listener = listener.patience(Duration::from_millis(50));
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(hart_gateway::serve_on(listener, axum::Router::new(), stop));
    for said in ["", "GET /ok HTTP/1.1\r\nHos", "GET /ok HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    }
}

#[tokio::test]
async fn a_reader_that_sleeps_holds_up_nobody_and_finds_everything_when_it_wakes() {
    let words: Vec<String> = (0..WORDS).map(|n| format!("w{n}")).collect();
    let text = words.join(" ");
    let server = Server::playing(vec![ScriptedTurn::text("first"), ScriptedTurn::text(text.clone())]).await;
    let thread = server.thread().await;
    // So that the thread's streams begin with a run that is over.
    server.post(&format!("/threads/{thread}/runs/wait"), says(&["values"])).await;
    let run = server.post(&format!("/threads/{thread}/runs"), says(&["messages-tuple"])).await;
    let way = format!("/threads/{thread}/runs/{}/stream", run["run_id"].as_str().unwrap());
    let get = |path: &str| format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nlast-event-id: -1\r\n\r\n");
    let filter = r#"{"channels":["messages"]}"#;
    let post = format!(
        "POST /threads/{thread}/stream/events HTTP/1.0\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{filter}",
        filter.len()
    );
    let mut asleep = Vec::new();
    for request in [get(&way), get(&format!("/threads/{thread}/stream")), post] {
        asleep.push(sleeper(&server, &request).await);
    }
    let dead = sleeper(&server, &get(&way)).await;
    // One who reads hears all of it, and the run ends, whatever the others do.
    let mut awake = Lines::open(server.request(Method::GET, &way).header("last-event-id", "-1")).await;
    let told = awake.until(|line| line.event == "end").await;
    drop(dead);
    let spoken = |lines: &[crate::lines::Line]| -> String {
        let messages = lines.iter().filter(|line| line.event == "messages");
        messages.map(|line| line.data[0]["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(spoken(&told), text);
    // The one that slept gets the same now, most of it from the disk: memory keeps only the newest events of a run.
    let mut first = asleep.remove(0);
    let mut whole = String::new();
    first.read_to_string(&mut whole).await.unwrap();
    let ids = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.trim().to_owned()).collect()
    };
    assert_eq!(ids(&whole), told.iter().map(|line| line.id.clone()).collect::<Vec<_>>());
    drop(asleep);
    server.close().await;
}
