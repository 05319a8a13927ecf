//! The model of a benchmark: parametric, stateless, and rendered before the first request.
//!
//! Invariant: the request alone decides the answer, and answering never formats JSON.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::Host;
use crate::model_server::MAX_BODY;
use crate::request::Dialect;
use crate::turn::Turn;
use crate::wire::{self, Asked};

mod position;
mod stream;

/// What a benchmark's model does: `turns` rounds of tool calls, then an answer of `tokens` tokens.
///
/// A request is in round *n* when it holds the results of *n* rounds since the last answer. It has a JSON form, so
/// that a benchmark can hand it to a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BenchScript {
    /// Rounds of tool calls before the answer.
    pub turns: u32,
    /// Tool calls per round.
    pub parallel: u32,
    pub tool: String,
    pub args: Value,
    /// Tokens of the answer, one event each.
    pub tokens: u32,
    /// Pause before the headers of every answer.
    pub delay: Option<Duration>,
    /// Pause between tokens, on an absolute schedule; the timer ticks every millisecond, so shorter ones burst.
    pub token_interval: Option<Duration>,
    /// Each token is the time at which it is sent, in nanoseconds since 1970, and a space.
    pub timestamps: bool,
    /// One write to the socket per token, instead of as many as fit.
    pub flush_each_token: bool,
    /// Threads of the server.
    pub workers: usize,
}

impl Default for BenchScript {
    fn default() -> Self {
        Self {
            turns: 0,
            parallel: 1,
            tool: "noop".into(),
            args: json!({}),
            tokens: 16,
            delay: None,
            token_interval: None,
            timestamps: false,
            flush_each_token: false,
            workers: 1,
        }
    }
}

/// A [`BenchScript`] being served from a thread and a runtime of its own, until it is dropped.
#[derive(Debug)]
pub struct BenchModel {
    host: Host,
    plan: Arc<Plan>,
}

impl BenchModel {
    /// Serves on `127.0.0.1`, on a free port.
    #[must_use]
    pub fn start(script: BenchScript) -> Self {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script)
    }

    /// Serves on a given IPv4 address.
    #[must_use]
    pub fn start_at(addr: SocketAddr, script: BenchScript) -> Self {
        let plan = Arc::new(Plan::new(script));
        let app = Router::new().fallback(serve).with_state(Arc::clone(&plan));
        Self { host: Host::start(addr, plan.script.workers, app), plan }
    }

    /// Serves until the process ends: the whole `main` of a separate process, once `ready` has told the address.
    pub fn run(addr: SocketAddr, script: BenchScript, ready: impl FnOnce(&Self)) {
        let model = Self::start_at(addr, script);
        ready(&model);
        model.host.join();
    }

    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.host.addr()
    }

    /// `http://127.0.0.1:<port>`, which is also the base for clients of Anthropic, Gemini and Ollama.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.host.addr())
    }

    /// The base that OpenAI clients append `/chat/completions` or `/responses` to.
    #[must_use]
    pub fn openai_base(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// How many model calls were answered.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.plan.requests.load(Ordering::Relaxed)
    }

    /// How many bytes the bodies of those calls had.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.plan.bytes.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Plan {
    script: BenchScript,
    openai: Vec<Rendered>,
    anthropic: Vec<Rendered>,
    responses: Vec<Rendered>,
    gemini: Vec<Rendered>,
    ollama: Vec<Rendered>,
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// One answer, ready to send.
#[derive(Debug)]
struct Rendered {
    /// Every event, each a slice of one buffer.
    events: Vec<Bytes>,
    /// The same events, many per frame; those after the tokens stand alone.
    frames: Vec<Bytes>,
    tokens: Range<usize>,
    /// Where a token event holds its timestamp, the same in all of them.
    timestamp_at: Option<usize>,
    /// Counted from the end, in `events` and `frames` alike: the chunk sent only to those who ask for usage.
    usage_from_end: Option<usize>,
    /// The answer as one JSON message.
    message: Bytes,
}

/// As many digits as nanoseconds since 1970 have until the year 2286; patched when a token is sent.
const TIMESTAMP: &str = "0000000000000000000";
const FRAME: usize = 32 * 1024;

