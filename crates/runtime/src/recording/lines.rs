//! Requests as hashes of their parts, each part looked at once.
//!
//! Invariant: two requests have the same hashes exactly when a model would be told the same, whatever ids their messages
//! have. A message that was in the caller's last request is not hashed again.

use std::fmt;
use std::sync::Arc;

use hart_kernel::{ChatRequest, MessageList, ToolSpec};
use hart_types::{Body, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Mask;
use super::record::{History, Question};

/// Of a part's JSON, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Hash(String);

/// The requests of one caller so far.
#[derive(Default)]
pub(super) struct Lines {
    last: MessageList,
    hashes: Vec<Hash>,
    history: Option<History>,
    /// What mostly stays the same, with its hash.
    system: Option<(Option<Arc<str>>, Hash)>,
    tools: Option<(Arc<[Arc<ToolSpec>]>, Hash)>,
}

/// A request with the content of all that is new in it.
pub(super) struct Hashed {
    pub(super) question: Question,
    pub(super) contents: Vec<(Hash, Value)>,
    /// How many of the contents, from the first message on, are of the history.
    pub(super) of_history: usize,
}

impl Lines {
    /// `begins` marks the loop's own requests: what stands before the last words of a user was there before the run.
    pub(super) fn next(&mut self, request: &ChatRequest, begins: bool, mask: &Mask) -> Hashed {
        let first = self.hashes.is_empty();
        let mut keep = self.last.common_prefix(&request.messages);
        self.hashes.truncate(keep);
        self.last = request.messages.clone();
        let mut contents = Vec::new();
        for message in request.messages.iter_from(keep) {
            let content = masked(message_json(message), mask);
            let hash = Hash::of(&content);
            self.hashes.push(hash.clone());
            contents.push((hash, content));
        }
        let mut of_history = 0;
        if first && begins {
            of_history = last_human(&request.messages);
            self.history = self.chained(of_history);
        } else if self.history.as_ref().is_some_and(|history| keep < history.count) {
            self.history = None;
            keep = 0;
        }
        let history = self.history.clone();
        let from = keep.max(history.as_ref().map_or(0, |history| history.count));
        let new = self.hashes.iter().skip(from).cloned().collect();
        let mut part = |content: Value| {
            let content = masked(content, mask);
            let hash = Hash::of(&content);
            contents.push((hash.clone(), content));
            hash
        };
        let system = match &self.system {
            Some((known, hash)) if *known == request.system => hash.clone(),
            _ => part(json!(request.system.as_deref())),
        };
        let tools = match &self.tools {
            Some((known, hash)) if Arc::ptr_eq(known, &request.tools) => hash.clone(),
            _ => part(tools(&request.tools)),
        };
        self.system = Some((request.system.clone(), system.clone()));
        self.tools = Some((Arc::clone(&request.tools), tools.clone()));
        let settings = part(Value::String(format!("{:?}", request.settings)));
        let question = Question { system, tools, settings, history, keep: from, new };
        Hashed { question, contents, of_history }
    }

    pub(super) fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    /// All messages before `count` as one hash.
    pub(super) fn chained(&self, count: usize) -> Option<History> {
        let mut hash = Sha256::new();
        for line in self.hashes.iter().take(count) {
            hash.update(&line.0);
        }
        (count > 0).then(|| History { count, hash: Hash::hex(hash) })
    }
}

impl Hash {
    pub(super) fn of(content: &Value) -> Self {
        let mut hash = Sha256::new();
        hash.update(content.to_string());
        Self::hex(hash)
    }

    fn hex(hash: Sha256) -> Self {
        Self(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn tools(specs: &[Arc<ToolSpec>]) -> Value {
    specs.iter().map(|tool| json!([tool.name, tool.description, tool.input_schema])).collect()
}

fn last_human(messages: &MessageList) -> usize {
    let behind = messages.iter().rev().position(|message| message.body == Body::Human);
    behind.map_or(0, |behind| messages.len() - 1 - behind)
}

/// What a model is told of a message: ids are of a run, artifacts for clients.
fn message_json(message: &Message) -> Value {
    let mut json = serde_json::to_value(message).unwrap_or_default();
    if let Value::Object(fields) = &mut json {
        for unseen in ["id", "artifact"] {
            fields.shift_remove(unseen);
        }
    }
    json
}

/// Every text of it without secrets.
pub(super) fn masked(mut value: Value, mask: &Mask) -> Value {
    mask_in(&mut value, mask);
    value
}

fn mask_in(value: &mut Value, mask: &Mask) {
    match value {
        Value::String(text) => {
            if let Some(masked) = mask(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_in(item, mask)),
        Value::Object(map) => map.values_mut().for_each(|item| mask_in(item, mask)),
        _ => {}
    }
}
