//! A state as JSON, with every message encoded once however often the state is shown.
//!
//! Invariant: the bytes are those that encoding the whole state anew would give.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hart_kernel::{MessageList, Snapshot};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::raw;
use crate::frame::in_blocks;
use crate::reasoning;

/// How messages are spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// As LangGraph's state has them.
    #[default]
    State,
    /// As its event protocol has them: an answer's content is a list of blocks.
    Blocks,
}

/// Remembers the encoding of the list it saw last; a longer one only needs its end encoded.
#[derive(Debug, Default)]
pub(crate) struct ValuesEncoder {
    spelling: Spelling,
    last: Mutex<Encoded>,
}

#[derive(Debug, Default)]
struct Encoded {
    list: MessageList,
    messages: Vec<Arc<RawValue>>,
}

impl ValuesEncoder {
    pub(crate) fn new(spelling: Spelling) -> Self {
        Self { spelling, last: Mutex::default() }
    }

    pub(crate) fn encode(&self, snapshot: &Snapshot, more: Option<(&str, &Value)>) -> Bytes {
        let messages = self.messages(snapshot.messages());
        let size: usize = messages.iter().map(|message| message.get().len() + 1).sum();
        let mut out = Vec::with_capacity(size + 256);
        out.extend_from_slice(b"{\"messages\":[");
        for (at, message) in messages.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(message.get().as_bytes());
        }
        out.push(b']');
        let mut rest: Map<String, Value> = snapshot.rest_to_json();
        if let Some((key, value)) = more {
            rest.insert(key.to_owned(), value.clone());
        }
        for (key, value) in rest {
            out.push(b',');
            out.extend_from_slice(raw(&key).get().as_bytes());
            out.push(b':');
            out.extend_from_slice(raw(&value).get().as_bytes());
        }
        out.push(b'}');
        out.into()
    }

    fn messages(&self, list: &MessageList) -> Vec<Arc<RawValue>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let same = last.list.common_prefix(list);
        last.messages.truncate(same);
        last.messages.extend(list.iter_from(same).map(|message| {
            Arc::from(match self.spelling {
                Spelling::State => reasoning::shown(message),
                Spelling::Blocks => raw(&in_blocks(serde_json::to_value(message).unwrap_or_default())),
            })
        }));
        last.list = list.clone();
        last.messages.clone()
    }
}
