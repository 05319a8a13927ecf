//! What DeerFlow's web frontend asks, request by request, of `hart serve`: to find that nobody signs in, to list
//! threads, to chat with a stream, to upload, to show what came of it.

use std::io::Write as _;
use std::net::TcpStream;

use hart_testkit::Turn;
use serde_json::{Value, json};

use super::bench::Bench;
use super::serve::{Served, read};

/// As the frontend makes one before it asks for it.
const THREAD: &str = "6f0c0a52-4f6b-4d2e-9c63-0d6f3f2b7a11";

/// The base of LangGraph's client in the frontend.
const SDK: &str = "/api/langgraph";

struct Frontend {
    served: Served,
}

impl Frontend {
    /// The status, the head and the body of an answer.
    fn send(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String, String) {
        self.send_with(method, path, &format!("content-type: {kind}\r\n"), body)
    }

    fn send_with(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.served.address).unwrap();
        let (host, length) = (self.served.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\norigin: http://localhost:3000\r\n\
             {headers}content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let answer = read(stream);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(body) } else { body.to_owned() };
        (status, head.to_ascii_lowercase(), body)
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, answer) = self.send(method, path, "application/json", body.to_string().as_bytes());
        (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.json("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.json("POST", path, &body);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The events of a run's stream, by their names, and the head of the answer.
    fn stream(&self, path: &str, body: &Value) -> (String, Vec<(String, Value)>) {
        let (status, head, text) = self.send("POST", path, "application/json", body.to_string().as_bytes());
        assert_eq!(status, 200, "{text}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        (head, events(&text))
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let (chunk, rest) = rest.split_at(size);
        whole.push_str(chunk);
        body = rest.trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    whole
}

fn events(text: &str) -> Vec<(String, Value)> {
    let frames = text.replace("\r\n", "\n");
    let frames = frames.split("\n\n").filter(|frame| frame.contains("event: "));
    let line = |frame: &str, name: &str| {
        frame.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let read = |frame: &str| {
        let data = serde_json::from_str(&line(frame, "data: ")).unwrap_or(Value::Null);
        (line(frame, "event: "), data)
    };
    frames.map(read).collect()
}

/// As the frontend submits a message in the mode `pro`.
fn submit(text: &str, files: Value) -> Value {
    let message = json!({"type": "human", "content": [{"type": "text", "text": text}],
        "additional_kwargs": {"files": files}});
    json!({
        "assistant_id": "lead_agent", "input": {"messages": [message]},
        "config": {"recursion_limit": 1000},
        "context": {"mode": "pro", "thinking_enabled": true, "is_plan_mode": true, "subagent_enabled": false,
            "reasoning_effort": "medium", "thread_id": THREAD},
        "stream_mode": ["values", "messages-tuple", "updates", "custom"],
        "stream_subgraphs": true, "on_disconnect": "continue", "if_not_exists": "create",
    })
}

fn turns() -> Vec<Turn> {
    let report = "/mnt/user-data/outputs/report.md";
    let write = json!({"description": "w", "path": report, "content": "# Report\n42\n"});
    vec![
        Turn::new().text("Let me write it down.").tool_call("c1", "write_file", write).usage(100, 10),
        Turn::new().tool_call("c2", "present_files", json!({"filepaths": [report]})).usage(120, 10),
        Turn::new().text_fragments(["It ", "is ", "42."]).usage(140, 10),
    ]
}

#[test]
fn deerflows_frontend_gets_what_it_asks_for() {
    let bench = Bench::with(turns());
    let page = Frontend { served: Served::start(bench.hart()) };
    before_the_first_message(&page);
    let artifact = the_first_message(&page, &bench);
    afterwards(&page, &artifact);
    the_second_message(&page, &bench);
    stopping(&page, &bench);
    managing(&page);
}

fn before_the_first_message(page: &Frontend) {
    assert_eq!(page.get("/api/v1/auth/setup-status")["needs_setup"], false);
    assert_eq!(page.get("/api/v1/auth/me")["system_role"], "admin");
    let models = page.get("/api/models");
    let first = &models["models"][0];
    for key in ["name", "model", "display_name", "supports_thinking", "supports_reasoning_effort"] {
        assert!(first.get(key).is_some(), "{key}: {first}");
    }
    assert_eq!(models["token_usage"]["enabled"], true);
    assert!(page.get("/api/features")["agents_api"]["enabled"].is_boolean());
    assert!(page.get("/api/skills")["skills"].is_array() && page.get("/api/agents")["agents"].is_array());
    let search = json!({"limit": 50, "offset": 0, "sort_by": "updated_at", "sort_order": "desc",
        "select": ["thread_id", "updated_at", "values", "metadata"]});
    assert_eq!(page.post(&format!("{SDK}/threads/search"), search), json!([]));
    let limits = page.get(&format!("/api/threads/{THREAD}/uploads/limits"));
    assert!(limits["max_files"].is_u64(), "{limits}");
    for absent in ["/api/memory", "/api/mcp/config", "/api/channels/providers", "/api/scheduled-tasks"] {
        let (status, answer) = page.json("GET", absent, &Value::Null);
        assert_eq!(status, 501, "{absent}: {answer}");
    }
}

/// What came of it.
fn the_first_message(page: &Frontend, bench: &Bench) -> String {
    let form = "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"data.csv\"\r\n\
                Content-Type: text/csv\r\n\r\na,b\n1,2\n\r\n--b--\r\n";
    let uploads = format!("/api/threads/{THREAD}/uploads");
    let (status, _, uploaded) =
        page.send("POST", &uploads, "multipart/form-data; boundary=b", form.as_bytes());
    let uploaded: Value = serde_json::from_str(&uploaded).unwrap();
    assert_eq!((status, &uploaded["success"]), (200, &json!(true)), "{uploaded}");
    // The client makes the thread before its first run, also when the files have made it.
    assert_eq!(page.post(&format!("{SDK}/threads"), json!({"thread_id": THREAD}))["thread_id"], THREAD);
    let file = &uploaded["files"][0];
    let files = json!([{"filename": file["filename"], "size": file["size"], "path": file["virtual_path"],
        "status": "uploaded"}]);
    let (head, events) =
        page.stream(&format!("{SDK}/threads/{THREAD}/runs/stream"), &submit("What is the answer?", files));
    assert!(
        head.contains(&format!("/threads/{THREAD}/runs/")),
        "the client reads the run's id there: {head}"
    );
    assert!(head.contains("access-control-allow-origin: http://localhost:3000"), "{head}");
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("metadata", "end"));
    for mode in ["values", "messages", "updates"] {
        assert!(names.contains(&mode), "{mode}: {names:?}");
    }
    let tokens: String = events
        .iter()
        .filter(|(name, data)| name == "messages" && data[0]["type"] == "AIMessageChunk")
        .filter_map(|(_, data)| data[0]["content"].as_str())
        .collect();
    assert!(tokens.ends_with("It is 42."), "{tokens}");
    let (_, last) = events.iter().rfind(|(name, _)| name == "values").unwrap();
    assert!(last["title"].is_string() && last["messages"].is_array());
    assert!(bench.server.requests()[0].texts_of("user").concat().contains("data.csv"));
    last["artifacts"][0].as_str().unwrap().to_owned()
}

fn afterwards(page: &Frontend, artifact: &str) {
    let found = page.post(&format!("{SDK}/threads/search"), json!({"limit": 50}));
    assert_eq!((&found[0]["thread_id"], found[0]["values"]["title"].is_string()), (&json!(THREAD), true));
    let state = page.get(&format!("{SDK}/threads/{THREAD}/state"));
    assert_eq!(state["next"], json!([]));
    let runs = page.get(&format!("{SDK}/threads/{THREAD}/runs?limit=10&offset=0"));
    let run = runs[0]["run_id"].as_str().unwrap();
    assert_eq!(page.get(&format!("{SDK}/threads/{THREAD}/runs/{run}"))["status"], "success");
    assert_eq!(page.get(&format!("/api/threads/{THREAD}/token-usage"))["total_tokens"], 390);
    let messages = page.get(&format!("/api/threads/{THREAD}/messages/page?limit=50"));
    assert_eq!(
        (&messages["has_more"], &messages["data"][0]["event_type"]),
        (&json!(false), &json!("llm.human.input"))
    );
    let changes = page.get(&format!("/api/threads/{THREAD}/runs/{run}/workspace-changes?include_files=true"));
    assert_eq!(changes["files"][0]["path"], artifact, "{changes}");
    let show = format!("/api/threads/{THREAD}/artifacts{artifact}");
    let (status, head, text) = page.send("GET", &show, "application/json", b"");
    assert_eq!((status, text.as_str()), (200, "# Report\n42\n"), "{head}");
    let (status, rated) =
        page.json("PUT", &format!("/api/threads/{THREAD}/runs/{run}/feedback"), &json!({"rating": 1}));
    assert_eq!((status, &rated["rating"]), (200, &json!(1)));
    assert!(page.get("/api/suggestions/config")["enabled"].is_boolean());
    // What a page asks that was loaded again: all that there was.
    let joined = format!("{SDK}/threads/{THREAD}/runs/{run}/stream");
    let (status, _, again) = page.send_with("GET", &joined, "last-event-id: -1\r\n", b"");
    assert_eq!((status, events(&again).last().unwrap().0.as_str()), (200, "end"));
    // What the client's `stop` asks, and takes 409 for done.
    let cancel = format!("{SDK}/threads/{THREAD}/runs/{run}/cancel?wait=0&action=interrupt");
    assert_eq!(page.json("POST", &cancel, &json!({})).0, 409);
}

/// With the checkpoint of the newest state, which the client's hook sends once it has seen one.
fn the_second_message(page: &Frontend, bench: &Bench) {
    let history = page.post(&format!("{SDK}/threads/{THREAD}/history"), json!({"limit": 1}));
    bench.server.push(Turn::new().text("Still 42."));
    let mut asked = submit("Are you sure?", json!([]));
    asked["checkpoint"] = history[0]["checkpoint"].clone();
    let (_, events) = page.stream(&format!("{SDK}/threads/{THREAD}/runs/stream"), &asked);
    let (_, last) = events.iter().rfind(|(name, _)| name == "values").unwrap();
    let text = last["messages"].to_string();
    assert!(text.contains("What is the answer?") && text.contains("Still 42."), "{text}");
}

fn stopping(page: &Frontend, bench: &Bench) {
    bench.server.push(Turn::new().text_fragments(["One", "Two"]).hang_after(1));
    let run = page.post(&format!("{SDK}/threads/{THREAD}/runs"), submit("Count", json!([])));
    let run = run["run_id"].as_str().unwrap();
    let (status, _) = page.json("POST", &format!("{SDK}/threads/{THREAD}/runs"), &{
        let mut second = submit("Again", json!([]));
        second["multitask_strategy"] = json!("reject");
        second
    });
    assert_eq!(status, 409, "a busy thread");
    let cancel = format!("{SDK}/threads/{THREAD}/runs/{run}/cancel?wait=1&action=interrupt");
    let (status, _) = page.json("POST", &cancel, &json!({}));
    assert!(matches!(status, 200 | 202 | 204), "{status}");
    assert_eq!(page.get(&format!("{SDK}/threads/{THREAD}/runs/{run}"))["status"], "interrupted");
}

fn managing(page: &Frontend) {
    let thread = format!("{SDK}/threads/{THREAD}");
    let (status, patched) = page.json("PATCH", &thread, &json!({"metadata": {"pinned": true}}));
    assert_eq!((status, &patched["metadata"]["pinned"]), (200, &json!(true)));
    page.post(&format!("{thread}/state"), json!({"values": {"title": "The answer"}}));
    assert_eq!(page.get(&thread)["values"]["title"], "The answer");
    let (status, _) = page.json("DELETE", &thread, &Value::Null);
    assert!(matches!(status, 200 | 204), "{status}");
    assert_eq!(page.json("GET", &thread, &Value::Null).0, 404);
    let uploads = format!("/api/threads/{THREAD}/uploads/list");
    assert_eq!(page.json("GET", &uploads, &Value::Null).0, 404);
}
