//! Thread state: a map of *typed* keys that is JSON on the wire.
//!
//! Invariant: a write is applied whole or not at all, and only through a key's reducer.

mod key;
mod message_list;
mod messages;
mod schema;
mod spelling;

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use hart_types::{Body, MessageId, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use key::{ReduceError, Scope, StateKey};
pub use message_list::MessageList;
pub(crate) use messages::check_messages;
pub use messages::{MessageWrites, Messages};
pub use schema::Schema;

/// Cloning a state clones one pointer; only whoever writes copies the list of what it holds.
#[derive(Clone, Debug, Default)]
pub struct State {
    slots: Arc<Slots>,
}

/// What is declared is named by its declaration.
type Slots = BTreeMap<Cow<'static, str>, Slot>;

impl State {
    pub fn get<K: StateKey>(&self) -> Option<&K::Value> {
        match self.slots.get(K::NAME)? {
            Slot::Typed { value, .. } => value.downcast_ref(),
            Slot::Raw { .. } => None,
        }
    }

    /// The conversation so far.
    pub fn messages(&self) -> &MessageList {
        static EMPTY: LazyLock<MessageList> = LazyLock::new(MessageList::default);
        self.get::<Messages>().unwrap_or(&EMPTY)
    }

    /// All writes or none.
    pub fn apply(&mut self, update: Update) -> Result<(), StateError> {
        let mut next = self.clone();
        for write in update.writes {
            write.apply(&mut next)?;
        }
        *self = next;
        Ok(())
    }
}

/// An ordered list of writes: what hooks and tools return.
#[derive(Default)]
pub struct Update {
    writes: Vec<Box<dyn Write>>,
}

impl Update {
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn set<K: StateKey>(mut self, update: K::Update) -> Self {
        self.writes.push(Box::new(TypedWrite::<K>(update)));
        self
    }

    /// Shorthand for a write to [`Messages`].
    #[must_use]
    pub fn messages(self, messages: impl Into<MessageWrites>) -> Self {
        self.set::<Messages>(messages.into())
    }

    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The writes as a step's log holds them, in order.
    pub fn to_writes(&self) -> Vec<LoggedWrite> {
        let logged = |write: &dyn Write| LoggedWrite {
            key: write.name().to_owned(),
            value: write.to_json(),
            private: write.scope() == Scope::Private,
        };
        self.writes.iter().map(|write| logged(write.as_ref())).collect()
    }

    /// The messages these writes put into the thread.
    pub(crate) fn message_writes(&self) -> Vec<Arc<hart_types::Message>> {
        let writes =
            self.writes.iter().filter_map(|write| write.as_any().downcast_ref::<TypedWrite<Messages>>());
        writes.flat_map(|write| write.0.messages()).cloned().collect()
    }

    /// Takes out what is said to a thread that holds `known`, as far as `speaks` says so, and leaves the rest: results,
    /// messages that are there already and are written anew. What removes a message that is not there is meant for one
    /// that was taken out before.
    pub(crate) fn split_off_words(&mut self, known: &MessageList, speaks: fn(&Body) -> bool) -> Self {
        let mut words = Self::none();
        if self.removes_all() {
            return words;
        }
        for write in self.writes.iter_mut() {
            let Some(write) = write.as_any_mut().downcast_mut::<TypedWrite<Messages>>() else { continue };
            let said = write.0.take_out(|message| {
                let is_word = speaks(&message.body) || matches!(message.body, Body::Remove);
                is_word && known.iter().all(|there| there.id != message.id)
            });
            if said.messages().next().is_some() {
                words.writes.push(Box::new(TypedWrite::<Messages>(said)));
            }
        }
        self.writes.retain(|write| {
            write
                .as_any()
                .downcast_ref::<TypedWrite<Messages>>()
                .is_none_or(|w| w.0.messages().next().is_some())
        });
        words
    }

    pub(crate) fn removes_all(&self) -> bool {
        self.message_writes().iter().any(|message| messages::is_remove_all(message))
    }

    /// Where calls of the last answer have results already, others for them replace these.
    pub(crate) fn replace_results(&mut self, messages: &MessageList) {
        let result = |call: &ToolCallId| {
            let mut behind = messages.iter().rev().take_while(|message| message.as_ai().is_none());
            let of_call = |result: &hart_types::ToolResult| result.tool_call_id == *call;
            behind.find(|message| message.as_tool_result().is_some_and(of_call))?.id.clone()
        };
        let writes = self.writes.iter_mut();
        for write in writes.filter_map(|write| write.as_any_mut().downcast_mut::<TypedWrite<Messages>>()) {
            write.0.replace_results(result);
        }
    }

    /// Gives messages that came without an id another one than that of chance.
    pub(crate) fn name_messages(&mut self, mut name: impl FnMut() -> MessageId) {
        let writes = self.writes.iter_mut();
        for write in writes.filter_map(|write| write.as_any_mut().downcast_mut::<TypedWrite<Messages>>()) {
            write.0.name(&mut name);
        }
    }

    /// Appends another update's writes after these.
    pub fn extend(&mut self, other: Self) {
        self.writes.extend(other.writes);
    }
}

impl From<Box<dyn Write>> for Update {
    fn from(write: Box<dyn Write>) -> Self {
        Self { writes: vec![write] }
    }
}

impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.writes.iter().map(|write| (write.name(), write.to_json()))).finish()
    }
}

