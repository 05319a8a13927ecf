//! Every way an answer can fail, at every place where it can, in every dialect: a data table over real HTTP.
//!
//! For each row: the fault, repeated, ends in an error of the right kind after the right number of requests; once, it
//! is repaired where it may pass; and the next turn over the same client works.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_kernel::ModelErrorKind as Kind;
use hart_kernel::{ModelError, TimeoutPhase};
use hart_models::{Context, Dialect, HttpSettings, LimitSettings, Limits, RetryPolicy};
use hart_testkit::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::support::{DIALECTS, Heard, KEY, WITH_TEXT_ARGUMENTS, config, hear, human};

/// Where an answer breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Text,
    ToolArguments,
    Reasoning,
}

const EVERYWHERE: [At; 4] = [At::Start, At::Text, At::ToolArguments, At::Reasoning];

/// How a stream goes wrong after it has begun.
enum Break {
    /// These bytes, then a proper end of the body.
    Bytes(&'static [u8]),
    Cut,
    Hang,
    Error(&'static str),
}

impl At {
    fn broken(self, how: &Break) -> Turn {
        let whole = match self {
            Self::Start => Turn::new(),
            Self::Text => Turn::new().text("hello world!"),
            Self::ToolArguments => Turn::new().tool_call("call_1", "ls", json!({"path": "/mnt/data"})),
            Self::Reasoning => Turn::new().reasoning("let me think about it"),
        };
        let until = |bytes: &'static [u8]| match self {
            Self::Start => Turn::raw_sse(bytes),
            _ => whole.clone().chunk_chars(1).break_with(bytes),
        };
        match how {
            Break::Bytes(bytes) => until(bytes),
            Break::Cut => until(b"").cut_after(usize::MAX),
            Break::Hang => until(b"").hang_after(usize::MAX),
            Break::Error(kind) => whole.stream_error(*kind, format!("no, {KEY}")),
        }
    }
}

#[derive(Clone, Copy)]
struct Expected {
    kind: Kind,
    requests: usize,
}

const fn after(requests: usize, kind: Kind) -> Expected {
    Expected { kind, requests }
}

const IDLE: Kind = Kind::Timeout(TimeoutPhase::Idle);
const FIRST_BYTE: Kind = Kind::Timeout(TimeoutPhase::FirstByte);

/// Faults of a stream, each tried at every place.
const BREAKS: &[(&str, Break, Expected)] = &[
    ("the end is missing", Break::Bytes(b""), after(3, Kind::Interrupted)),
    ("the connection breaks", Break::Cut, after(3, Kind::Interrupted)),
    ("silence", Break::Hang, after(2, IDLE)),
    ("an event is no JSON", Break::Bytes(b"data: <html>oops</html>\n\n"), after(3, Kind::Malformed)),
    ("an event is cut", Break::Bytes(b"data: {\"id\":\"x\",\"cho"), after(3, Kind::Interrupted)),
    ("an event ends early", Break::Bytes(b"data: {\"id\":\n\n"), after(3, Kind::Malformed)),
    ("an event is a number", Break::Bytes(b"data: 17\n\n"), after(3, Kind::Malformed)),
    ("a page in the stream", Break::Bytes(b"<html>\n<p>502</p>\n</html>\n\n"), after(3, Kind::Interrupted)),
    ("bytes that are no text", Break::Bytes(b"data: \x00\xff\xfe\xc0\n\n"), after(3, Kind::Malformed)),
    ("only comments", Break::Bytes(b": ping\n\n: ping\n\n"), after(3, Kind::Interrupted)),
    ("overloaded, said in the stream", Break::Error("overloaded_error"), after(3, Kind::Overloaded)),
    ("rate limit, said in the stream", Break::Error("rate_limit_error"), after(3, Kind::RateLimit)),
    ("a failure, said in the stream", Break::Error("server_error"), after(3, Kind::Overloaded)),
    ("a refusal, said in the stream", Break::Error("authentication_error"), after(1, Kind::Auth)),
    ("a bad request, said in the stream", Break::Error("invalid_request_error"), after(1, Kind::BadRequest)),
];

/// Faults of a response before anything was said.
fn responses() -> Vec<(&'static str, Turn, Expected)> {
    let status = |code: u16| Turn::status(code).message(format!("no, {KEY}"));
    let overflow = Kind::ContextOverflow { limit: Some(8192), used: Some(9000) };
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    let filtered = json!({"error": {"message": "no", "code": "content_filter"}});
    let good = Turn::new().text("fine");
    vec![
        ("429", status(429), after(3, Kind::RateLimit)),
        ("429, wait 0 s", status(429).header("retry-after", "0"), after(3, Kind::RateLimit)),
        ("429, wait 1 ms", status(429).header("retry-after-ms", "1"), after(3, Kind::RateLimit)),
        (
            "429, wait until a date",
            status(429).header("date", date).header("retry-after", date),
            after(3, Kind::RateLimit),
        ),
        ("429, wait an hour", status(429).header("retry-after", "3600"), after(1, Kind::RateLimit)),
        ("429, wait nonsense", status(429).header("retry-after", "soon"), after(3, Kind::RateLimit)),
        ("429, burst", Turn::status(429).message("limit_burst_rate"), after(2, Kind::RateLimit)),
        ("408", status(408), after(3, Kind::Overloaded)),
        ("409", status(409), after(3, Kind::Overloaded)),
        ("500", status(500), after(3, Kind::Overloaded)),
        ("502, a page", Turn::status(502).body_text("<html>Bad gateway"), after(3, Kind::Overloaded)),
        ("503, wait 0 s", status(503).header("retry-after", "0"), after(3, Kind::Overloaded)),
        ("504", status(504), after(3, Kind::Overloaded)),
        ("524", status(524), after(3, Kind::Overloaded)),
        ("529", status(529), after(3, Kind::Overloaded)),
        ("500, cut", status(500).cut_after(1), after(3, Kind::Overloaded)),
        ("500, silent", status(500).hang_after(0), after(3, Kind::Overloaded)),
        ("400", status(400), after(1, Kind::BadRequest)),
        ("401", status(401), after(1, Kind::Auth)),
        ("403", status(403), after(1, Kind::Auth)),
        ("404", status(404), after(1, Kind::BadRequest)),
        ("418, without a word", Turn::status(418).body_text(""), after(1, Kind::BadRequest)),
        ("400, too long", Turn::status(400).message("prompt is too long: 9000 > 8192"), after(1, overflow)),
        ("400, filtered", Turn::status(400).body(filtered), after(1, Kind::ContentFilter)),
        ("300", Turn::status(300).body_text("choose"), after(1, Kind::BadRequest)),
        ("a page instead of an answer", good.clone().body_text("<html>Sign in"), after(3, Kind::Interrupted)),
        ("nothing instead of an answer", Turn::raw_sse(""), after(3, Kind::Interrupted)),
        ("JSON instead of a stream", good.clone().body(json!({"choices": []})), after(3, Kind::Malformed)),
        (
            "a stream that calls itself JSON",
            good.header("content-type", "application/json"),
            after(3, Kind::Malformed),
        ),
        (
            "an error with status 200",
            Turn::new().body(json!({"error": {"message": "x", "code": 503}})),
            after(3, Kind::Overloaded),
        ),
        (
            "compressed nonsense",
            Turn::raw_sse("not gzip").header("content-encoding", "gzip"),
            after(3, Kind::Interrupted),
        ),
        ("silence", Turn::hang_before_headers(), after(2, FIRST_BYTE)),
    ]
}

/// A client, the models over it, and what was logged on the way.
struct Table {
    server: ModelServer,
    context: Context,
    dialect: Dialect,
}

impl Table {
    async fn new(dialect: Dialect) -> Self {
        let retry = RetryPolicy {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            burst_base: Duration::from_millis(1),
            ..RetryPolicy::default()
        };
        // Rows follow each other faster than any endpoint recovers.
        let settings = LimitSettings { failure_threshold: 0, retry, ..LimitSettings::default() };
        let context = Context::new(HttpSettings::default(), Limits::new(settings)).unwrap();
        Self { server: ModelServer::start().await, context, dialect }
    }

