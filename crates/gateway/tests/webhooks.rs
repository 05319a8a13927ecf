//! Webhooks, received by a real socket.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse;
use hart_gateway::{Access, Settings};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use crate::support::Server;

/// Takes what is posted to it, and answers as it is told to.
struct Receiver {
    address: SocketAddr,
    got: UnboundedReceiver<(String, Value)>,
    _serving: JoinSet<()>,
}

impl Receiver {
    /// One answer after the other, then always 200.
    async fn new(answers: &[u16]) -> Self {
        let (tell, got) = unbounded_channel();
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        let take = move |uri: Uri, headers: HeaderMap, body: String| async move {
            assert_eq!(headers["content-type"], "application/json");
            tell.send((uri.path().to_owned(), serde_json::from_str(&body).unwrap())).unwrap();
            let mut answers = answers.lock().unwrap();
            let status = if answers.is_empty() { 200 } else { answers.remove(0) };
            (StatusCode::from_u16(status).unwrap(), [("location", "/elsewhere")]).into_response()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, Router::new().fallback(take)).await.unwrap() });
        Self { address, got, _serving: serving }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?key=secret", self.address)
    }

    async fn next(&mut self) -> (String, Value) {
        self.got.recv().await.unwrap()
    }

    /// Nothing more comes.
    async fn quiet(&mut self) {
        assert!(tokio::time::timeout(Duration::from_millis(300), self.got.recv()).await.is_err());
    }
}

fn says(webhook: &str) -> Value {
    let input = json!({"messages": [{"role": "user", "content": "hi"}]});
    json!({"assistant_id": "agent", "input": input, "webhook": webhook, "metadata": {"k": 1}})
}

fn open() -> Settings {
    Settings::default().private_webhooks(true)
}

#[tokio::test]
async fn the_end_of_a_run_is_told_with_what_it_came_to() {
    let server = Server::set(&["hello", "again"], Access::default(), open()).await;
    let mut receiver = Receiver::new(&[]).await;
    let thread = server.post("/threads", json!({})).await;
    let path = format!("/threads/{}/runs", thread["thread_id"].as_str().unwrap());
    server.post(&format!("{path}/wait"), says(&receiver.url())).await;
    let (to, told) = receiver.next().await;
    assert_eq!(to, "/hook");
    let run = &server.get(&path).await[0];
    assert_eq!((&told["run_id"], &told["status"]), (&run["run_id"], &json!("success")));
    assert_eq!((&told["metadata"]["k"], &told["error"]), (&json!(1), &Value::Null));
    assert_eq!(told["values"]["messages"][1]["content"], "hello");
    for key in ["run_started_at", "run_ended_at", "webhook_sent_at"] {
        assert!(told[key].is_string(), "{told}");
    }
    // Its thread is gone by then.
    server.post("/runs/wait", says(&receiver.url())).await;
    assert_eq!(receiver.next().await.1["values"]["messages"][1]["content"], "again");
    // The model has nothing more to say.
    server.post("/runs/wait", says(&receiver.url())).await;
    let (_, told) = receiver.next().await;
    assert_eq!(told["status"], "error");
    assert!(told["error"].is_string(), "{told}");
    receiver.quiet().await;
    server.close().await;
}

#[tokio::test]
async fn what_does_not_arrive_is_tried_again_and_what_is_refused_is_not() {
    let server = Server::set(&["one", "two", "three"], Access::default(), open()).await;
    let mut receiver = Receiver::new(&[503, 200, 404, 302]).await;
    server.post("/runs/wait", says(&receiver.url())).await;
    let first = receiver.next().await.1;
    let second = receiver.next().await.1;
    assert_eq!((&first["run_id"], &first["values"]), (&second["run_id"], &second["values"]));
    for _ in ["refused", "sent elsewhere"] {
        server.post("/runs/wait", says(&receiver.url())).await;
        assert_eq!(receiver.next().await.0, "/hook");
        receiver.quiet().await;
    }
    server.close().await;
}

#[tokio::test]
async fn a_restart_still_delivers() {
    let server = Server::set(&["hello"], Access::default(), open()).await;
    let mut receiver = Receiver::new(&[503]).await;
    server.post("/runs/wait", says(&receiver.url())).await;
    receiver.next().await;
    let dir = server.close().await.unwrap();
    let server = Server::after(dir, open()).await;
    assert_eq!(receiver.next().await.1["values"]["messages"][1]["content"], "hello");
    receiver.quiet().await;
    server.close().await;
}

/// The rules hold when a letter is sent, not only when it is ordered; also for names.
#[tokio::test]
async fn nothing_is_sent_where_it_may_not_go() {
    let mut receiver = Receiver::new(&[503, 503]).await;
    let server = Server::set(&["hello", "hello"], Access::default(), open()).await;
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/hook", receiver.address.port());
        server.post("/runs/wait", says(&url)).await;
        receiver.next().await;
    }
    let dir = server.close().await.unwrap();
    let server = Server::after(dir, Settings::default()).await;
    let again = tokio::time::timeout(Duration::from_secs(3), receiver.got.recv()).await;
    assert!(again.is_err(), "{again:?}");
    server.close().await;
}

/// One that takes its time, and so much of it that nobody here lives to see it.
#[tokio::test]
async fn an_address_that_never_answers_holds_up_no_other() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = format!("http://{}/", silent.local_addr().unwrap());
    let server = Server::set(&["one", "two"], Access::default(), open()).await;
    let mut receiver = Receiver::new(&[]).await;
    server.post("/runs/wait", says(&nowhere)).await;
    let (held, _) = silent.accept().await.unwrap();
    server.post("/runs/wait", says(&receiver.url())).await;
    assert_eq!(receiver.next().await.1["status"], "success");
    held.readable().await.unwrap();
    let ended =
        std::iter::repeat_with(|| held.try_read(&mut [0; 4096])).find(|read| !matches!(read, Ok(1..)));
    assert!(ended.unwrap().is_err(), "the other came only when this one had been given up");
    server.close().await;
}
