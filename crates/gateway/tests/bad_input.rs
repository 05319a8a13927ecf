//! Every route against everything that can be wrong with a request. The routes are read from the server itself: one
//! that has no row here fails.

use std::collections::BTreeMap;

use hart_gateway::{Access, Settings};
use hart_testkit::in_time;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::Server;

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// A body that can be read, and the status when nothing that the path or the body names is there.
const ROWS: &[(&str, &str, u16)] = &[
    ("GET /", "", 200),
    ("GET /ok", "", 200),
    ("GET /info", "", 200),
    ("GET /health", "", 200),
    ("GET /metrics", "", 200),
    ("GET /openapi.json", "", 200),
    ("GET /docs", "", 200),
    ("GET /docs/page.js", "", 200),
    ("GET /docs/page.css", "", 200),
    ("POST /assistants", r#"{"graph_id": "nobody"}"#, 404),
    ("POST /assistants/search", r#"{"graph_id": "nobody"}"#, 404),
    ("POST /assistants/count", r#"{"graph_id": "nobody"}"#, 404),
    ("GET /assistants/{assistant}", "", 404),
    ("PATCH /assistants/{assistant}", r#"{"name": "n"}"#, 404),
    ("DELETE /assistants/{assistant}", "", 404),
    ("POST /assistants/{assistant}/versions", "{}", 404),
    ("POST /assistants/{assistant}/latest", r#"{"version": 1}"#, 404),
    ("GET /assistants/{assistant}/graph", "", 404),
    ("GET /assistants/{assistant}/schemas", "", 404),
    ("GET /assistants/{assistant}/subgraphs", "", 404),
    ("GET /assistants/{assistant}/subgraphs/{namespace}", "", 404),
    ("POST /threads", "{}", 200),
    ("POST /threads/search", r#"{"metadata": {"a": 1}}"#, 200),
    ("POST /threads/count", r#"{"metadata": {"a": 1}}"#, 200),
    ("POST /threads/prune", r#"{"thread_ids": ["UNKNOWN"]}"#, 200),
    ("GET /threads/{thread}", "", 404),
    ("PATCH /threads/{thread}", r#"{"metadata": {}}"#, 404),
    ("DELETE /threads/{thread}", "", 404),
    ("POST /threads/{thread}/copy", "", 409),
    ("GET /threads/{thread}/state", "", 404),
    ("POST /threads/{thread}/state", r#"{"values": {}}"#, 404),
    ("POST /threads/{thread}/state/checkpoint", r#"{"checkpoint": {}}"#, 404),
    ("GET /threads/{thread}/state/{checkpoint}", "", 404),
    ("GET /threads/{thread}/history", "", 404),
    ("POST /threads/{thread}/history", r#"{"limit": 3}"#, 404),
    ("GET /threads/{thread}/stream", "", 200),
    ("POST /threads/{thread}/commands", r#"{"id": 1, "method": "run.start"}"#, 200),
    ("POST /threads/{thread}/stream/events", r#"{"channels": ["values"]}"#, 200),
    ("GET /threads/{thread}/stream/events", "", 400),
    ("GET /threads/{thread}/runs", "", 404),
    ("POST /threads/{thread}/runs", r#"{"assistant_id": "agent"}"#, 404),
    ("POST /threads/{thread}/runs/stream", r#"{"assistant_id": "agent"}"#, 404),
    ("POST /threads/{thread}/runs/wait", r#"{"assistant_id": "agent"}"#, 404),
    ("GET /threads/{thread}/runs/{run}", "", 404),
    ("DELETE /threads/{thread}/runs/{run}", "", 404),
    ("GET /threads/{thread}/runs/{run}/join", "", 404),
    ("GET /threads/{thread}/runs/{run}/stream", "", 404),
    ("POST /threads/{thread}/runs/{run}/cancel", "", 404),
    ("PUT /store/items", r#"{"namespace": ["a"], "key": "k", "value": {}}"#, 204),
    ("GET /store/items", "", 400),
    ("DELETE /store/items", r#"{"namespace": ["a"], "key": "nothing"}"#, 204),
    ("POST /store/items/search", r#"{"namespace_prefix": ["nothing"]}"#, 200),
    ("POST /store/namespaces", r#"{"prefix": ["nothing"]}"#, 200),
    ("POST /runs", r#"{"assistant_id": "UNKNOWN"}"#, 404),
    ("POST /runs/stream", r#"{"assistant_id": "UNKNOWN"}"#, 404),
    ("POST /runs/wait", r#"{"assistant_id": "UNKNOWN"}"#, 404),
    ("POST /runs/batch", r#"[{"assistant_id": "UNKNOWN"}]"#, 404),
    ("POST /runs/cancel", r#"{"thread_id": "UNKNOWN", "run_ids": ["UNKNOWN"]}"#, 404),
    ("GET /runs/{run}/stream", "", 404),
    ("POST /runs/crons", r#"{"assistant_id": "UNKNOWN", "schedule": "@daily"}"#, 404),
    ("POST /runs/crons/search", r#"{"assistant_id": "UNKNOWN"}"#, 200),
    ("POST /runs/crons/count", r#"{"thread_id": "UNKNOWN"}"#, 200),
    ("GET /runs/crons/{cron}", "", 404),
    ("PATCH /runs/crons/{cron}", r#"{"enabled": false}"#, 404),
    ("DELETE /runs/crons/{cron}", "", 404),
    ("POST /threads/{thread}/runs/crons", r#"{"assistant_id": "agent", "schedule": "@daily"}"#, 404),
    ("GET /api/runs", "", 200),
    ("GET /api/runs/{run}", "", 404),
    ("GET /api/models", "", 200),
    ("GET /api/models/{model}", "", 404),
    ("GET /api/connections", "", 501),
    ("POST /api/connections/test", r#"{"provider": "ollama"}"#, 501),
    ("PUT /api/connections/{name}", r#"{"provider": "ollama"}"#, 501),
    ("DELETE /api/connections/{name}", "", 501),
    ("GET /api/console/usage", "", 200),
    ("GET /api/threads/{thread}/artifacts/{path}", "", 404),
    ("PUT /api/threads/{thread}/artifacts/{path}", r#"{"content": "", "expected_sha256": ""}"#, 404),
    ("POST /api/threads/{thread}/uploads", "", 501),
    ("GET /api/threads/{thread}/uploads/list", "", 404),
    ("GET /api/threads/{thread}/uploads/limits", "", 200),
    ("DELETE /api/threads/{thread}/uploads/{filename}", "", 404),
    ("GET /api/features", "", 200),
    ("GET /api/skills", "", 501),
    ("GET /api/skills/{skill}", "", 501),
    ("PUT /api/skills/{skill}", r#"{"enabled": true}"#, 501),
    ("POST /api/skills/install", r#"{"thread_id": "UNKNOWN", "path": "a.skill"}"#, 501),
    ("POST /api/skills/reload", "", 501),
    ("GET /api/skills/custom", "", 501),
    ("GET /api/skills/custom/{skill}", "", 501),
    ("PUT /api/skills/custom/{skill}", r#"{"content": "c"}"#, 501),
    ("DELETE /api/skills/custom/{skill}", "", 501),
    ("GET /api/skills/custom/{skill}/history", "", 501),
    ("POST /api/skills/custom/{skill}/rollback", "{}", 501),
    ("GET /api/agents", "", 501),
    ("POST /api/agents", r#"{"name": "poet"}"#, 501),
    ("GET /api/agents/check", "", 422),
    ("GET /api/agents/{agent}", "", 501),
    ("PUT /api/agents/{agent}", r#"{"description": "d"}"#, 501),
    ("DELETE /api/agents/{agent}", "", 501),
    ("GET /api/v1/auth/setup-status", "", 200),
    ("GET /api/v1/auth/me", "", 200),
    ("GET /api/v1/auth/providers", "", 200),
    ("POST /api/v1/auth/login/local", "username=a&password=b", 200),
    ("POST /api/v1/auth/logout", "", 200),
    ("POST /api/v1/auth/register", "", 403),
    ("POST /api/v1/auth/initialize", "", 409),
    ("POST /api/v1/auth/change-password", "", 400),
    ("GET /api/threads/{thread}/branches", "", 404),
    ("GET /api/threads/{thread}/goal", "", 501),
    ("PUT /api/threads/{thread}/goal", r#"{"objective": "o"}"#, 501),
    ("DELETE /api/threads/{thread}/goal", "", 501),
    ("POST /api/threads/{thread}/branches", r#"{"message_id": "m"}"#, 404),
    ("POST /api/threads/{thread}/compact", "{}", 404),
    ("POST /api/threads/{thread}/runs/regenerate/prepare", r#"{"message_id": "m"}"#, 404),
    (
        "POST /api/threads/{thread}/runs/edit-regenerate/prepare",
        r#"{"human_message_id": "m", "replacement_text": "t"}"#,
        404,
    ),
    ("PUT /api/threads/{thread}/runs/{run}/feedback", r#"{"rating": 1}"#, 404),
    ("POST /api/threads/{thread}/runs/{run}/feedback", r#"{"rating": 1}"#, 404),
    ("GET /api/threads/{thread}/runs/{run}/feedback", "", 404),
    ("DELETE /api/threads/{thread}/runs/{run}/feedback", "", 404),
    ("GET /api/threads/{thread}/runs/{run}/feedback/stats", "", 404),
    ("DELETE /api/threads/{thread}/runs/{run}/feedback/{feedback}", "", 404),
    ("GET /api/runs/{run}/feedback", "", 404),
    ("GET /api/suggestions/config", "", 200),
    ("POST /api/threads/{thread}/suggestions", r#"{"messages": []}"#, 404),
    ("POST /api/input-polish", r#"{"text": "t"}"#, 501),
    ("GET /api/threads/{thread}/messages", "", 404),
    ("GET /api/threads/{thread}/messages/page", "", 404),
    ("GET /api/threads/{thread}/runs/{run}/messages", "", 404),
    ("GET /api/runs/{run}/messages", "", 404),
    ("GET /api/threads/{thread}/runs/{run}/events", "", 404),
    ("GET /api/threads/{thread}/token-usage", "", 404),
    ("GET /api/threads/{thread}/runs/{run}/workspace-changes", "", 404),
];

/// One operation of the server's own description.
struct Operation {
    method: Method,
    path: String,
    /// What its body is read into.
    body: Option<Value>,
}

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// With all parts of the path being this.
    fn at(&self, part: &str) -> String {
        let parts = self.path.split('/').map(|name| if name.starts_with('{') { part } else { name });
        parts.collect::<Vec<_>>().join("/")
    }

    /// The event protocol has a status of its own for what cannot be read.
    fn unreadable(&self) -> u16 {
        let own = ["/commands", "/stream/events"].iter().any(|end| self.path.ends_with(end));
        if own { 400 } else { 422 }
    }

    fn row(&self) -> (&'static str, u16) {
        let name = self.name();
        let row = ROWS.iter().find(|(row, ..)| *row == name);
        let (_, body, status) = row.unwrap_or_else(|| panic!("{name} has no row"));
        (body, *status)
    }
}

async fn operations(server: &Server) -> Vec<Operation> {
    let api = server.get("/openapi.json").await;
    let mut found = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            let schema = about.pointer("/requestBody/content/application~1json/schema");
            let body = schema.map(|schema| match schema["$ref"].as_str() {
                Some(at) => api.pointer(at.trim_start_matches('#')).unwrap().clone(),
                None => schema.clone(),
            });
            let method = method.to_uppercase().parse().unwrap();
            found.push(Operation { method, path: path.clone(), body });
        }
    }
    assert_eq!(found.len(), ROWS.len(), "rows of routes that are gone");
    found
}

async fn server() -> Server {
    Server::set(&[], Access::default(), Settings::default().body_limit(4096)).await
}

/// What came back is a refusal, and says why.
async fn ask(server: &Server, method: &Method, path: &str, body: &str) -> (StatusCode, Value) {
    let response = server.request(method.clone(), path).body(body.to_owned()).send().await.unwrap();
    let status = response.status();
    assert!(response.headers().contains_key("x-request-id"), "{method} {path}");
    // A stream of a thread has no end, and no error once it has begun.
    if response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    {
        return (status, Value::Null);
    }
    let text = response.text().await.unwrap();
    let not_here = status == StatusCode::NOT_IMPLEMENTED && path.starts_with("/api/");
    assert!(status.as_u16() < 500 || not_here, "{method} {path} {body}: {status} {text}");
    let answer = serde_json::from_str(&text).unwrap_or(Value::Null);
    if status.as_u16() >= 400 && !path.starts_with("/store/items") {
        // Commands are answered in their own protocol's words.
        let why = if path.ends_with("/commands") { &answer["message"] } else { &answer["detail"] };
        let why = if path.starts_with("/api/v1/auth/") { &answer["detail"]["message"] } else { why };
        assert!(why.is_string() || answer["detail"].is_string(), "{method} {path} {body}: {status} {text}");
    }
    (status, answer)
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_known() {
    let server = server().await;
    for operation in operations(&server).await {
        let (body, expected) = operation.row();
        let body = body.replace("UNKNOWN", UNKNOWN);
        let path = operation.at(UNKNOWN);
        let (status, answer) = ask(&server, &operation.method, &path, &body).await;
        assert_eq!(status.as_u16(), expected, "{}: {answer}", operation.name());
        // A field that nobody knows changes nothing; one that is null is not there.
        if let Ok(Value::Object(mut body)) = serde_json::from_str(&body) {
            body.insert("zzz".to_owned(), json!(1));
            body.insert("checkpoint_id".to_owned(), Value::Null);
            let body = Value::Object(body).to_string();
            let (status, answer) = ask(&server, &operation.method, &path, &body).await;
            assert_eq!(status.as_u16(), expected, "{}: {answer}", operation.name());
        }
    }
    server.close().await;
}

#[tokio::test]
async fn bodies_that_cannot_be_read() {
    let server = server().await;
    for operation in operations(&server).await.iter().filter(|operation| operation.body.is_some()) {
        let (method, path) = (&operation.method, operation.at(UNKNOWN));
        let deep = "[".repeat(3000);
        for broken in ["{\"a\":", "{'a': 1}", "\u{0}", "{\"a\":1}}", "\"\\ud800\"", "NaN", &deep] {
            let (status, answer) = ask(&server, method, &path, broken).await;
            assert_eq!(status.as_u16(), operation.unreadable(), "{} {broken}", operation.name());
            let detail = answer["detail"].as_str().unwrap();
            assert!(detail.starts_with("Invalid JSON"), "{} {broken}: {detail}", operation.name());
        }
        for mistyped in ["7", "\"text\"", "true", "[1]", "[[]]"] {
            let (status, _) = ask(&server, method, &path, mistyped).await;
            assert_eq!(status.as_u16(), operation.unreadable(), "{} {mistyped}", operation.name());
        }
        let huge = format!("{{\"metadata\": \"{}\"}}", "x".repeat(5000));
        let (status, _) = ask(&server, method, &path, &huge).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{}", operation.name());
    }
    server.close().await;
}

/// Each field with values of every other type, and numbers at the edges.
#[tokio::test]
async fn fields_of_the_wrong_type() {
    let server = server().await;
    let mut mistyped = 0;
    for operation in operations(&server).await {
        let Some(fields) = operation.body.as_ref().and_then(|body| body["properties"].as_object()) else {
            continue;
        };
        let (body, _) = operation.row();
        let body = body.replace("UNKNOWN", UNKNOWN);
        let path = operation.at(UNKNOWN);
        for field in fields.keys() {
            for value in [
                json!(-1),
                json!(1e300),
                json!(u64::MAX),
                json!(""),
                json!("\u{0}\u{1f}"),
                json!("*"),
                json!([]),
                json!([{}]),
                json!({"a": {"b": [null]}}),
                json!(true),
            ] {
                let mut body: Value = serde_json::from_str(&body).unwrap();
                body[field] = value;
                let (status, _) = ask(&server, &operation.method, &path, &body.to_string()).await;
                mistyped += u32::from(status == StatusCode::UNPROCESSABLE_ENTITY);
            }
        }
    }
    assert!(mistyped > 500, "only {mistyped} were refused");
    server.close().await;
}

#[tokio::test]
async fn ids_that_are_none() {
    let server = server().await;
    let long = "a".repeat(5000);
    for operation in operations(&server).await.iter().filter(|operation| operation.path.contains('{')) {
        let (body, _) = operation.row();
        for id in ["..%2f..%2fetc%2fpasswd", "%00", "%ff", "a%20b", "%E2%80%AE", "'%20OR%201=1--", &long] {
            let (status, answer) = ask(&server, &operation.method, &operation.at(id), body).await;
            // What a server does not have, it has under no name.
            let expected = if operation.row().1 == 501 { &[422, 501] } else { &[404, 422] };
            assert!(expected.contains(&status.as_u16()), "{} {id}: {status} {answer}", operation.name());
        }
    }
    server.close().await;
}

#[tokio::test]
async fn methods_that_a_path_does_not_have() {
    let server = server().await;
    let mut paths: BTreeMap<String, Vec<Method>> = BTreeMap::new();
    for operation in operations(&server).await {
        let path = operation.at(UNKNOWN);
        if !path.starts_with("/api/") && path != "/" {
            // LangGraph's are there too.
            paths.entry(format!("/api{path}")).or_default().push(operation.method.clone());
        }
        paths.entry(path).or_default().push(operation.method);
    }
    for (path, has) in paths {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::TRACE] {
            if has.contains(&method) {
                continue;
            }
            let response = server.request(method.clone(), &path).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
            assert!(has.iter().all(|method| allowed.contains(method.as_str())), "{path}: {allowed}");
            let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(answer["detail"], "Method Not Allowed", "{method} {path}");
        }
    }
    server.close().await;
}

#[tokio::test]
async fn every_answer_has_its_headers_and_an_id() {
    let server = server().await;
    for path in ["/ok", "/nowhere", "/threads/none"] {
        let response =
            server.request(Method::GET, path).header("x-request-id", "mine-1.2_3").send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("x-request-id"), "mine-1.2_3");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(header("content-security-policy").starts_with("default-src 'none'"));
    }
    for strange in ["a b", "{}", &"x".repeat(200)] {
        let response =
            server.request(Method::GET, "/ok").header("x-request-id", strange).send().await.unwrap();
        let id = response.headers()["x-request-id"].to_str().unwrap();
        assert!(id != strange && uuid::Uuid::parse_str(id).is_ok(), "{id}");
    }
    let page = server.request(Method::GET, "/docs").send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("script-src 'self'") && !policy.contains("http"), "{policy}");
    let page = page.text().await.unwrap();
    assert!(page.contains("docs/page.js") && !page.contains("//"), "it loads nothing from elsewhere");
    server.close().await;
}

#[tokio::test]
async fn a_client_cannot_speak_as_the_server() {
    let server = Server::new(&["hello"]).await;
    let thread = server.post("/threads", json!({})).await;
    let path = format!("/threads/{}", thread["thread_id"].as_str().unwrap());
    let hidden =
        json!({"role": "user", "content": "hi", "additional_kwargs": {"hide_from_ui": true, "k": 1}});
    let run = json!({"assistant_id": "agent", "input": {"messages": [hidden]}});
    let values = server.post(&format!("{path}/runs/wait"), run).await;
    assert_eq!(values["messages"][0]["additional_kwargs"], json!({"k": 1}));
    server.post(&format!("{path}/state"), json!({"values": {"messages": [hidden]}})).await;
    let state = server.get(&format!("{path}/state")).await;
    assert_eq!(state["values"]["messages"][2]["additional_kwargs"], json!({"k": 1}));
    server.close().await;
}

/// Nobody answers: the store is asked for a lock that another process holds.
#[tokio::test]
async fn a_request_that_takes_too_long_is_answered() {
    let settings = Settings::default().request_timeout(std::time::Duration::from_millis(300));
    let server = Server::set(&[], Access::default(), settings).await;
    let lock = server.lock_store();
    let (status, answer) = server.call(Method::POST, "/threads", json!({})).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("took too long"));
    drop(lock);
    server.post("/threads", json!({})).await;
    server.close().await;
}

/// Also where hart has no use for what the field says.
#[tokio::test]
async fn fields_that_change_nothing_are_read_nonetheless() {
    let server = server().await;
    let id = server.thread().await;
    let runs = format!("/threads/{id}/runs");
    for (path, field, value) in [
        (&*runs, "feedback_keys", json!("score")),
        (&runs, "stream_resumable", json!("yes")),
        (&runs, "config", json!({"tags": "one"})),
        (&runs, "config", json!({"tags": [1]})),
        ("/store/items", "index", json!("title")),
        ("/threads/prune", "strategy", json!("delete")),
    ] {
        let mut body = json!({"assistant_id": "agent", "namespace": ["a"], "key": "k", "value": {}});
        body[field] = value;
        let method = if path == "/store/items" { Method::PUT } else { Method::POST };
        let (status, answer) = ask(&server, &method, path, &body.to_string()).await;
        assert_eq!(status.as_u16(), 422, "{field} at {path}: {answer}");
    }
    server.close().await;
}

/// Small on the wire and a hundred times that in memory.
#[tokio::test]
async fn bodies_of_millions_of_values_are_too_large() {
    let server = Server::new(&[]).await;
    let ones = format!("{}1", "1,".repeat(600_000));
    let body = format!(r#"{{"metadata": {{"ones": [{ones}]}}}}"#);
    assert_eq!(ask(&server, &Method::POST, "/threads", &body).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let text = format!(r#"{{"metadata": {{"ones": "{ones}"}}}}"#);
    assert_eq!(ask(&server, &Method::POST, "/threads", &text).await.0, StatusCode::OK, "a text is one value");
    server.close().await;
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_waited_for() {
    let server = Server::new(&[]).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = "POST /threads HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    in_time("an answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    server.close().await;
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_place_and_in_plain_words() {
    let server = Server::new(&[]).await;
    for (path, body, told) in [
        (
            "/threads/search",
            r#"{"limit": -1}"#,
            "`limit`: invalid value: integer `-1`, expected a whole number, at least 0",
        ),
        (
            "/runs",
            r#"{"assistant_id": "agent", "after_seconds": "x"}"#,
            "`after_seconds`: invalid type: string \"x\", expected a number",
        ),
        (
            "/runs",
            r#"{"assistant_id": "agent", "interrupt_before": "tools"}"#,
            r#"`interrupt_before`: `tools` must be in a list: ["tools"]; only "*" stands alone"#,
        ),
        ("/threads", r#"{"metadata": 5}"#, "`metadata`: invalid type: integer `5`, expected a map"),
    ] {
        let (status, answer) = ask(&server, &Method::POST, path, body).await;
        assert_eq!((status.as_u16(), answer["detail"].as_str()), (422, Some(told)), "{path}");
    }
    server.close().await;
}
