//! The HTTP client against servers that are not what they should be. What it does against hart itself is tested beside
//! the embedded client, in `app`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::SocketAddr;

use hart_client::{Client, ClientError, HttpClient};
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