    async fn hear(&self, more: Value) -> Heard {
        let model = self.context.model(&config(&self.server, self.dialect, more), []).unwrap();
        let heard = hear(&*model, human("hi")).await;
        if let Some(Err(error)) = &heard.answer {
            no_key(error);
        }
        assert!(!format!("{:?} {:?}", heard.restarts, self.context).contains(KEY));
        heard
    }

    /// A fault that does not pass, then one that does, then a turn as if nothing had been.
    async fn row(&self, name: &str, turn: &Turn, expected: Expected) {
        let row = format!("{:?}, {name}", self.dialect);
        // Only the wait that a row is about is short, so that a busy machine cannot end another one before it.
        let more = match expected.kind {
            FIRST_BYTE => json!({"timeout": 1.0}),
            IDLE => json!({"timeout": 60, "stream_chunk_timeout": 0.3}),
            _ if name.ends_with("silent") => json!({"timeout": 60, "stream_chunk_timeout": 0.3}),
            _ => json!({}),
        };
        let quick = more != json!({});
        let before = self.server.requests().len();
        self.server.push_all(vec![turn.clone(); expected.requests]);
        let heard = self.hear(more).await;
        let error = heard.answer.expect("an end").expect_err(&row);
        // A line that is no JSON is a broken-off answer in an event stream, and nonsense in one of lines.
        let nonsense = self.dialect == Dialect::Ollama && expected.kind == Kind::Interrupted;
        assert!(error.kind == expected.kind || (nonsense && error.kind == Kind::Malformed), "{row}: {error}");
        assert_eq!(self.server.requests().len() - before, expected.requests, "{row}: {error}");
        assert_eq!(heard.restarts.len(), expected.requests - 1, "{row}");
        assert_eq!(self.server.remaining(), 0, "{row}");
        assert!(error.model == "m" && error.provider.is_some(), "{row}: {error}");
        if !heard.text.is_empty() {
            let partial = error.partial.as_ref().expect(&row);
            assert_eq!(partial.text(), heard.text, "{row}: what was said is kept");
        }

        if expected.requests > 1 && !quick {
            self.server.push_all([turn.clone(), Turn::new().text("repaired")]);
            let heard = self.hear(json!({})).await;
            assert_eq!((heard.text.as_str(), heard.restarts.len()), ("repaired", 1), "{row}");
            assert_eq!(heard.answer.unwrap().expect(&row).text(), "repaired", "{row}");
        }
        self.works(&row).await;
    }

