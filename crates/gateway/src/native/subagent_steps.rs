//! What subagents did in a run, step by step, for whoever opens a thread again.
//!
//! Invariant: it is made of what the run's stream told of them, in that order; a row's number is the event's.

use hart_kernel::Timestamp;
use hart_runtime::port::EventScope;
use hart_runtime::{LogEvent, Logged, Run};
use serde_json::{Map, Value, json};

use crate::Gateway;
use crate::error::ApiResult;
use crate::wire::time;

/// The kinds of rows there are.
pub(super) const KINDS: [&str; 3] = ["subagent.start", "subagent.step", "subagent.end"];

/// Behind number `after`; of one delegation, or of all.
pub(super) async fn rows(
    gateway: &Gateway,
    run: &Run,
    task: Option<&str>,
    after: u64,
) -> ApiResult<Vec<Value>> {
    let (mut rows, mut after) = (Vec::new(), after);
    loop {
        let scope = EventScope::Run(run.id.clone());
        let events = gateway.runtime.store().events(&scope, after, PAGE).await?;
        let Some(last) = events.last() else { return Ok(rows) };
        after = last.id.seq;
        for event in &events {
            let Ok(Logged { event: LogEvent::Custom { data }, .. }) = serde_json::from_slice(&event.payload)
            else {
                continue;
            };
            let Some((kind, content)) = step(&data) else { continue };
            let of = content.get("task_id").and_then(Value::as_str).unwrap_or_default();
            if task.is_some_and(|task| task != of) {
                continue;
            }
            let millis = i64::try_from(event.id.ms).unwrap_or_default();
            let at = Timestamp::from_millisecond(millis).unwrap_or(run.created_at);
            rows.push(json!({
                "run_id": run.id, "seq": event.id.seq, "event_type": kind, "category": "subagent",
                "metadata": {"task_id": of, "message_index": content.get("message_index")},
                "content": content, "created_at": time(at),
            }));
        }
    }
}

const PAGE: u64 = 5000;
/// More than this of a step is in the thread's files or nowhere.
const TEXT_CHARS: usize = 8192;

/// The kind of row that an event is, and what it says.
fn step(data: &Value) -> Option<(&'static str, Value)> {
    let (kind, task) = (data.get("type")?.as_str()?, data.get("task_id")?);
    let given = |key: &str| data.get(key).cloned().unwrap_or_default();
    let [start, step, end] = KINDS;
    Some(match kind {
        "task_started" => (
            start,
            json!({
                "task_id": task, "description": given("description"), "subagent_type": given("subagent_type"),
            }),
        ),
        "task_running" => (step, said(task, &given("message_index"), data.get("message")?)),
        "task_completed" | "task_failed" | "task_cancelled" | "task_timed_out" => (
            end,
            json!({
                "task_id": task, "status": kind.trim_start_matches("task_"), "model_name": given("model_name"),
                "usage": given("usage"), "error": given("error"),
            }),
        ),
        _ => return None,
    })
}

/// A message as DeerFlow's clients show a step.
fn said(task: &Value, index: &Value, message: &Value) -> Value {
    let whole = text(message.get("content").unwrap_or(&Value::Null));
    let shown: String = whole.chars().take(TEXT_CHARS).collect();
    let is_tool = message.get("type").is_some_and(|kind| kind == "tool");
    let mut step = Map::from_iter([
        ("task_id".to_owned(), task.clone()),
        ("message_index".to_owned(), index.clone()),
        ("kind".to_owned(), if is_tool { "tool".into() } else { "ai".into() }),
        ("truncated".to_owned(), (shown.len() < whole.len()).into()),
        ("text".to_owned(), shown.into()),
    ]);
    if is_tool {
        step.insert("tool_name".to_owned(), message.get("name").cloned().unwrap_or_default());
    } else {
        let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        let calls: Vec<Value> =
            calls.map(|call| json!({"name": call.get("name"), "args": call.get("args")})).collect();
        step.insert("tool_calls".to_owned(), calls.into());
    }
    step.into()
}

/// A text, or the texts of blocks.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts =
                blocks.iter().filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
