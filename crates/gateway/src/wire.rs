//! Records as LangGraph's JSON.
//!
//! Invariant: every key a client may look for is there, also when its value is `null`.

pub(crate) mod assistant;
pub(crate) mod cron;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod thread;

use hart_kernel::Timestamp;
use serde_json::{Map, Value};

/// `2026-11-15T00:48:18.812831+00:00`: microseconds and an offset, as clients parse it.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Only the keys a client asked for.
pub(crate) fn select(row: Value, keys: &[String]) -> Value {
    match row {
        Value::Object(map) if !keys.is_empty() => {
            map.into_iter().filter(|(key, _)| keys.contains(key)).collect::<Map<_, _>>().into()
        }
        row => row,
    }
}
