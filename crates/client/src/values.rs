//! A thread's state, as clients see it.
//!
//! Invariant: it is JSON until somebody looks into it, so that passing it on costs nothing.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hart_types::{Body, Interrupt, Message};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

#[derive(Clone, Default)]
pub struct Values {
    json: Bytes,
    read: Arc<OnceLock<Map<String, Value>>>,
}

impl Values {
    pub fn from_json(json: impl Into<Bytes>) -> Self {
        Self { json: json.into(), read: Arc::default() }
    }

    /// All of it, without what is no state but asked beside it.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut all = self.all().clone();
        all.shift_remove(INTERRUPT);
        all
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.all().get(key)
    }

    pub fn messages(&self) -> Vec<Message> {
        self.read("messages")
    }

    pub fn title(&self) -> Option<&str> {
        self.get("title").and_then(Value::as_str)
    }

    /// The paths of the files that were handed over, as the agent calls them.
    pub fn artifacts(&self) -> Vec<String> {
        self.read("artifacts")
    }

    /// Whether nothing was ever said.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    pub fn last_message(&self) -> Option<Message> {
        let last = self.get("messages")?.as_array()?.last()?;
        serde_json::from_value(last.clone()).ok()
    }

    /// What the agent said last; a run that ends with a tool's result ends with a question.
    pub fn last_words(&self) -> String {
        let spoken =
            self.last_message().filter(|message| matches!(message.body, Body::Ai(_) | Body::Tool(_)));
        spoken.map(|message| message.text()).unwrap_or_default()
    }

    /// What is asked beside it, where it is a state that a run paused in.
    pub(crate) fn asked(&self) -> Vec<Interrupt> {
        self.read(INTERRUPT)
    }

    /// What does not read as what it should be is as if it were not there.
    fn read<T: DeserializeOwned>(&self, key: &str) -> Vec<T> {
        let items = self.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| serde_json::from_value(item.clone()).ok()).collect()
    }

    fn all(&self) -> &Map<String, Value> {
        self.read.get_or_init(|| serde_json::from_slice(&self.json).unwrap_or_default())
    }
}

const INTERRUPT: &str = "__interrupt__";

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.json))
    }
}
