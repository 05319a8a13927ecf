//! The HTTP client against servers that are not what they should be. What it does against hart itself is tested beside
//! the embedded client, in `app`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use hart_client::{Ask, Client, ClientError, Event, HttpClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Answers every connection with the same bytes.
async fn server(answer: &'static str) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, tasks)
}

/// Answers by what is asked, and remembers it: the first line and the body of each request.
async fn answering(
    answer: impl Fn(&str, &str) -> String + Send + 'static,
) -> (HttpClient, Arc<Mutex<Vec<String>>>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, mut tasks) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    let seen = Arc::clone(&asked);
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut request, mut part) = (String::new(), [0; 4096]);
            let (head, body) = loop {
                let count = stream.read(&mut part).await.unwrap();
                request.push_str(std::str::from_utf8(&part[..count]).unwrap());
                let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    break (head.lines().next().unwrap().to_owned(), body.to_owned());
                }
            };
            seen.lock().unwrap().push(format!("{head} {body}"));
            let _ = stream.write_all(answer(&head, &body).as_bytes()).await;
        }
    });
    (HttpClient::new(&format!("http://{address}"), None).unwrap(), asked, tasks)
}

fn ok(kind: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

const RUN: &str = "0199a0de-0000-7000-8000-000000000001";

#[tokio::test]
async fn a_stream_that_is_not_kept_any_more_is_asked_for_once() {
    let thread = "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a002";
    let record = format!(
        r#"{{"run_id": "{RUN}", "thread_id": "{thread}", "status": "success",
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}}"#
    );
    let gap = "event: gap\r\ndata: {\"code\": \"stream_replay_gap\"}\r\n\r\n";
    let (client, asked, _tasks) = answering(move |head, _| match head.contains("/api/runs/") {
        true => ok("application/json", "", &record),
        false => {
            let place = format!("content-location: /threads/{thread}/runs/{RUN}\r\n");
            ok("text/event-stream", &place, gap)
        }
    })
    .await;
    let mut joined = client.join(&RUN.into()).await.unwrap();
    let told = joined.next_frame().await.unwrap().unwrap_err();
    assert!(matches!(&told, ClientError::Forgotten(run) if run.as_str() == RUN), "{told:?}");
    assert!(joined.next_frame().await.is_none());
    assert_eq!(asked.lock().unwrap().len(), 2);
    // A run that cannot be followed any more is not stopped by whoever began it.
    let mut begun = client.start(Ask::new("hello")).await.unwrap();
    begun.next_frame().await.unwrap().unwrap_err();
    drop(begun);
    client.close().await;
    let asked = asked.lock().unwrap();
    assert!(asked.iter().all(|request| !request.contains("/cancel")), "{asked:?}");
}

#[tokio::test]
async fn a_server_that_a_proxy_speaks_for_is_asked_again() {
    let end = "event: end\r\ndata: null\r\nid: 8-8\r\n\r\n";
    let record = r#"{"run_id": "r", "thread_id": "t", "status": "success",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}"#;
    let bad = Mutex::new(2);
    let (client, asked, _tasks) = answering(move |head, _| {
        if head.contains("/api/runs/") {
            return ok("application/json", "", record);
        }
        let mut bad = bad.lock().unwrap();
        if *bad == 0 {
            return ok("text/event-stream", "", end);
        }
        *bad -= 1;
        ok("text/html", "", "<h1>502</h1>").replacen("200 OK", "502 Bad Gateway", 1)
    })
    .await;
    let mut joined = client.join(&"r".into()).await.unwrap();
    assert_eq!(joined.next_frame().await.unwrap().unwrap().event, "end");
    assert_eq!(asked.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_run_that_was_told_to_its_end_has_ended_also_where_the_server_is_gone() {
    let frames = "event: values\r\ndata: {\"messages\": []}\r\nid: 8-8\r\n\r\n\
                  event: end\r\ndata: null\r\nid: 16-16\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = HttpClient::new(&format!("http://{address}"), None).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let place = format!("content-location: /threads/t/runs/{RUN}\r\n");
        let _ = stream.write_all(ok("text/event-stream", &place, frames).as_bytes()).await;
    });
    let begun = client.start(Ask::new("hello").thread("0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a002")).await.unwrap();
    let mut events = begun.into_events();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.unwrap());
    }
    assert!(matches!(last, Some(Event::End(_))), "{last:?}");
}