/// One write, as the log of a thread holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedWrite {
    pub key: String,
    pub value: Value,
    /// It must not be shown, even when nobody declares the key any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("state key `{name}` is declared twice, by `{first}` and by `{second}`; rename one of them")]
    Conflict { name: &'static str, first: &'static str, second: &'static str },
    #[error("state key `{name}` is private and cannot be written by a client")]
    NotWritable { name: String },
    #[error("state key `{name}` refused a write")]
    Reduce {
        name: &'static str,
        #[source]
        source: ReduceError,
    },
    #[error("state key `{name}` does not take JSON of this shape")]
    Shape {
        name: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

trait Write: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn name(&self) -> &'static str;
    fn scope(&self) -> Scope;
    fn to_json(&self) -> Value;
    fn apply(self: Box<Self>, state: &mut State) -> Result<(), StateError>;
}

struct TypedWrite<K: StateKey>(K::Update);

impl<K: StateKey> Write for TypedWrite<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn name(&self) -> &'static str {
        K::NAME
    }

    fn scope(&self) -> Scope {
        K::SCOPE
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or(Value::Null)
    }

    fn apply(self: Box<Self>, state: &mut State) -> Result<(), StateError> {
        let slots = Arc::make_mut(&mut state.slots);
        let slot = Slot::reduce::<K>(slots.remove(K::NAME), self.0)?;
        slots.insert(K::NAME.into(), slot);
        Ok(())
    }
}

/// One channel. It carries its own encoder, so that `values` works for keys the current schema no longer declares.
#[derive(Clone)]
enum Slot {
    Typed {
        value: Arc<dyn Any + Send + Sync>,
        encode: fn(&dyn Any) -> Value,
    },
    /// Undeclared, or of a shape its type does not accept. What was private when it was written stays private.
    Raw {
        json: Value,
        private: bool,
    },
}

impl Slot {
    fn typed<K: StateKey>(value: K::Value) -> Self {
        Self::Typed {
            value: Arc::new(value),
            encode: |any| {
                any.downcast_ref::<K::Value>()
                    .and_then(|value| serde_json::to_value(value).ok())
                    .unwrap_or(Value::Null)
            },
        }
    }

    fn reduce<K: StateKey>(slot: Option<Self>, update: K::Update) -> Result<Self, StateError> {
        let current = slot.and_then(Self::into_value::<K>);
        K::reduce(current, update)
            .map(Self::typed::<K>)
            .map_err(|source| StateError::Reduce { name: K::NAME, source })
    }

    fn into_value<K: StateKey>(self) -> Option<K::Value> {
        match self {
            Self::Typed { value, .. } => Some(Arc::unwrap_or_clone(value.downcast::<K::Value>().ok()?)),
            Self::Raw { json, .. } => serde_json::from_value(json).ok(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Typed { value, encode } => encode(value.as_ref()),
            Self::Raw { json, .. } => json.clone(),
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
