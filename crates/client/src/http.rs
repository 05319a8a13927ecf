//! A hart behind a server, asked over HTTP.
//!
//! Invariant: what a server answers is read as LangGraph spells it; what is no such answer is an error that names the
//! address.

mod follow;
mod sse;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hart_types::{Interrupt, RunId, StreamMode, ThreadId, ThreadStatus, UserId};
use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;

use self::follow::HttpFollowing;
use crate::ask::{Ask, Words};
use crate::client::Client;
use crate::error::ClientError;
use crate::record::{Artifact, Location, ModelInfo, RunInfo, ThreadState, ThreadSummary};
use crate::stream::RunStream;
use crate::thread_name::{id_of, name_of};
use crate::values::Values;

/// A copy is the same client.
#[derive(Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
}

struct Shared {
    base: Url,
    token: Option<SecretString>,
    http: reqwest::Client,
    /// Who a server takes its clients for.
    user: UserId,
    /// Requests that nobody waits for.
    tasks: TaskTracker,
}

/// The agent that is asked.
const AGENT: &str = "lead_agent";
const CONNECT: Duration = Duration::from_secs(5);
/// A server shows signs of life much more often.
const SILENCE: Duration = Duration::from_secs(60);

impl HttpClient {
    /// `url` is what `hart serve` says when it is ready.
    pub fn new(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address { url: url.to_owned() };
        let mut base = Url::parse(url).map_err(|_| wrong())?;
        let host = base.host_str().ok_or_else(wrong)?.to_owned();
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong());
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let http = reqwest::Client::builder().connect_timeout(CONNECT).read_timeout(SILENCE);
        // A proxy of this machine's environment does not lead back to it.
        let http = if is_here(&host) { http.no_proxy() } else { http };
        let http = http.build().map_err(|source| ClientError::Unreachable { url: url.to_owned(), source })?;
        let token = token.map(SecretString::from);
        let shared = Shared { base, token, http, user: UserId::from("default"), tasks: TaskTracker::new() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns when requests that nobody waits for have been sent.
    pub async fn close(&self) {
        self.shared.tasks.close();
        let _ = tokio::time::timeout(CONNECT, self.shared.tasks.wait()).await;
    }

    fn id(&self, thread: &ThreadId) -> ThreadId {
        id_of(&self.shared.user, thread).0
    }

    fn url<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.shared.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.shared.http.request(method, url);
        match &self.shared.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }

    fn post(&self, url: Url, body: &Value) -> RequestBuilder {
        let request = self.request(Method::POST, url).header("content-type", "application/json");
        request.body(body.to_string())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let url = || self.shared.base.to_string();
        let sent = request.send().await;
        let response = sent.map_err(|source| ClientError::Unreachable { url: url(), source })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::UNAUTHORIZED {
            return Err(ClientError::Unauthorized { url: url(), given: self.shared.token.is_some() });
        }
        #[derive(Deserialize)]
        struct Told {
            detail: Value,
        }
        let body = response.bytes().await.unwrap_or_default();
        let Ok(Told { detail }) = serde_json::from_slice(&body) else {
            // Whatever stands before the server speaks for one that is not there just now.
            if status.is_server_error() {
                let detail = format!("HTTP {status}, without a word of hart's");
                return Err(ClientError::Server { url: url(), status: status.as_u16(), detail });
            }
            return Err(ClientError::NotHart { url: url(), found: format!("HTTP {status}") });
        };
        let detail = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
        if status == StatusCode::NOT_FOUND && detail == NO_ROUTE {
            return Err(ClientError::NotHart {
                url: url(),
                found: "it does not know what was asked".to_owned(),
            });
        }
        let (url, code) = (url(), status.as_u16());
        Err(match status.is_server_error() {
            true => ClientError::Server { url, status: code, detail },
            false => ClientError::Refused { url, status: code, detail },
        })
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let response = self.send(request).await?;
        let url = || self.shared.base.to_string();
        let body =
            response.bytes().await.map_err(|source| ClientError::Unreachable { url: url(), source })?;
        serde_json::from_slice(&body).map_err(|error| ClientError::NotHart {
            url: url(),
            found: format!("an answer it would not give: {error}"),
        })
    }

