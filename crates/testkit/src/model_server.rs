//! A model made of a script: a real HTTP server that answers in the dialect it is asked in and remembers every request.
//!
//! Invariant: one model call takes exactly one turn, in the order in which requests are complete.

use std::collections::VecDeque;
use std::fmt;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use crate::host::Host;
use crate::request::{Dialect, RecordedRequest};
use crate::script::{BenchModel, BenchScript};
use crate::turn::{End, Payload, Turn};
use crate::wire::{self, Asked};

mod playback;
use playback::{Playback, Witness};

/// A conversation with images is large; an endless body is a bug of the client.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// How long the `wait_for_*` methods hope. It bounds a failing test and never decides a passing one.
const PATIENCE: Duration = Duration::from_secs(60);

/// A scripted model on `127.0.0.1`, on a port and a thread of its own, until it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use hart_testkit::{ModelServer, Turn};
///
/// let server = ModelServer::start().await;
/// server.push(Turn::new().tool_call("call_1", "bash", serde_json::json!({"command": "ls"})));
/// server.push(Turn::new().text("Done."));
/// assert!(server.openai_base().ends_with("/v1"));
/// # }
/// ```
pub struct ModelServer {
    host: Host,
    shared: Arc<Shared>,
}

type Responder = Box<dyn Fn(&RecordedRequest) -> Turn + Send + Sync>;

pub(crate) struct Shared {
    script: Mutex<VecDeque<Turn>>,
    responder: Option<Responder>,
    requests: Mutex<Vec<Arc<RecordedRequest>>>,
    seen: watch::Sender<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    requests: usize,
    disconnects: usize,
}

impl ModelServer {
    /// A model that answers with the turns given to [`push`](Self::push), in order.
    pub async fn start() -> Self {
        Self::start_blocking()
    }

    /// A model that computes each turn from the request; pushed turns still come first.
    pub async fn with(respond: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static) -> Self {
        Self::with_blocking(respond)
    }

    /// [`start`](Self::start), for tests without a runtime.
    #[must_use]
    pub fn start_blocking() -> Self {
        Self::launch(None)
    }

    /// [`with`](Self::with), for tests without a runtime.
    #[must_use]
    pub fn with_blocking(respond: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static) -> Self {
        Self::launch(Some(Box::new(respond)))
    }

    /// The model of a benchmark: stateless, rendered in advance, and unrecorded.
    #[must_use]
    pub fn bench(script: BenchScript) -> BenchModel {
        BenchModel::start(script)
    }

    /// Appends a turn to the script.
    pub fn push(&self, turn: Turn) {
        lock(&self.shared.script).push_back(turn);
    }

    /// Appends several turns to the script.
    pub fn push_all(&self, turns: impl IntoIterator<Item = Turn>) {
        lock(&self.shared.script).extend(turns);
    }

