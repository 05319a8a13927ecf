//! What subagents did in a run, as DeerFlow's frontend reads it when a card of theirs is opened later.
//!
//! Invariant: a row is one event of the run's stream under its number there; when the stream is forgotten, so are they.

use hart_kernel::Timestamp;
use hart_runtime::port::EventScope;
use hart_runtime::{LogEvent, Logged, Run};
use hart_types::EventId;
use serde_json::{Map, Value, json};

use crate::Gateway;
use crate::error::ApiResult;
use crate::wire::time;

/// Which of them are wanted.
pub(super) struct Asked<'a> {
    /// All kinds where none is named.
    pub(super) kinds: &'a [String],
    /// Of this call alone.
    pub(super) task: Option<&'a str>,
    pub(super) after: u64,
    pub(super) limit: usize,
}

pub(super) fn is_kind(kind: &str) -> bool {
    matches!(kind, START | STEP | END)
}

const START: &str = "subagent.start";
const STEP: &str = "subagent.step";
const END: &str = "subagent.end";

/// How many events are read at once.
const PIECE: u64 = 1000;

pub(super) async fn rows(gateway: &Gateway, run: &Run, asked: &Asked<'_>) -> ApiResult<Vec<Value>> {
    let (scope, mut after, mut rows) = (EventScope::Run(run.id.clone()), asked.after, Vec::new());
    while rows.len() < asked.limit {
        let events = gateway.runtime.store().events(&scope, after, PIECE).await?;
        let Some(last) = events.last() else { break };
        after = last.id.seq;
        for event in &events {
            let Some((kind, content)) = told(&event.payload) else { continue };
            let task = content.get("task_id").cloned().unwrap_or_default();
            if (asked.kinds.is_empty() || asked.kinds.iter().any(|wanted| wanted == kind))
                && asked.task.is_none_or(|wanted| task == wanted)
            {
                rows.push(json!({
                    "run_id": run.id, "seq": event.id.seq, "event_type": kind, "category": "subagent",
                    "content": content, "metadata": {"task_id": task}, "created_at": at(event.id),
                }));
            }
        }
    }
    rows.truncate(asked.limit);
    Ok(rows)
}

fn at(id: EventId) -> Option<String> {
    i64::try_from(id.ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).map(time)
}

/// The kind of an event of the stream and what it says, if it is of a subagent.
fn told(payload: &[u8]) -> Option<(&'static str, Value)> {
    let logged: Logged = serde_json::from_slice(payload).ok()?;
    let LogEvent::Custom { data } = logged.event else { return None };
    let kind = match data.get("type")?.as_str()? {
        "task_started" => START,
        "task_running" => STEP,
        "task_completed" | "task_failed" | "task_cancelled" | "task_timed_out" => END,
        _ => return None,
    };
    let of = |key: &str| data.get(key).cloned().unwrap_or_default();
    let content = match kind {
        START => json!({
            "task_id": of("task_id"), "description": of("description"), "subagent_type": of("subagent_type"),
            "started_at": of("started_at"),
        }),
        STEP => step(&of("task_id"), &of("message_index"), data.get("message")?),
        _ => {
            let status = data.get("type")?.as_str()?.strip_prefix("task_")?;
            let mut end = json!({"task_id": of("task_id"), "status": status});
            if let Some(end) = end.as_object_mut() {
                let said = ["model_name", "usage", "duration_ms", "result", "error"].into_iter();
                let said = said.filter_map(|key| Some((key.to_owned(), data.get(key)?.clone())));
                end.extend(said.filter(|(_, value)| !value.is_null()));
            }
            end
        }
    };
    Some((kind, content))
}

fn step(task: &Value, index: &Value, message: &Value) -> Value {
    let is_tool = message.get("type").is_some_and(|kind| kind == "tool");
    let (text, truncated) = shortened(&text_of(message.get("content").unwrap_or(&Value::Null)));
    let mut step = Map::from_iter([
        ("task_id".to_owned(), task.clone()),
        ("message_index".to_owned(), index.clone()),
        ("kind".to_owned(), if is_tool { "tool" } else { "ai" }.into()),
        ("text".to_owned(), text.into()),
        ("truncated".to_owned(), truncated.into()),
    ]);
    if is_tool {
        step.insert("tool_name".to_owned(), message.get("name").cloned().unwrap_or_default());
    } else {
        let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        step.insert("tool_calls".to_owned(), calls.map(call).collect());
    }
    step.into()
}

fn call(call: &Value) -> Value {
    let of = |key: &str| call.get(key).cloned().unwrap_or_default();
    let spelled = of("args").to_string();
    match shortened(&spelled) {
        (_, false) => json!({"name": of("name"), "args": of("args")}),
        (start, true) => json!({"name": of("name"), "args": start, "args_truncated": true}),
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").unwrap_or(block).as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// As much of a text as a card has room for, and whether that is not all.
fn shortened(text: &str) -> (String, bool) {
    const LONGEST: usize = 8192;
    match text.char_indices().nth(LONGEST) {
        None => (text.to_owned(), false),
        Some((end, _)) => (text.get(..end).unwrap_or(text).to_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{END, START, STEP};

    #[test]
    fn events_of_subagents_and_their_rows() {
        let row = |data: serde_json::Value| {
            super::told(json!({"event": {"custom": {"data": data}}}).to_string().as_bytes())
        };
        let told =
            json!({"task_id": "a", "description": "look", "subagent_type": "bash", "started_at": "then"});
        let mut begun = told.clone();
        begun["type"] = "task_started".into();
        assert_eq!(row(begun).unwrap(), (START, told));
        let long = "ä".repeat(9000);
        let said = json!({"type": "ai", "content": [{"type": "text", "text": long}],
            "tool_calls": [{"id": "c", "name": "bash", "args": {"command": "ls"}}]});
        let (kind, step) =
            row(json!({"type": "task_running", "task_id": "a", "message_index": 2, "message": said}))
                .unwrap();
        assert_eq!((kind, &step["kind"], &step["truncated"]), (STEP, &json!("ai"), &json!(true)));
        assert_eq!(step["text"].as_str().unwrap().chars().count(), 8192);
        assert_eq!(step["tool_calls"], json!([{"name": "bash", "args": {"command": "ls"}}]));
        let result = json!({"type": "tool", "name": "bash", "content": "a.txt"});
        let (_, step) =
            row(json!({"type": "task_running", "task_id": "a", "message_index": 3, "message": result}))
                .unwrap();
        assert_eq!((&step["kind"], &step["tool_name"]), (&json!("tool"), &json!("bash")));
        let (kind, end) =
            row(json!({"type": "task_failed", "task_id": "a", "error": "no", "result": null})).unwrap();
        assert_eq!((kind, end), (END, json!({"task_id": "a", "status": "failed", "error": "no"})));
        assert!(row(json!({"type": "llm_retry"})).is_none() && super::told(b"{}").is_none());
    }
}