    async fn get<'a, T: DeserializeOwned>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
    ) -> Result<T, ClientError> {
        self.read(self.request(Method::GET, self.url(path))).await
    }

    async fn state_of(&self, id: &ThreadId, name: &ThreadId) -> Result<ThreadState, ClientError> {
        #[derive(Deserialize)]
        struct State {
            values: Option<Box<RawValue>>,
            #[serde(default)]
            interrupts: Vec<Asked>,
        }
        /// As an [`Interrupt`], whose schema may be left out.
        #[derive(Deserialize)]
        struct Asked {
            id: String,
            value: Value,
            response_schema: Option<Value>,
        }
        let state: State =
            self.get(["threads", id.as_str(), "state"]).await.map_err(missing(|| no_thread(name)))?;
        let json = state
            .values
            .map_or(Bytes::from_static(b"{}"), |values| Bytes::copy_from_slice(values.get().as_bytes()));
        let asked = |Asked { id, value, response_schema }| Interrupt { value, id, response_schema };
        let interrupts = state.interrupts.into_iter().map(asked).collect();
        Ok(ThreadState::new(name.clone(), Values::from_json(json), interrupts))
    }

    /// The run's frames from the beginning, or behind the last one that was seen.
    fn stream_request(
        &self,
        thread: &ThreadId,
        run: &RunId,
        modes: &[StreamMode],
        after: Option<String>,
    ) -> RequestBuilder {
        let mut url = self.url(["threads", thread.as_str(), "runs", run.as_str(), "stream"]);
        let modes: Vec<&str> = modes.iter().map(|mode| mode.as_str()).collect();
        url.query_pairs_mut().append_pair("stream_mode", &modes.join(","));
        self.request(Method::GET, url).header("last-event-id", after.unwrap_or_else(|| "-1".to_owned()))
    }

    fn body(ask: &Ask) -> Value {
        let mut body = json!({
            "assistant_id": ask.agent.as_deref().unwrap_or(AGENT),
            "stream_mode": ask.modes(),
            "multitask_strategy": "reject",
            // A line that breaks is taken up again; whoever leaves says so.
            "on_disconnect": "continue",
            "if_not_exists": if ask.may_begin() { "create" } else { "reject" },
            "context": ask.options,
        });
        let Value::Object(map) = &mut body else { return body };
        match &ask.words {
            Words::Say(_) => map.insert("input".to_owned(), json!(ask.input())),
            Words::Answer(answer) => {
                map.insert("strict_resume".to_owned(), Value::Bool(true));
                map.insert("command".to_owned(), json!({"resume": answer.clone().into_json()}))
            }
        };
        if let Some(limit) = ask.recursion_limit {
            map.insert("config".to_owned(), json!({ "recursion_limit": limit }));
        }
        body
    }

    async fn record(&self, id: &RunId) -> Result<RunInfo, ClientError> {
        self.get(["api", "runs", id.as_str()]).await.map_err(missing(|| ClientError::NoRun(id.clone())))
    }

    /// Says what the user calls the runs' threads.
    async fn name_threads(&self, runs: &mut [RunInfo]) -> Result<(), ClientError> {
        #[derive(Deserialize)]
        struct Row {
            thread_id: ThreadId,
            #[serde(default)]
            metadata: Map<String, Value>,
        }
        let ids: BTreeSet<ThreadId> = runs.iter().map(|run| run.thread.clone()).collect();
        let ids: Vec<ThreadId> = ids.into_iter().collect();
        let mut names = HashMap::new();
        for ids in ids.chunks(PAGE) {
            let body = json!({"ids": ids, "limit": PAGE, "select": ["thread_id", "metadata"]});
            let rows: Vec<Row> = self.read(self.post(self.url(["threads", "search"]), &body)).await?;
            for row in rows {
                let name = name_of(&self.shared.user, &row.thread_id, &row.metadata);
                names.insert(row.thread_id, name);
            }
        }
        for run in runs {
            run.thread_name = names.get(&run.thread).filter(|name| **name != run.thread).cloned();
        }
        Ok(())
    }

    /// Says under which name a thread goes, before anything happens on it.
    async fn name(&self, id: &ThreadId, named: &Map<String, Value>) -> Result<(), ClientError> {
        let body = json!({"thread_id": id, "if_exists": "do_nothing", "metadata": named});
        self.send(self.post(self.url(["threads"]), &body)).await.map(drop)
    }
}