    /// How many pushed turns nobody has asked for yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        lock(&self.shared.script).len()
    }

    /// `http://127.0.0.1:<port>`
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.host.addr())
    }

    /// The base that OpenAI clients append `/chat/completions` or `/responses` to.
    #[must_use]
    pub fn openai_base(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// The base that Anthropic clients append `/v1/messages` to.
    #[must_use]
    pub fn anthropic_base(&self) -> String {
        self.url()
    }

    /// The base that Gemini clients append `/v1beta/models/…` to.
    #[must_use]
    pub fn gemini_base(&self) -> String {
        self.url()
    }

    /// The base that Ollama clients append `/api/chat` to.
    #[must_use]
    pub fn ollama_base(&self) -> String {
        self.url()
    }

    /// Every request so far, model call or not.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        lock(&self.shared.requests).clone()
    }

    /// # Panics
    /// When there was none.
    #[must_use]
    pub fn last_request(&self) -> Arc<RecordedRequest> {
        lock(&self.shared.requests).last().expect("the model server received no request").clone()
    }

    /// How many clients left before their answer was complete.
    #[must_use]
    pub fn disconnects(&self) -> usize {
        self.shared.seen.borrow().disconnects
    }

    /// Returns once a client has left before its answer was complete.
    ///
    /// # Panics
    /// When none does within a minute.
    pub async fn wait_for_disconnect(&self) {
        self.wait_for("a disconnect", |seen, count| seen.disconnects >= count, 1).await;
    }

    /// Returns once that many requests have arrived in full.
    ///
    /// # Panics
    /// When they do not within a minute.
    pub async fn wait_for_requests(&self, count: usize) {
        self.wait_for("a request", |seen, count| seen.requests >= count, count).await;
    }

    fn launch(responder: Option<Responder>) -> Self {
        let shared = Arc::new(Shared {
            script: Mutex::default(),
            responder,
            requests: Mutex::default(),
            seen: watch::Sender::default(),
        });
        let app = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        Self { host: Host::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1, app), shared }
    }

    /// Waits on the server's runtime: a caller's paused clock would run out of patience at once.
    async fn wait_for(&self, what: &str, reached: fn(&Seen, usize) -> bool, count: usize) {
        let mut seen = self.shared.seen.subscribe();
        let waiting = self.host.runtime().spawn(async move {
            tokio::time::timeout(PATIENCE, seen.wait_for(|seen| reached(seen, count))).await.is_ok()
        });
        assert!(
            waiting.await.expect("the server's runtime lives"),
            "the model server waited in vain for {what}"
        );
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Shared {
    fn record(&self, request: &Arc<RecordedRequest>) -> u64 {
        let count = {
            let mut requests = lock(&self.requests);
            requests.push(Arc::clone(request));
            requests.len()
        };
        self.seen.send_modify(|seen| seen.requests = count);
        count as u64
    }

    fn next_turn(&self, request: &RecordedRequest) -> Turn {
        if let Some(turn) = lock(&self.script).pop_front() {
            return turn;
        }
        let Some(respond) = &self.responder else {
            return Turn::status(500).message("the script of the model server is exhausted: push more turns");
        };
        // A failed assertion in a responder must reach the test as an answer, not as a connection that vanished.
        catch_unwind(AssertUnwindSafe(|| respond(request))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Turn::status(500).message(format!("the responder of the model server panicked: {text}"))
        })
    }

    pub(crate) fn note_disconnect(&self) {
        self.seen.send_modify(|seen| seen.disconnects += 1);
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(raw) = to_bytes(body, MAX_BODY).await else {
        return json(413, &wire::error(Dialect::OpenAi, 413, "the request body is too large or incomplete"));
    };
    let request = Arc::new(RecordedRequest::new(&parts, raw));
    let seq = shared.record(&request);
    let speaks =
        if request.header("anthropic-version").is_some() { Dialect::Anthropic } else { Dialect::OpenAi };
    let Some(dialect) = request.dialect() else {
        return match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/models") => json(200, &wire::models(speaks)),
            ("GET", "/v1beta/models") => json(200, &wire::models(Dialect::Gemini)),
            ("GET", "/api/tags") => json(200, &wire::models(Dialect::Ollama)),
            (method, path) => json(404, &wire::error(speaks, 404, &format!("no route {method} {path}"))),
        };
    };
    if !request.body.is_object() {
        return json(400, &wire::error(dialect, 400, "the request body is not a JSON object"));
    }
    let turn = shared.next_turn(&request);
    let witness = Witness::new(shared);
    let asked = Asked {
        seq,
        model: request.model().to_owned(),
        include_usage: request.body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        include_encrypted: (request.body["include"].as_array().into_iter().flatten())
            .any(|what| what == "reasoning.encrypted_content"),
    };
    tokio::time::sleep(turn.pace.before_headers).await;
    if turn.end == End::HangBeforeHeaders {
        pending::<()>().await;
    }
    respond(dialect, &turn, &asked, request.is_stream(), witness)
}

fn respond(dialect: Dialect, turn: &Turn, asked: &Asked, stream: bool, witness: Witness) -> Response {
    const JSON: &str = "application/json";
    let streamed = match dialect {
        Dialect::Ollama => "application/x-ndjson",
        _ => "text/event-stream; charset=utf-8",
    };
    let whole = |json: &Value| vec![Bytes::from(json.to_string())];
    let (content_type, frames) = match &turn.payload {
        Some(Payload::Sse(bytes)) => (streamed, vec![bytes.clone()]),
        Some(Payload::Json(value)) => (JSON, whole(value)),
        Some(Payload::Text(text)) => ("text/plain; charset=utf-8", vec![Bytes::from(text.clone())]),
        None if turn.status >= 400 => {
            let message = turn.message.as_deref().unwrap_or("scripted error");
            (JSON, whole(&wire::error(dialect, turn.status, message)))
        }
        None if stream => (streamed, broken(wire::events(dialect, turn, asked), dialect, turn, asked)),
        None => (JSON, whole(&wire::message(dialect, turn, asked))),
    };
    let mut response =
        Response::new(Body::from_stream(Playback::new(turn, stream, frames, witness).stream()));
    *response.status_mut() = StatusCode::from_u16(turn.status).expect("a status code");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // The last two do not name requests in a header.
    let id_name = match dialect {
        Dialect::OpenAi | Dialect::Responses => Some("x-request-id"),
        Dialect::Anthropic => Some("request-id"),
        Dialect::Gemini | Dialect::Ollama => None,
    };
    if let Some(name) = id_name {
        let id = format!("req_{}", asked.seq);
        headers.insert(name, HeaderValue::try_from(id).expect("a header value"));
    }
    for (name, value) in &turn.headers {
        let name = HeaderName::try_from(name).expect("a header name");
        headers.insert(name, HeaderValue::try_from(value).expect("a header value"));
    }
    response
}

/// The events as the turn misspells them: ended twice, or broken off in the middle of the last part.
fn broken(mut events: Vec<Bytes>, dialect: Dialect, turn: &Turn, asked: &Asked) -> Vec<Bytes> {
    if turn.ends_twice {
        let ending = events.split_off(events.len().saturating_sub(2));
        events.extend(ending.iter().cloned().chain(ending.clone()));
    }
    if let Some(tail) = &turn.breaks {
        let half = wire::events(dialect, &turn.halved(), asked);
        let common = events.iter().zip(&half).take_while(|(whole, half)| whole == half).count();
        events.truncate(common);
        events.extend(Some(tail.clone()).filter(|tail| !tail.is_empty()));
    }
    events
}

fn json(status: u16, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status code");
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A panic elsewhere has already failed the test; what the lock guards is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
