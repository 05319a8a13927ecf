//! The commands of the event protocol: a run is started, a question answered.
//!
//! Invariant: what is wrong with a command is told in its answer; only what is no command at all is an HTTP error.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hart_runtime::Thread;
use hart_types::{StreamMode, ThreadId, ThreadStatus};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::run_request::{RunRequest, begin};
use crate::Gateway;
use crate::error::{ApiError, ApiResult};
use crate::parse::{Path, Raw, thread_id};

/// A command whose envelope is in order.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) id: i64,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// Why a command is not done.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: &'static str,
    message: String,
}

pub(crate) async fn post(
    State(gateway): State<Gateway>,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Raw(body): Raw,
) -> ApiResult<Response> {
    let thread = thread_id(&thread)?;
    let body: Value =
        serde_json::from_slice(&body).map_err(|_| ApiError::bad_request("Invalid JSON body"))?;
    let command = match Command::parse(body) {
        Ok(command) => command,
        Err(answer) => return Ok((StatusCode::BAD_REQUEST, Json(answer)).into_response()),
    };
    let done = obey(&gateway, &thread, &headers, &command).await;
    Ok(Json(answer(&command, done, 0)).into_response())
}

impl Command {
    /// The answer, if it is none.
    pub(crate) fn parse(body: Value) -> Result<Self, Value> {
        let id = body.get("id").and_then(Value::as_i64);
        let method = body.get("method").and_then(Value::as_str).map(str::to_owned);
        let (Some(id), Some(method)) = (id, method) else {
            return Err(no_command("Protocol commands must include an integer id and string method."));
        };
        match body.get("params") {
            None | Some(Value::Null) => Ok(Self { id, method, params: Map::new() }),
            Some(Value::Object(params)) => Ok(Self { id, method, params: params.clone() }),
            Some(_) => {
                let mut answer = no_command("Protocol command params must be an object.");
                if let Some(map) = answer.as_object_mut() {
                    map.insert("id".to_owned(), id.into());
                }
                Err(answer)
            }
        }
    }
}

pub(crate) fn no_command(message: &str) -> Value {
    json!({"type": "error", "id": null, "error": "invalid_argument", "message": message})
}

/// `seq` is the number of the last event that was sent on the same connection.
pub(crate) fn answer(command: &Command, done: Result<Value, Refusal>, seq: u64) -> Value {
    let (id, meta) = (command.id, json!({ "applied_through_seq": seq }));
    match done {
        Ok(result) => json!({"type": "success", "id": id, "result": result, "meta": meta}),
        Err(Refusal { code, message }) => {
            json!({"type": "error", "id": id, "error": code, "message": message, "meta": meta})
        }
    }
}

/// What can be asked over either kind of connection.
pub(crate) async fn obey(
    gateway: &Gateway,
    thread: &ThreadId,
    headers: &HeaderMap,
    command: &Command,
) -> Result<Value, Refusal> {
    match command.method.as_str() {
        "run.start" => start(gateway, thread, headers, &command.params).await,
        "input.respond" => respond(gateway, thread, headers, &command.params).await,
        method if method.starts_with("subscription.") || method == "agent.getTree" => {
            let message = format!("`{method}` needs a WebSocket at /threads/{thread}/stream/events");
            Err(Refusal::new("unsupported", message))
        }
        method => Err(Refusal::new("unknown_command", format!("Unknown command: {method}"))),
    }
}

async fn start(
    gateway: &Gateway,
    thread: &ThreadId,
    headers: &HeaderMap,
    params: &Map<String, Value>,
) -> Result<Value, Refusal> {
    let Some(assistant) = params.get("assistant_id").and_then(Value::as_str) else {
        return Err(Refusal::invalid("run.start requires a string assistant_id."));
    };
    let mut body = request(assistant, params)?;
    if let Some(input) = params.get("input").filter(|input| !input.is_null()) {
        // Whoever speaks to a thread that asked something answers it.
        gateway.runtime.until_asked(thread).await;
        let row = gateway.runtime.store().thread(thread).await.map_err(ApiError::from)?;
        // Unless it is spoken to as it was before.
        let is_fork = body.get("checkpoint").or_else(|| body.get("checkpoint_id")).is_some();
        let asked = match row {
            Some(row) if !is_fork && row.status == ThreadStatus::Interrupted => {
                !open_questions(gateway, &row).await?.is_empty()
            }
            _ => false,
        };
        match asked {
            true => body.insert("command".to_owned(), json!({ "resume": input })),
            false => body.insert("input".to_owned(), input.clone()),
        };
    }
    let run = begin(gateway, Some(thread.clone()), headers, parsed(body)?).await?;
    Ok(json!({ "run_id": run.id }))
}