    async fn works(&self, row: &str) {
        self.server.push(Turn::new().text("next"));
        let heard = self.hear(json!({})).await;
        assert_eq!(heard.answer.unwrap().expect(row).text(), "next", "the turn after: {row}");
    }
}

/// No link of the chain, shown in any way, holds the key.
fn no_key(error: &ModelError) {
    let mut link: Option<&dyn std::error::Error> = Some(error);
    while let Some(shown) = link {
        assert!(!format!("{shown} {shown:?}").contains(KEY), "the key shows: {shown:?}");
        link = shown.source();
    }
}

#[tokio::test]
async fn a_stream_that_breaks_anywhere() {
    let log = Log::start();
    for dialect in DIALECTS {
        let table = Table::new(dialect).await;
        for (name, how, expected) in BREAKS {
            // Ollama's errors inside a stream are words without a kind.
            if dialect == Dialect::Ollama && name.contains("said in the stream") {
                continue;
            }
            for at in EVERYWHERE {
                table.row(&format!("{name} at {at:?}"), &at.broken(how), *expected).await;
            }
        }
    }
    log.has_no_key();
}

#[tokio::test]
async fn a_response_that_is_none() {
    let log = Log::start();
    for dialect in DIALECTS {
        let table = Table::new(dialect).await;
        for (name, turn, expected) in responses() {
            table.row(name, &turn, expected).await;
        }
    }
    log.has_no_key();
}

#[tokio::test]
async fn oddities_that_are_no_faults() {
    let fine = || Turn::new().reasoning("hm").text("fine");
    for dialect in DIALECTS {
        let table = Table::new(dialect).await;
        for (name, turn) in [
            ("no end marker", fine().without_done()),
            ("no usage", fine().without_usage()),
            ("an unknown reason to stop", fine().stop("because")),
            ("cut for length", fine().stop("length")),
            ("another content type", fine().header("content-type", "text/plain")),
            ("one byte at a time", fine().wire_bytes(1)),
            ("the end twice", fine().end_twice()),
        ] {
            // There the end is not an event of its own: saying it twice says the text twice.
            if name == "the end twice" && matches!(dialect, Dialect::Gemini | Dialect::Ollama) {
                continue;
            }
            table.server.push(turn);
            let heard = table.hear(json!({})).await;
            assert_eq!(heard.answer.unwrap().expect(name).text(), "fine", "{dialect:?}, {name}");
            assert!(heard.restarts.is_empty(), "{dialect:?}, {name}");
        }
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused_in_bounded_memory() {
    let mut huge = b"data: ".to_vec();
    huge.resize(hart_models::sse::MAX_EVENT + 64 * 1024, b'x');
    for dialect in DIALECTS {
        let table = Table::new(dialect).await;
        for (name, turn) in [
            ("a huge event", Turn::raw_sse(huge.clone())),
            (
                "a small body that unpacks to a huge one",
                Turn::raw_sse(bomb()).header("content-encoding", "gzip"),
            ),
        ] {
            table.server.push(turn);
            let heard = table.hear(json!({"max_retries": 0})).await;
            let error = heard.answer.unwrap().expect_err(name);
            assert_eq!(error.kind, Kind::Malformed, "{dialect:?}, {name}: {error}");
            table.works(name).await;
        }
    }
}

/// Forty megabytes of one letter, as gzip: one literal, then matches of 258 letters at distance 1.
fn bomb() -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut buffer, mut bits) = (0_u32, 0);
    let mut put = |code: u32, len: u32, out: &mut Vec<u8>| {
        for i in (0..len).rev() {
            buffer |= ((code >> i) & 1) << bits;
            bits += 1;
            if bits == 8 {
                out.push(buffer as u8);
                (buffer, bits) = (0, 0);
            }
        }
    };
    put(0b110, 3, &mut out); // last block, fixed codes (least significant bit first)
    put(0x30 + u32::from(b'x'), 8, &mut out);
    for _ in 0..40 * 1024 * 1024 / 258 {
        put(0b1100_0101, 8, &mut out);
        put(0, 5, &mut out);
    }
    out
}

#[tokio::test]
async fn a_trickle_ends_with_the_total_time() {
    for dialect in DIALECTS {
        let table = Table::new(dialect).await;
        let slow =
            Turn::new().text("drip").chunk_chars(1).wire_bytes(1).event_delay(Duration::from_millis(20));
        table.server.push(slow);
        let heard = table.hear(json!({"total_timeout": 1.0})).await;
        let error = heard.answer.unwrap().unwrap_err();
        assert_eq!(error.kind, Kind::Timeout(TimeoutPhase::Total), "{error}");
        assert_eq!(heard.restarts.len(), 0);
        table.server.wait_for_disconnect().await;
        table.works("a trickle").await;
    }
}

#[tokio::test]
async fn an_error_names_the_request() {
    // The others give requests no name.
    for dialect in WITH_TEXT_ARGUMENTS {
        let table = Table::new(dialect).await;
        table.server.push(Turn::status(400).message("no"));
        let error = table.hear(json!({})).await.answer.unwrap().unwrap_err();
        assert_eq!(error.request_id.as_deref(), Some("req_1"), "{error}");
        assert!(error.to_string().contains("(HTTP 400, request req_1)"), "{error}");
        // The words inside a stream belong to the request as well.
        table.server.push(Turn::new().text("x").stream_error("invalid_request_error", "no"));
        let error = table.hear(json!({})).await.answer.unwrap().unwrap_err();
        assert_eq!(error.request_id.as_deref(), Some("req_2"), "{error}");
    }
}

/// What this thread logs, down to the last detail.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> Logging {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        Logging { log, _guard: tracing::subscriber::set_default(subscriber) }
    }
}

struct Logging {
    log: Log,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Logging {
    fn has_no_key(&self) {
        let text = String::from_utf8_lossy(&self.log.0.lock().unwrap()).into_owned();
        assert!(text.contains("asking again"), "the log is written");
        assert!(!text.contains(KEY), "the key is in the log");
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
