//! What an agent tells the world while it runs.
//!
//! Invariant: events only go up. Nothing in the kernel waits for an answer to one.

use std::sync::Arc;

use async_trait::async_trait;
use hart_types::{CheckpointId, Message, ToolCall, ToolCallId};
use serde_json::{Map, Value};

use crate::{Interrupt, LoggedWrite, MessageList, Schema, SideCall, State, StepSource, Update};

/// Receives events in order. Slow sinks slow the run: buffer.
#[async_trait]
pub trait EventSink: Send + Sync {
    async fn emit(&self, event: AgentEvent);
}

#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// A fragment (`AIMessageChunk`) of the answer being written; its id is that of the final message.
    MessageChunk(Box<Message>),
    /// A message that entered the thread.
    Message(Arc<Message>),
    /// A node's writes: a middleware's name, `model` or `tools`.
    Updates {
        node: Arc<str>,
        update: Arc<Map<String, Value>>,
    },
    /// The model is about to be asked.
    ModelStarted {
        /// The configured name.
        model: Arc<str>,
        provider: Arc<str>,
        /// The provider's name for it.
        served_as: Arc<str>,
    },
    /// The state after a durable step, and before the first one of a run that begins.
    Values(Reached),
    ToolStarted(Arc<ToolCall>),
    /// Output of a tool that is still running.
    ToolProgress {
        call_id: ToolCallId,
        text: String,
    },
    ToolFinished {
        result: Arc<Message>,
        /// What the call has written to the state beside it.
        update: Arc<Map<String, Value>>,
    },
    /// The run waits for a person to answer these.
    Paused(Arc<[Interrupt]>),
    /// A middleware has asked a model on its own; what it took counts as the run's.
    SideCall(Arc<SideCall>),
    /// Anything a middleware or tool wants a client to see.
    Custom(Value),
    /// What an agent says that works inside a tool call of this one.
    Child {
        call_id: ToolCallId,
        agent: Arc<str>,
        event: Box<Self>,
    },
}

impl AgentEvent {
    pub(crate) fn updates(node: &str, writes: &[LoggedWrite]) -> Self {
        Self::Updates { node: node.into(), update: shown(writes).into() }
    }

    pub(crate) fn tool_finished(result: Message, update: &Update) -> Self {
        Self::ToolFinished { result: result.into(), update: shown(&update.to_writes()).into() }
    }
}

/// Several writes of one list, such as two tools that each hand over a file, are shown as one.
fn shown(writes: &[LoggedWrite]) -> Map<String, Value> {
    let mut update = Map::new();
    for LoggedWrite { key, value, .. } in writes.iter().filter(|write| !write.private) {
        match (update.get_mut(key), value) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more.iter().cloned()),
            _ => {
                update.insert(key.clone(), value.clone());
            }
        }
    }
    update
}

/// A durable step, and the state it led to.
#[derive(Clone, Debug)]
pub struct Reached {
    pub checkpoint: CheckpointId,
    pub parent: Option<CheckpointId>,
    pub source: StepSource,
    pub next: Option<Arc<str>>,
    pub values: Snapshot,
}

/// A state with the schema that knows what of it clients may see. Cheap to make, rendered only when asked.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) state: State,
    pub(crate) schema: Arc<Schema>,
}

impl Snapshot {
    pub fn to_json(&self) -> Map<String, Value> {
        self.schema.values(&self.state)
    }

    /// The conversation, for whoever has it encoded already.
    pub fn messages(&self) -> &MessageList {
        self.state.messages()
    }

    /// All that clients see beside the conversation.
    pub fn rest_to_json(&self) -> Map<String, Value> {
        self.schema.values_without_messages(&self.state)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the thread waits to be told.
    pub fn interrupts(&self) -> &[Interrupt] {
        self.state.interrupts()
    }
}

/// Nobody listens.
#[derive(Clone, Copy, Debug)]
pub struct NoEvents;

#[async_trait]
impl EventSink for NoEvents {
    async fn emit(&self, _event: AgentEvent) {}
}
