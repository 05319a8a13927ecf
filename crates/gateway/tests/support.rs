//! A server with one agent, whose model says what it is told to.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hart_gateway::{Access, Settings, router_with, serve, tend, with_page};
use hart_kernel::{Agent, Checkpointer, SystemClock, async_trait};
use hart_models::{ScriptedModel, ScriptedTurn};
use hart_runtime::{
    AgentFactory, AgentInfo, AgentRequest, FactoryError, NoWorkspaces, Parts, Retention, Runtime,
};
use hart_store::SqliteStore;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::tools::tools;

pub(crate) struct Server {
    address: SocketAddr,
    http: reqwest::Client,
    runtime: Runtime,
    options: Arc<Mutex<Value>>,
    model: Arc<ScriptedModel>,
    stop: CancellationToken,
    tasks: TaskTracker,
    home: PathBuf,
    dir: Option<tempfile::TempDir>,
}

impl Server {
    /// The model answers with these, one after the other.
    pub(crate) async fn new(answers: &[&str]) -> Self {
        Self::with(answers, Access::default()).await
    }

    pub(crate) async fn with(answers: &[&str], access: Access) -> Self {
        let turns = answers.iter().map(|text| ScriptedTurn::text(*text)).collect();
        Self::open(turns, access, Settings::default()).await
    }

    pub(crate) async fn set(answers: &[&str], access: Access, settings: Settings) -> Self {
        let turns = answers.iter().map(|text| ScriptedTurn::text(*text)).collect();
        Self::open(turns, access, settings).await
    }

    /// With the data that another one left.
    pub(crate) async fn after(dir: tempfile::TempDir, settings: Settings) -> Self {
        let server =
            Self::at(dir.path(), Vec::new(), Access::default(), settings, Retention::default()).await;
        Self { dir: Some(dir), ..server }
    }

    /// The model takes these turns, one after the other; streams beat fast.
    pub(crate) async fn playing(turns: Vec<ScriptedTurn>) -> Self {
        let settings = Settings::default().heartbeat(Duration::from_millis(50));
        Self::open(turns, Access::default(), settings).await
    }

    /// Over the files of a folder that outlives it.
    pub(crate) async fn over(home: &Path, turns: Vec<ScriptedTurn>, retention: Retention) -> Self {
        let settings = Settings::default().heartbeat(Duration::from_millis(50));
        Self::at(home, turns, Access::default(), settings, retention).await
    }

    async fn open(turns: Vec<ScriptedTurn>, access: Access, settings: Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Self::at(dir.path(), turns, access, settings, Retention::default()).await;
        Self { dir: Some(dir), ..server }
    }

    async fn at(
        home: &Path,
        turns: Vec<ScriptedTurn>,
        access: Access,
        settings: Settings,
        retention: Retention,
    ) -> Self {
        let model = Arc::new(ScriptedModel::new(turns));
        let options = Arc::new(Mutex::new(Value::Null));
        let parts = Parts {
            store: Arc::new(SqliteStore::open(&home.join("hart.db")).unwrap()),
            agents: Arc::new(Agents { model: model.clone(), options: options.clone() }),
            workspaces: Arc::new(NoWorkspaces),
            clock: Arc::new(SystemClock),
        };
        let kept = hart_runtime::Settings { retention, ..Default::default() };
        let runtime = Runtime::open_with(parts, kept).await.unwrap();
        tend(&runtime, settings);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (tell, told) = tokio::sync::oneshot::channel();
        let served = serve(
            SocketAddr::from(([127, 0, 0, 1], 0)),
            with_page(router_with(runtime.clone(), access, stop.clone(), settings)),
            stop.clone(),
            |address| tell.send(address).unwrap(),
        );
        tasks.spawn(async move { served.await.unwrap() });
        Self {
            address: told.await.unwrap(),
            http: hart_models::http::client().unwrap(),
            runtime,
            options,
            model,
            stop,
            tasks,
            home: home.to_owned(),
            dir: None,
        }
    }

    pub(crate) async fn thread(&self) -> String {
        self.post("/threads", serde_json::json!({})).await["thread_id"].as_str().unwrap().to_owned()
    }

    /// The model's next turn.
    pub(crate) fn say(&self, turn: ScriptedTurn) {
        self.model.push(turn);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("http://{}{path}", self.address))
    }

    /// The status and the JSON that came back.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let response = self.request(method, path).body(body.to_string()).send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.call(Method::GET, path, Value::Null).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// All that is on the disk.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let files = std::fs::read_dir(&self.home).unwrap().flatten().map(|entry| entry.path());
        files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// What the last run's agent was built with.
    pub(crate) fn options(&self) -> Value {
        self.options.lock().unwrap().clone()
    }

    pub(crate) fn trace_to(&self, exporter: Arc<dyn hart_runtime::TraceExporter>) {
        self.runtime.trace_to(exporter);
    }

    /// Keeps everybody from writing until it is dropped.
    pub(crate) fn lock_store(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.home.join("hart.db")).unwrap();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        db
    }

    /// As if its time had come.
    pub(crate) async fn make_due(&self, cron: &str) {
        let mut cron = self.runtime.store().cron(&cron.into()).await.unwrap().unwrap();
        cron.next_run = Some(self.runtime.now());
        assert!(self.runtime.store().replace_cron(cron.clone(), cron.updated_at).await.unwrap());
        // Whoever waits for the next one looks again.
        self.runtime.change_cron(&cron.id, |_| {}).await.unwrap();
    }

    /// Stops, and waits until everything has.
    pub(crate) async fn close(self) -> Option<tempfile::TempDir> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.runtime.close(Duration::from_secs(1)).await;
        self.dir
    }
}

struct Agents {
    model: Arc<ScriptedModel>,
    /// What the last agent was built with.
    options: Arc<Mutex<Value>>,
}

#[async_trait]
impl AgentFactory for Agents {
    fn agents(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "agent".into(), description: None }]
    }

    async fn build(&self, request: &AgentRequest) -> Result<Agent, FactoryError> {
        *self.options.lock().unwrap() = request.options.clone().into();
        self.reader(&request.agent, Arc::clone(&request.checkpointer))
    }

    fn reader(&self, _: &str, checkpointer: Arc<dyn Checkpointer>) -> Result<Agent, FactoryError> {
        let builder = Agent::builder(self.model.clone()).name("agent").tools(tools(&self.model));
        Ok(builder.checkpointer(checkpointer).build().unwrap())
    }
}