#[async_trait]
impl Client for HttpClient {
    async fn start(&self, ask: Ask) -> Result<RunStream, ClientError> {
        let name = ask.thread.clone().unwrap_or_else(ThreadId::generate);
        let (id, named) = id_of(&self.shared.user, &name);
        if let Some(named) = named.filter(|_| ask.may_begin()) {
            self.name(&id, &named).await?;
        }
        let url = self.url(["threads", id.as_str(), "runs", "stream"]);
        let sent = self.send(self.post(url, &Self::body(&ask))).await;
        let response = sent.map_err(|error| match error {
            ClientError::Refused { status: 422, detail, .. } if detail.starts_with("Invalid assistant") => {
                ClientError::NoAgent(ask.agent.clone().unwrap_or_else(|| AGENT.to_owned()))
            }
            ClientError::Refused { status: 404, .. } => no_thread(&name),
            ClientError::Refused { status: 409, .. } => ClientError::Busy(name.clone()),
            other => other,
        })?;
        let place = response.headers().get("content-location").and_then(|place| place.to_str().ok());
        let run = place.and_then(|place| place.rsplit('/').next()).map(RunId::from);
        let Some(run) = run else {
            let (url, found) =
                (self.shared.base.to_string(), "a stream without its run's address".to_owned());
            return Err(ClientError::NotHart { url, found });
        };
        let following =
            HttpFollowing::new(self.clone(), (id, name.clone()), run.clone(), ask.modes(), Some(response));
        Ok(RunStream::begun(name, run, Box::new(following), ask.cancel))
    }

    async fn join(&self, run: &RunId) -> Result<RunStream, ClientError> {
        let found = self.record(run).await?;
        let modes = Ask::new("").modes();
        let threads = (found.thread.clone(), found.thread.clone());
        let following = HttpFollowing::new(self.clone(), threads, run.clone(), modes, None);
        Ok(RunStream::joined(found.thread, run.clone(), Box::new(following)))
    }

    async fn threads(&self, limit: usize) -> Result<Vec<ThreadSummary>, ClientError> {
        #[derive(Deserialize)]
        struct Row {
            thread_id: ThreadId,
            status: ThreadStatus,
            created_at: Timestamp,
            updated_at: Timestamp,
            #[serde(default)]
            metadata: Map<String, Value>,
            #[serde(default)]
            extracted: Map<String, Value>,
        }
        let rows: Vec<Row> = paged(limit, |page, offset| async move {
            let body = json!({
                "limit": page, "offset": offset, "sort_by": "updated_at", "sort_order": "desc",
                "select": ["thread_id", "status", "created_at", "updated_at", "metadata"],
                "extract": {"title": "values.title"},
            });
            self.read(self.post(self.url(["threads", "search"]), &body)).await
        })
        .await?;
        let summary = |row: Row| {
            let id = name_of(&self.shared.user, &row.thread_id, &row.metadata);
            let mut summary = ThreadSummary::new(id, row.status, row.created_at, row.updated_at);
            summary.title = row.extracted.get("title").and_then(Value::as_str).map(str::to_owned);
            summary
        };
        Ok(rows.into_iter().map(summary).collect())
    }

    async fn thread(&self, id: &ThreadId) -> Result<ThreadState, ClientError> {
        self.state_of(&self.id(id), id).await
    }