async fn respond(
    gateway: &Gateway,
    thread: &ThreadId,
    headers: &HeaderMap,
    params: &Map<String, Value>,
) -> Result<Value, Refusal> {
    gateway.runtime.until_asked(thread).await;
    let row = gateway.runtime.store().thread(thread).await.map_err(ApiError::from)?;
    let row =
        row.ok_or_else(|| Refusal::new("no_such_run", format!("Nothing was run on thread {thread}.")))?;
    let known = |key: &str| row.metadata.get(key).and_then(Value::as_str);
    let assistant = known("assistant_id").or_else(|| known("graph_id")).map(str::to_owned);
    let assistant = assistant
        .ok_or_else(|| Refusal::new("no_such_run", format!("Nothing was run on thread {thread}.")))?;
    let answers = match params.get("responses") {
        None | Some(Value::Null) => vec![Value::Object(params.clone())],
        Some(Value::Array(answers)) if !answers.is_empty() => answers.clone(),
        Some(_) => return Err(Refusal::invalid("responses must be a non-empty array.")),
    };
    let open = open_questions(gateway, &row).await?;
    let mut resume = Map::new();
    for answer in &answers {
        let Some(id) = answer.get("interrupt_id").and_then(Value::as_str) else {
            return Err(Refusal::invalid("input.respond requires a string interrupt_id."));
        };
        if !open.iter().any(|asked| asked == id) {
            return Err(Refusal::new("no_such_interrupt", format!("Unknown interrupt: {id}")));
        }
        resume.insert(id.to_owned(), answer.get("response").cloned().unwrap_or_default());
    }
    let mut command = Map::from_iter([("resume".to_owned(), Value::Object(resume))]);
    for key in ["update", "goto"] {
        if let Some(value) = params.get(key).filter(|value| !value.is_null()) {
            command.insert(key.to_owned(), value.clone());
        }
    }
    let mut body = request(&assistant, params)?;
    body.insert("command".to_owned(), Value::Object(command));
    begin(gateway, Some(thread.clone()), headers, parsed(body)?).await?;
    Ok(json!({}))
}

/// The ids of what the thread waits to be told.
async fn open_questions(gateway: &Gateway, row: &Thread) -> Result<Vec<String>, Refusal> {
    let state = gateway.runtime.state(&row.id, None).await.map_err(ApiError::from)?;
    Ok(state.interrupts.into_iter().map(|asked| asked.id).collect())
}

/// The body of an ordinary run that tells everything.
fn request(assistant: &str, params: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let modes = [
        StreamMode::Values,
        StreamMode::Updates,
        StreamMode::MessagesTuple,
        StreamMode::Custom,
        StreamMode::Tasks,
        StreamMode::Checkpoints,
    ];
    let body = json!({
        "assistant_id": assistant, "if_not_exists": "create", "stream_resumable": true, "stream_subgraphs": true,
        "stream_mode": modes.map(StreamMode::as_str),
    });
    let Value::Object(mut body) = body else { return Ok(Map::new()) };
    for (key, own) in [
        ("metadata", "metadata"),
        ("context", "context"),
        ("multitaskStrategy", "multitask_strategy"),
        ("multitask_strategy", "multitask_strategy"),
    ] {
        if let Some(value) = params.get(key).filter(|value| !value.is_null()) {
            body.insert(own.to_owned(), value.clone());
        }
    }
    match params.get("config") {
        None | Some(Value::Null) => {}
        Some(Value::Object(config)) => {
            let mut config = config.clone();
            if let Some(Value::Object(options)) = config.get_mut("configurable") {
                // Where to start from, and on which thread, is no choice of the agent's.
                body.extend(options.remove("checkpoint_id").map(|id| ("checkpoint_id".to_owned(), id)));
                for place in ["checkpoint_ns", "checkpoint_map", "thread_id"] {
                    options.remove(place);
                }
            }
            body.insert("config".to_owned(), Value::Object(config));
        }
        Some(_) => return Err(Refusal::invalid("config must be an object.")),
    }
    Ok(body)
}

fn parsed(body: Map<String, Value>) -> Result<RunRequest, Refusal> {
    RunRequest::deserialize(Value::Object(body)).map_err(|error| Refusal::invalid(error.to_string()))
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message)
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let code = if error.status.is_client_error() { "invalid_argument" } else { "unknown_error" };
        Self::new(code, error.detail)
    }
}