impl Plan {
    fn new(script: BenchScript) -> Self {
        assert!(script.parallel > 0, "a round has at least one tool call");
        let render = |dialect| (0..=script.turns).map(|turn| Rendered::new(dialect, &script, turn)).collect();
        let (openai, anthropic) = (render(Dialect::OpenAi), render(Dialect::Anthropic));
        let responses = render(Dialect::Responses);
        let (gemini, ollama) = (render(Dialect::Gemini), render(Dialect::Ollama));
        let (requests, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { script, openai, anthropic, responses, gemini, ollama, requests, bytes }
    }
}

impl Rendered {
    fn new(dialect: Dialect, script: &BenchScript, round: u32) -> Self {
        let mut turn = Turn::new();
        let mut token_count = 0;
        if round < script.turns {
            for call in 0..script.parallel {
                turn =
                    turn.tool_call(format!("call_{round}_{call}"), script.tool.as_str(), script.args.clone());
            }
            turn = turn.usage(100, 20 * u64::from(script.parallel));
        } else {
            let token = |i| if script.timestamps { format!("{TIMESTAMP} ") } else { format!("tok{i} ") };
            turn = turn.text_fragments((0..script.tokens).map(token)).usage(100, u64::from(script.tokens));
            token_count = script.tokens as usize;
        }
        let asked = Asked {
            seq: u64::from(round),
            model: "bench".into(),
            include_usage: true,
            include_encrypted: false,
        };
        let events = wire::events(dialect, &turn, &asked);
        let message = Bytes::from(wire::message(dialect, &turn, &asked).to_string());
        // What a dialect says before the first token: role; or message start, block start and ping; or the response
        // twice, its item and its part.
        let (head, usage_from_end) = match dialect {
            Dialect::OpenAi => (1, Some(2)),
            Dialect::Anthropic => (3, None),
            Dialect::Responses => (4, None),
            Dialect::Gemini | Dialect::Ollama => (0, None),
        };
        let tokens = head..head + token_count;
        let buffer = Bytes::from(events.concat());
        let mut at = 0;
        let events: Vec<Bytes> = (events.iter().map(Bytes::len))
            .map(|len| {
                at += len;
                buffer.slice(at - len..at)
            })
            .collect();
        let timestamp_at = events.get(head).and_then(|token| {
            token.windows(TIMESTAMP.len()).position(|window| window == TIMESTAMP.as_bytes())
        });
        let (before, after) = events.split_at(if token_count > 0 { tokens.end } else { 0 });
        let frames = batches(&buffer, before).into_iter().chain(after.iter().cloned()).collect();
        Self { events, frames, tokens, timestamp_at, usage_from_end, message }
    }
}

/// The events as slices of their common buffer of about [`FRAME`] bytes, none split.
fn batches(buffer: &Bytes, events: &[Bytes]) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let (mut start, mut end) = (0, 0);
    for event in events {
        end += event.len();
        if end - start >= FRAME {
            frames.push(buffer.slice(start..end));
            start = end;
        }
    }
    if end > start {
        frames.push(buffer.slice(start..end));
    }
    frames
}

async fn serve(State(plan): State<Arc<Plan>>, request: Request) -> Response {
    let dialect = match request.uri().path() {
        "/v1/chat/completions" => Dialect::OpenAi,
        "/v1/messages" => Dialect::Anthropic,
        "/v1/responses" => Dialect::Responses,
        "/api/chat" => Dialect::Ollama,
        path if path.ends_with(":streamGenerateContent") => Dialect::Gemini,
        "/v1/models" => return whole(Bytes::from(wire::models(Dialect::OpenAi).to_string())),
        path => return fault(StatusCode::NOT_FOUND, &format!("no route {path}")),
    };
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        return fault(StatusCode::PAYLOAD_TOO_LARGE, "the request body is too large or incomplete");
    };
    plan.requests.fetch_add(1, Ordering::Relaxed);
    plan.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    let position = match position::of(&body) {
        Ok(position) => position,
        Err(error) => return fault(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    drop(body);
    if let Some(delay) = plan.script.delay {
        tokio::time::sleep(delay).await;
    }
    let round = (position.results / plan.script.parallel).min(plan.script.turns) as usize;
    if position.stream || dialect == Dialect::Gemini {
        return stream::response(plan, dialect, round, position.include_usage);
    }
    whole(plan.rendered(dialect, round).message.clone())
}

impl Plan {
    fn rendered(&self, dialect: Dialect, round: usize) -> &Rendered {
        match dialect {
            Dialect::OpenAi => &self.openai[round],
            Dialect::Anthropic => &self.anthropic[round],
            Dialect::Responses => &self.responses[round],
            Dialect::Gemini => &self.gemini[round],
            Dialect::Ollama => &self.ollama[round],
        }
    }
}

fn whole(body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn fault(status: StatusCode, message: &str) -> Response {
    let error = wire::error(Dialect::OpenAi, status.as_u16(), message);
    let mut response = whole(Bytes::from(error.to_string()));
    *response.status_mut() = status;
    response
}

/// Wall clock, because the reader of the timestamp may be another process.
#[expect(clippy::disallowed_methods, reason = "a latency probe must read the real clock")]
#[must_use]
pub fn unix_nanos() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(now.as_nanos()).expect("a clock before 2554")
}
