//! A cron as LangGraph's clients see it.
//!
//! Invariant: `payload` holds what its runs are asked with, as it was asked.

use hart_runtime::port::Cron;
use serde_json::{Map, Value, json};

use super::time;
use crate::routes::crons::UTC;

pub(crate) fn json(cron: &Cron) -> Value {
    json!({
        "cron_id": cron.id,
        "assistant_id": cron.assistant,
        "thread_id": cron.thread,
        "user_id": cron.user,
        "end_time": cron.end_time.map(time),
        "schedule": cron.schedule,
        "timezone": timezone(cron),
        "payload": payload(cron),
        "next_run_date": cron.next_run.map(time),
        "metadata": cron.metadata,
        // Nothing is done about a thread of its own accord that was there before.
        "on_run_completed": cron.thread.is_none().then_some(if cron.keep_threads { "keep" } else { "delete" }),
        "enabled": cron.enabled,
        "created_at": time(cron.created_at),
        "updated_at": time(cron.updated_at),
    })
}

fn payload(cron: &Cron) -> Map<String, Value> {
    let mut payload = cron.payload.clone();
    payload.insert("assistant_id".to_owned(), json!(cron.assistant));
    payload.insert("schedule".to_owned(), json!(cron.schedule));
    if let Some(timezone) = timezone(cron) {
        payload.insert("timezone".to_owned(), timezone.into());
    }
    let config = payload.entry("config").or_insert_with(|| json!({}));
    if let Some(config) = config.as_object_mut()
        && let Some(options) = config.entry("configurable").or_insert_with(|| json!({})).as_object_mut()
    {
        options.insert("cron_id".to_owned(), json!(cron.id));
    }
    payload
}

/// The one that was asked for.
fn timezone(cron: &Cron) -> Option<&str> {
    let asked = cron.payload.get("timezone").and_then(Value::as_str);
    asked.or_else(|| Some(cron.timezone.as_str()).filter(|timezone| *timezone != UTC))
}

pub(crate) const KEYS: &[&str] = &[
    "cron_id",
    "assistant_id",
    "thread_id",
    "user_id",
    "end_time",
    "schedule",
    "timezone",
    "payload",
    "next_run_date",
    "metadata",
    "on_run_completed",
    "enabled",
    "created_at",
    "updated_at",
];
