//! A server, its model, and somebody who asks.

use hart_app::config::LoadOptions;
use hart_app::{App, CancellationToken, Env, Server};
use hart_testkit::{ModelServer, Turn};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

pub(super) struct World {
    pub(super) model: ModelServer,
    pub(super) home: TempDir,
    http: reqwest::Client,
    url: String,
    _server: JoinSet<()>,
}

impl World {
    pub(super) async fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(json!({}), turns).await
    }

    pub(super) async fn with(settings: Value, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::configured(|_| settings, turns).await
    }

    /// With settings that name the model's address.
    pub(super) async fn configured(
        settings: impl FnOnce(&str) -> Value,
        turns: impl IntoIterator<Item = Turn>,
    ) -> Self {
        let (home, model) = (tempfile::tempdir().unwrap(), ModelServer::start().await);
        let settings = settings(&model.openai_base());
        model.push_all(turns);
        let env = Env::from_iter([
            ("HART_NO_PROBE", "1"),
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_BASE_URL", &model.openai_base()),
        ]);
        let options =
            LoadOptions { path: None, cwd: home.path().to_owned(), env: &env, overrides: Some(settings) };
        let app = App::open(options).unwrap();
        let server = Server::bind(&app, None, Some(0)).await.unwrap();
        let url = server.url();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            server.run(CancellationToken::new()).await.unwrap();
            drop(app);
        });
        Self { model, home, http: hart_models::http::client().unwrap(), url, _server: tasks }
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub(super) async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        answered(self.request(method, path).body(body.to_string())).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, answer) = answered(self.request(Method::GET, path)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    pub(super) async fn thread(&self) -> String {
        self.post("/threads", json!({})).await["thread_id"].as_str().unwrap().to_owned()
    }

    /// Says something on a thread and waits for the answer: the state it comes to.
    pub(super) async fn say(&self, thread: &str, words: &str) -> Value {
        let input = json!({"messages": [{"role": "user", "content": words}]});
        let run = json!({"assistant_id": "lead_agent", "input": input, "if_not_exists": "create"});
        self.post(&format!("/threads/{thread}/runs/wait"), run).await
    }

    /// Files as a browser sends them: names and contents.
    pub(super) async fn upload(&self, thread: &str, files: &[(&str, &[u8])]) -> (StatusCode, Value) {
        let path = format!("/api/threads/{thread}/uploads");
        let form = self.request(Method::POST, &path).header("content-type", FORM).body(form(files));
        answered(form).await
    }
}

pub(super) const FORM: &str = "multipart/form-data; boundary=----edge";

pub(super) fn form(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, content) in files {
        let head = format!(
            "------edge\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(content);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"------edge--\r\n");
    form
}

pub(super) async fn answered(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}
