//! The event protocol over a WebSocket: commands in, answers and events out.

use futures_util::{SinkExt, StreamExt};
use hart_models::ScriptedTurn;
use hart_testkit::in_time;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::Server;

const THREAD: &str = "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a002";

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn open(server: &Server) -> Self {
        let address = format!("ws://{}/threads/{THREAD}/stream/events", server.address());
        Self(connect_async(address).await.unwrap().0)
    }

    async fn say(&mut self, text: impl Into<String>) {
        self.0.send(Message::text(text.into())).await.unwrap();
    }

    async fn command(&mut self, id: u64, method: &str, params: Value) {
        self.say(json!({"id": id, "method": method, "params": params}).to_string()).await;
    }

    async fn hear(&mut self) -> Value {
        loop {
            if let Message::Text(text) = in_time("a word", self.0.next()).await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// What is heard until one is as wanted, that one as well.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut heard = Vec::new();
        loop {
            heard.push(self.hear().await);
            if wanted(heard.last().unwrap()) {
                return heard;
            }
        }
    }
}

fn start(text: &str) -> Value {
    json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}})
}

fn is_end(event: &Value) -> bool {
    event["method"] == "lifecycle" && event["params"]["data"]["event"] == "completed"
}

#[tokio::test]
async fn commands_and_events_share_a_socket() {
    let server = Server::playing(vec![ScriptedTurn::text("hi ws"), ScriptedTurn::text("two")]).await;
    let mut socket = Socket::open(&server).await;
    let filter = json!({"channels": ["lifecycle", "messages"], "namespaces": [[]], "depth": 1});
    socket.command(1, "subscription.subscribe", filter.clone()).await;
    let subscribed = socket.hear().await;
    assert_eq!((&subscribed["type"], &subscribed["id"]), (&json!("success"), &json!(1)));
    assert_eq!(subscribed["result"]["replayed_events"], 0);
    socket.command(2, "run.start", start("one")).await;
    let heard = socket.until(is_end).await;
    let answer = heard.iter().find(|message| message["id"] == 2).unwrap();
    assert!(answer["result"]["run_id"].is_string(), "{answer}");
    let events: Vec<&Value> = heard.iter().filter(|message| message["type"] == "event").collect();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    // The second connection of the same client: what it has, and what it has not.
    let mut second = Socket::open(&server).await;
    second.command(1, "agent.getTree", json!({})).await;
    assert_eq!(second.hear().await["error"], "no_such_run");
    let mut since = filter.clone();
    since["since"] = (events.len() - 2).into();
    second.command(2, "subscription.reconnect", since.clone()).await;
    assert_eq!(second.hear().await["result"]["replayed_events"], 2);
    assert_eq!(&&second.until(is_end).await[1], events.last().unwrap());
    second.command(3, "agent.getTree", json!({})).await;
    let tree = second.hear().await;
    assert_eq!(
        tree["result"]["tree"],
        json!({"namespace": [], "status": "completed", "graph_name": "agent"})
    );
    assert_eq!(tree["meta"]["applied_through_seq"], events.len());
    since["since"] = 1000.into();
    second.command(4, "subscription.reconnect", since).await;
    assert_eq!(second.hear().await["error"], "resume_gap");
    // Whoever has unsubscribed hears nothing more.
    let id = subscribed["result"]["subscription_id"].clone();
    socket.command(3, "subscription.unsubscribe", json!({ "subscription_id": id })).await;
    assert_eq!(socket.hear().await["result"], json!({}));
    second.command(5, "run.start", start("two")).await;
    second.until(is_end).await;
    socket.command(4, "subscription.unsubscribe", json!({"subscription_id": "zz"})).await;
    assert_eq!(socket.hear().await["error"], "no_such_subscription");
    for nonsense in ["{", "[]", "{\"id\":1}"] {
        socket.say(nonsense).await;
        assert_eq!(socket.hear().await["error"], "invalid_argument", "{nonsense}");
    }
    server.close().await;
    let mut goodbye = None;
    while let Some(Ok(message)) = socket.0.next().await {
        match message {
            Message::Close(frame) => goodbye = frame,
            other => assert!(other.is_ping(), "{other}"),
        }
    }
    assert_eq!(u16::from(goodbye.expect("the server said goodbye").code), 1012, "it comes again");
}

#[tokio::test]
async fn a_page_of_another_site_gets_no_socket() {
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    let server = Server::playing(Vec::new()).await;
    let address = format!("ws://{}/threads/{THREAD}/stream/events", server.address());
    let mut request = address.into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    let error = connect_async(request).await.unwrap_err().to_string();
    assert!(error.contains("403"), "{error}");
    server.close().await;
}

#[tokio::test]
async fn what_is_too_large_ends_a_socket_in_one_frame_or_several() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let settings = hart_gateway::Settings::default().body_limit(4096);
    let server = Server::set(&[], hart_gateway::Access::default(), settings).await;
    let part =
        |op, last| Message::Frame(Frame::message("x".repeat(3000).into_bytes(), OpCode::Data(op), last));
    let whole = vec![Message::text("x".repeat(5000))];
    for said in [whole, vec![part(Data::Text, false), part(Data::Continue, true)]] {
        let mut socket = Socket::open(&server).await;
        for message in said {
            let _ = socket.0.send(message).await;
        }
        while let Some(Ok(message)) = socket.0.next().await {
            assert!(!matches!(message, Message::Text(_)), "it was read: {message}");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn sockets_are_counted_among_those_who_read() {
    let server = Server::playing(Vec::new()).await;
    let count = || async {
        let metrics = server.request(reqwest::Method::GET, "/metrics").send().await.unwrap();
        let text = metrics.text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with("hart_stream_readers ")).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let mut socket = Socket::open(&server).await;
    // An answer shows that the server has begun with it.
    socket.command(1, "agent.getTree", json!({})).await;
    socket.hear().await;
    assert_eq!(count().await, "1");
    drop(socket);
    while count().await != "0" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server.close().await;
}
