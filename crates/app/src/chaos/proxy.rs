//! Stands between the agent and its provider, on loopback, and breaks what it is told to break.
//!
//! Invariant: what it does not break it passes on as it is; keys go through it and are written nowhere.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::script;
use super::settings::Upstream;

/// What happens to one call of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// This status, and when to come back.
    Status(u16),
    /// Nothing, for so long.
    Silence(Duration),
    /// A line that is no JSON, in the middle.
    Garbage,
    /// A page instead of a stream.
    Page,
    /// The stream ends in the middle.
    CutOff,
}

#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    upstreams: Vec<Upstream>,
    /// For the calls to come, one after the other.
    breaks: Mutex<VecDeque<Option<Break>>>,
    /// How many calls have come.
    calls: watch::Sender<usize>,
}

/// A request that is larger is no request of hart's.
const MOST: usize = 64 << 20;

impl Proxy {
    pub(super) async fn start(upstreams: Vec<Upstream>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Shared { upstreams, breaks: Mutex::default(), calls: watch::Sender::new(0) };
        let proxy = Self {
            port,
            shared: Arc::new(shared),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (shared, tasks, stop) = (Arc::clone(&proxy.shared), proxy.tasks.clone(), proxy.stop.clone());
        proxy.tasks.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stop.cancelled() => return,
                };
                let Ok((line, _)) = accepted else { continue };
                let (shared, stop) = (Arc::clone(&shared), stop.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        // A line that breaks is somebody's who was killed.
                        _ = shared.serve(line) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        });
        Ok(proxy)
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Begins to count anew; the calls to come are broken as `breaks` says.
    pub(super) fn arm(&self, breaks: impl IntoIterator<Item = Option<Break>>) {
        *self.shared.breaks.lock().unwrap_or_else(PoisonError::into_inner) = breaks.into_iter().collect();
        self.shared.calls.send_replace(0);
    }

    /// Returns when so many calls have come.
    pub(super) async fn called(&self, count: usize) {
        let mut calls = self.shared.calls.subscribe();
        let _ = calls.wait_for(|calls| *calls >= count).await;
    }

    pub(super) fn calls(&self) -> usize {
        *self.shared.calls.borrow()
    }

    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// What of a request is passed on.
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Shared {
    async fn serve(&self, mut line: TcpStream) -> io::Result<()> {
        let request = read(&mut line).await?;
        let broken = self.breaks.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten();
        self.calls.send_modify(|calls| *calls += 1);
        match broken {
            Some(Break::Status(status)) => {
                let body = r#"{"error": {"message": "try again in a moment", "type": "rate_limit"}}"#;
                let head = "retry-after: 1\r\ncontent-type: application/json\r\n";
                return say(&mut line, status, head, body).await;
            }
            Some(Break::Page) => {
                let body = "<html><body><h1>502 Bad Gateway</h1></body></html>";
                return say(&mut line, 200, "content-type: text/html\r\n", body).await;
            }
            Some(Break::Silence(silence)) => {
                tokio::time::sleep(silence).await;
                return Ok(());
            }
            Some(Break::Garbage | Break::CutOff) | None => {}
        }
        let (number, path) = numbered(&request.path);
        match self.upstreams.get(number) {
            Some(Upstream::Script) => self.recite(&mut line, &request, broken).await,
            Some(Upstream::Provider { origin, http }) => {
                let url = format!("{origin}{path}");
                pass_on(&mut line, http, &url, request, broken).await
            }
            None => say(&mut line, 404, "", "").await,
        }
    }

    async fn recite(&self, line: &mut TcpStream, request: &Request, broken: Option<Break>) -> io::Result<()> {
        let asked = serde_json::from_slice(&request.body).unwrap_or_default();
        begin(line, 200, "content-type: text/event-stream\r\n").await?;
        for (nth, piece) in script::answer(&asked).into_iter().enumerate() {
            if nth == 2 && spoil(line, broken).await? {
                return Ok(());
            }
            line.write_all(piece.as_bytes()).await?;
            // Fast, but not at once: a kill may fall between two words.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

async fn pass_on(
    line: &mut TcpStream,
    http: &reqwest::Client,
    url: &str,
    request: Request,
    broken: Option<Break>,
) -> io::Result<()> {
    let method = reqwest::Method::from_bytes(request.method.as_bytes()).unwrap_or(reqwest::Method::POST);
    let mut asked = http.request(method, url).body(request.body);
    for (name, value) in &request.headers {
        if !["host", "content-length", "connection", "transfer-encoding", "accept-encoding"]
            .contains(&name.as_str())
        {
            asked = asked.header(name, value);
        }
    }
    let answer = match asked.send().await {
        Ok(answer) => answer,
        Err(error) => return say(line, 502, "", &error.without_url().to_string()).await,
    };
    let mut head = String::new();
    for (name, value) in answer.headers() {
        if let (false, Ok(value)) = (
            ["content-length", "connection", "transfer-encoding", "content-encoding"]
                .contains(&name.as_str()),
            value.to_str(),
        ) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    begin(line, answer.status().as_u16(), &head).await?;
    let mut pieces = answer.bytes_stream();
    let mut nth = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        if nth == 1 && spoil(line, broken).await? {
            return Ok(());
        }
        line.write_all(&piece).await?;
        nth += 1;
    }
    // An answer in one piece is spoilt behind it.
    if nth == 1 {
        spoil(line, broken).await?;
    }
    Ok(())
}

/// Whether the answer ends here.
async fn spoil(line: &mut TcpStream, broken: Option<Break>) -> io::Result<bool> {
    match broken {
        Some(Break::CutOff) => Ok(true),
        Some(Break::Garbage) => {
            line.write_all(
                b"data: {\"choices\": [{\"delta\": {\"content\": \"half\n\ndata: \xff\xfe<<<>>>\n\n",
            )
            .await?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

async fn say(line: &mut TcpStream, status: u16, head: &str, body: &str) -> io::Result<()> {
    begin(line, status, &format!("{head}content-length: {}\r\n", body.len())).await?;
    line.write_all(body.as_bytes()).await
}

/// The end of the line is the end of the answer.
async fn begin(line: &mut TcpStream, status: u16, head: &str) -> io::Result<()> {
    line.write_all(format!("HTTP/1.1 {status} -\r\nconnection: close\r\n{head}\r\n").as_bytes()).await
}

async fn read(line: &mut TcpStream) -> io::Result<Request> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let (mut bytes, mut part) = (Vec::new(), vec![0; 16 << 10]);
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        let count = line.read(&mut part).await?;
        bytes.extend_from_slice(part.get(..count).unwrap_or_default());
        if count == 0 || bytes.len() > MOST {
            return Err(broken());
        }
    };
    let mut body = bytes.split_off(end + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().ok_or_else(broken)?, first.next().ok_or_else(broken)?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse::<usize>().ok()).unwrap_or(0).min(MOST);
    while body.len() < length {
        let count = line.read(&mut part).await?;
        if count == 0 {
            return Err(broken());
        }
        body.extend_from_slice(part.get(..count).unwrap_or_default());
    }
    Ok(Request { method: method.to_owned(), path: path.to_owned(), headers, body })
}

/// `/3/v1/chat` is `/v1/chat` of upstream 3.
fn numbered(path: &str) -> (usize, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    let end = path.find('/').unwrap_or(path.len());
    let (number, rest) = path.split_at_checked(end).unwrap_or((path, ""));
    (number.parse().unwrap_or(usize::MAX), rest)
}