#[tokio::test]
async fn a_server_that_stays_away_is_told_with_what_was_left_there() {
    let record = r#"{"run_id": "r", "thread_id": "t", "status": "running",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}"#;
    let (client, _, tasks) = answering(move |_, _| ok("application/json", "", record)).await;
    let mut joined = client.join(&"r".into()).await.unwrap();
    drop(tasks);
    // The half minute is waited for by nobody.
    tokio::time::pause();
    let told = joined.next_frame().await.unwrap().unwrap_err().to_string();
    assert!(told.contains("does not answer any more; run `r` on thread `t` is kept there"), "{told}");
}

#[tokio::test]
async fn more_rows_than_a_server_gives_at_once_are_read_in_pages() {
    let (client, asked, _tasks) = answering(|_, body| {
        let asked: serde_json::Value = serde_json::from_str(body).unwrap();
        let (limit, offset) = (asked["limit"].as_u64().unwrap(), asked["offset"].as_u64().unwrap());
        assert!((1..=1000).contains(&limit), "{asked}");
        let rows: Vec<_> = (offset..(offset + limit).min(1500))
            .map(|n| {
                serde_json::json!({
                    "thread_id": format!("{n}"), "status": "idle",
                    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
                })
            })
            .collect();
        ok("application/json", "", &serde_json::json!(rows).to_string())
    })
    .await;
    for (limit, rows, requests) in [(0, 0, 0), (7, 7, 1), (1200, 1200, 2), (5000, 1500, 2)] {
        asked.lock().unwrap().clear();
        let found = client.threads(limit).await.unwrap();
        assert_eq!((found.len(), asked.lock().unwrap().len()), (rows, requests), "{limit}");
        let same = found.iter().enumerate().all(|(n, row)| row.id.as_str() == n.to_string());
        assert!(same, "{limit}: out of order");
    }
}

async fn refused(url: &str) -> String {
    let error = HttpClient::new(url, None).map(|client| async move { client.threads(1).await.unwrap_err() });
    match error {
        Ok(asked) => asked.await.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn what_is_no_hart_is_told_by_its_address() {
    for wrong in ["127.0.0.1:2026", "ftp://127.0.0.1", "http://", ""] {
        assert!(refused(wrong).await.contains("write it like http://127.0.0.1:2026"), "{wrong}");
    }
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = refused(&format!("http://{free}")).await;
    assert!(gone.contains(&format!("no hart answers at http://{free}/")), "{gone}");
    for (answer, says) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<p/>", "is not hart"),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<p/>",
            "is not hart (HTTP 404",
        ),
        ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "asks for a token"),
        (
            "HTTP/1.1 503 Busy\r\ncontent-length: 19\r\nconnection: close\r\n\r\n{\"detail\": \"later\"}",
            "failed: later",
        ),
        (
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 4\r\nconnection: close\r\n\r\n<p/>",
            "failed: HTTP 502 Bad Gateway",
        ),
    ] {
        let (address, _tasks) = server(answer).await;
        let told = refused(&format!("http://{address}")).await;
        assert!(told.contains(says) && told.contains(&address.to_string()), "{told}");
    }
}

#[tokio::test]
async fn a_token_is_never_shown() {
    let client = HttpClient::new("http://127.0.0.1:1", Some("s3cret".to_owned())).unwrap();
    let error = client.models().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }));
    assert!(!format!("{client:?} {error:?}").contains("s3cret"));
}