    async fn delete_thread(&self, id: &ThreadId) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, self.url(["threads", self.id(id).as_str()]));
        self.send(request).await.map(drop).map_err(missing(|| no_thread(id)))
    }

    async fn runs(&self, thread: Option<&ThreadId>, limit: usize) -> Result<Vec<RunInfo>, ClientError> {
        let place = match thread {
            Some(thread) => self.url(["threads", self.id(thread).as_str(), "runs"]),
            None => self.url(["api", "runs"]),
        };
        let found = paged::<RunInfo, _>(limit, |page, offset| {
            let mut url = place.clone();
            url.query_pairs_mut()
                .append_pair("limit", &page.to_string())
                .append_pair("offset", &offset.to_string());
            self.read(self.request(Method::GET, url))
        });
        let mut found = found.await.map_err(|error| match thread {
            Some(thread) => missing(|| no_thread(thread))(error),
            None => error,
        })?;
        self.name_threads(&mut found).await?;
        Ok(found)
    }

    async fn run(&self, id: &RunId) -> Result<RunInfo, ClientError> {
        let mut found = [self.record(id).await?];
        self.name_threads(&mut found).await?;
        let [found] = found;
        Ok(found)
    }

    async fn cancel(&self, run: &RunId) -> Result<(), ClientError> {
        let found = self.record(run).await?;
        let mut url = self.url(["threads", found.thread.as_str(), "runs", run.as_str(), "cancel"]);
        url.query_pairs_mut().append_pair("wait", "true");
        match self.send(self.post(url, &json!({}))).await {
            Ok(_) | Err(ClientError::Refused { status: 409, .. }) => Ok(()),
            Err(error) => Err(missing(|| ClientError::NoRun(run.clone()))(error)),
        }
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ClientError> {
        #[derive(Deserialize)]
        struct Models {
            models: Vec<ModelInfo>,
        }
        Ok(self.get::<Models>(["api", "models"]).await?.models)
    }

    async fn artifacts(&self, thread: &ThreadId) -> Result<Vec<Artifact>, ClientError> {
        let paths = self.thread(thread).await?.values.artifacts();
        Ok(paths.iter().filter_map(|path| self.locate(thread, path)).collect())
    }

    async fn artifact(&self, thread: &ThreadId, path: &str) -> Result<Vec<u8>, ClientError> {
        let Some(Artifact { location: Location::Url(url), .. }) = self.locate(thread, path) else {
            return Err(ClientError::NoFile(path.to_owned()));
        };
        let url = Url::parse(&url).map_err(|_| ClientError::Address { url })?;
        let sent = self.send(self.request(Method::GET, url)).await;
        let response = sent.map_err(missing(|| ClientError::NoFile(path.to_owned())))?;
        let base = || self.shared.base.to_string();
        let body = response.bytes().await;
        body.map(Vec::from).map_err(|source| ClientError::Unreachable { url: base(), source })
    }

    fn locate(&self, thread: &ThreadId, path: &str) -> Option<Artifact> {
        let id = self.id(thread);
        let inside = path.split('/').filter(|part| !part.is_empty());
        let url = self.url(["api", "threads", id.as_str(), "artifacts"].into_iter().chain(inside));
        Some(Artifact::new(path, Location::Url(url.into())))
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("base", &self.shared.base.as_str()).finish_non_exhaustive()
    }
}

/// As many rows as are wanted, in pages of a size that servers give.
async fn paged<T, F: Future<Output = Result<Vec<T>, ClientError>>>(
    limit: usize,
    ask: impl Fn(usize, usize) -> F,
) -> Result<Vec<T>, ClientError> {
    let mut rows = Vec::new();
    while rows.len() < limit {
        let wanted = (limit - rows.len()).min(PAGE);
        let page = ask(wanted, rows.len()).await?;
        let last = page.len() < wanted;
        rows.extend(page);
        if last {
            break;
        }
    }
    Ok(rows)
}

/// What servers say of a path that leads nowhere; of what is not there, they say what that is.
const NO_ROUTE: &str = "Not Found";

/// The most rows that a server gives at once.
const PAGE: usize = 1000;

fn no_thread(name: &ThreadId) -> ClientError {
    ClientError::NoThread(name.clone())
}

/// Says what it is that a 404 is about.
fn missing(what: impl FnOnce() -> ClientError) -> impl FnOnce(ClientError) -> ClientError {
    |error| match error {
        ClientError::Refused { status: 404, .. } => what(),
        other => other,
    }
}

fn is_here(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
