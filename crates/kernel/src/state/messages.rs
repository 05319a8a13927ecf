//! `messages`, the only key the kernel itself names.
//!
//! Invariant: every message in the state has an id, assigned before the write is logged, so that replaying a log
//! gives the same state.

use std::sync::Arc;

use hart_types::{Body, Content, Message, MessageId, REMOVE_ALL, ToolCallId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::message_list::MessageList;
use super::spelling::{made_by_langchain, plain};
use super::{ReduceError, Scope, StateKey};

/// The conversation. Values are shared, so a snapshot of a long thread costs pointers, not text.
#[derive(Debug)]
pub struct Messages;

impl StateKey for Messages {
    type Value = MessageList;
    type Update = MessageWrites;
    const NAME: &'static str = "messages";
    const SCOPE: Scope = Scope::Thread;

    fn reduce(current: Option<Self::Value>, update: MessageWrites) -> Result<Self::Value, ReduceError> {
        let mut all = current.unwrap_or_default();
        for Write { message, fresh, .. } in update.0 {
            let Some(id) = message.id.as_ref() else { continue };
            // An id made a moment ago is not in the thread; looking for it would walk all of it.
            let known = if fresh { None } else { all.position(id) };
            match (&message.body, known) {
                (Body::Remove, _) if id.as_str() == REMOVE_ALL => all.clear(),
                (Body::Remove, Some(at)) => all.remove(at),
                (Body::Remove, None) => {
                    return Err(ReduceError(format!(
                        "cannot remove message `{id}`: the thread has none with that id"
                    )));
                }
                (_, Some(at)) => all.replace(at, message),
                (_, None) => all.push(message),
            }
        }
        Ok(all)
    }
}

pub(super) fn is_remove_all(message: &Message) -> bool {
    matches!(message.body, Body::Remove) && message.id.as_ref().is_some_and(|id| id.as_str() == REMOVE_ALL)
}

/// Writes to the conversation: a message with a known id replaces that message, a `remove` deletes it, any other is
/// appended. Building one assigns the missing ids.
#[derive(Clone, Debug, Default)]
pub struct MessageWrites(Vec<Write>);

#[derive(Clone, Debug)]
struct Write {
    message: Arc<Message>,
    /// Its id cannot be in the thread yet.
    fresh: bool,
    /// It came without an id and has one of chance.
    unnamed: bool,
}

impl MessageWrites {
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.0.iter().map(|write| &write.message)
    }

    /// Appends messages whose ids, if they have any, were made for them just now.
    pub fn append(messages: impl IntoIterator<Item = Message>) -> Self {
        Self(messages.into_iter().map(|message| Write { fresh: true, ..Write::new(message) }).collect())
    }

    pub(super) fn take_out(&mut self, wanted: impl Fn(&Message) -> bool) -> Self {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|write| wanted(&write.message));
        self.0 = left;
        Self(taken)
    }

    /// A result that came without an id goes in the place of the one that its call has already.
    pub(super) fn replace_results(&mut self, known: impl Fn(&ToolCallId) -> Option<MessageId>) {
        for write in self.0.iter_mut().filter(|write| write.unnamed) {
            let call = write.message.as_tool_result().map(|result| &result.tool_call_id);
            if let Some(id) = call.and_then(&known) {
                Arc::make_mut(&mut write.message).id = Some(id);
                (write.fresh, write.unnamed) = (false, false);
            }
        }
    }

    /// Ids for the messages that came without one.
    pub(super) fn name(&mut self, mut name: impl FnMut() -> MessageId) {
        for write in self.0.iter_mut().filter(|write| write.unnamed) {
            Arc::make_mut(&mut write.message).id = Some(name());
        }
    }
}

impl Write {
    fn new(mut message: Message) -> Self {
        let fresh = message.id.as_ref().is_none_or(|id| id.as_str().is_empty());
        if fresh {
            message.id = Some(MessageId::generate());
        }
        Self { message: Arc::new(message), fresh, unnamed: fresh }
    }
}

impl From<Message> for MessageWrites {
    fn from(message: Message) -> Self {
        Self(vec![Write::new(message)])
    }
}

impl From<Vec<Message>> for MessageWrites {
    fn from(messages: Vec<Message>) -> Self {
        Self(messages.into_iter().map(Write::new).collect())
    }
}

impl Serialize for MessageWrites {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.messages())
    }
}

/// What LangGraph accepts as `messages` input: one message or a list; each an object, a string (a user's words), or
/// a `[role, content]` pair.
impl<'de> Deserialize<'de> for MessageWrites {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = match Value::deserialize(deserializer)? {
            Value::Array(items) if !is_pair(&items) => items,
            single => vec![single],
        };
        let messages = items.into_iter().map(coerce).collect::<Result<Vec<_>, _>>();
        // Whoever reads the thread expects every field, also of messages whose senders were brief.
        let messages = messages.map(|all| all.into_iter().map(Message::completed).collect::<Vec<_>>());
        messages.map(Self::from).map_err(serde::de::Error::custom)
    }
}

/// What a client must not say, though a log may hold it: words of nobody, and what is no content.
pub(crate) fn check_messages(said: &Value) -> Result<(), serde_json::Error> {
    let refused = |why: String| <serde_json::Error as serde::de::Error>::custom(why);
    for message in said.as_array().map_or(std::slice::from_ref(said), Vec::as_slice) {
        let kind = message.get("type").or_else(|| message.get("role")).and_then(Value::as_str);
        if let Some(kind) = kind.filter(|kind| !KINDS.contains(kind)) {
            return Err(refused(format!(
                "unexpected message type `{kind}`; use one of {}",
                KINDS.join(", ")
            )));
        }
        if let Some(Err(why)) = message.as_object().and_then(made_by_langchain) {
            return Err(refused(why));
        }
        if let Some(content @ (Value::Number(_) | Value::Bool(_) | Value::Object(_))) = message.get("content")
        {
            return Err(refused(format!(
                "a message's `content` is a string or a list of blocks, not {content}"
            )));
        }
    }
    Ok(())
}

/// What messages are called, in all spellings that clients have.
const KINDS: [&str; 13] = [
    "human",
    "user",
    "ai",
    "assistant",
    "system",
    "developer",
    "tool",
    "function",
    "remove",
    "AIMessageChunk",
    "HumanMessageChunk",
    "chat",
    "constructor",
];

fn is_pair(items: &[Value]) -> bool {
    matches!(items, [Value::String(role), Value::String(_)]
        if matches!(role.as_str(), "user" | "human" | "assistant" | "ai" | "system"))
}

fn coerce(item: Value) -> Result<Message, serde_json::Error> {
    match item {
        Value::String(text) => Ok(Message::human(text)),
        Value::Array(pair) => match pair.as_slice() {
            [Value::String(role), content] => {
                let mut message: Message = serde_json::from_value(serde_json::json!({ "role": role }))?;
                message.content = Content::deserialize(content)?;
                Ok(message)
            }
            _ => Err(serde::de::Error::custom("a message given as a list must be `[role, content]`")),
        },
        object => serde_json::from_value(plain(object)),
    }
}
