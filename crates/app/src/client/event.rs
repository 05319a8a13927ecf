//! What a run tells whoever follows it: typed here, and as the frames of DeerFlow's own client.
//!
//! Invariant: of one message every word, every call and every count is told once, however it came about.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use hart_kernel::{AgentEvent, Ended, EventSink, Interrupt, Snapshot, async_trait};
use hart_types::{Body, Message, MessageId, ToolCall, ToolCallId, UsageMetadata};
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::ClientError;
use crate::Frame;

/// One thing that happened in a run. [`Frame::from`] makes of it what DeerFlow's client yields: `values`,
/// `messages-tuple`, `custom` and, last, `end` with the run's usage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The next words of an answer.
    Text { id: MessageId, text: String },
    /// The next words of its reasoning, where a model shows it.
    Reasoning { id: MessageId, text: String },
    /// The calls that an answer makes.
    ToolCalls { id: MessageId, calls: Vec<ToolCall> },
    /// Output of a tool that is still running.
    ToolProgress { call: ToolCallId, text: String },
    /// The message that answers a call.
    ToolResult(Arc<Message>),
    /// What an answer cost.
    Usage { id: MessageId, usage: UsageMetadata },
    /// The state after a durable step; rendered only by whoever asks for its JSON.
    Values(Snapshot),
    /// The run waits for a person. `End` follows.
    Paused(Arc<[Interrupt]>),
    /// Anything a middleware or a tool wants to be seen.
    Custom(Value),
    /// The last one.
    End(End),
}

/// How a run ended that did not fail.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct End {
    pub ended: Ended,
    /// Of all model calls of the run.
    pub usage: UsageMetadata,
    pub values: Snapshot,
}

impl From<&Event> for Frame {
    fn from(event: &Event) -> Self {
        match event {
            Event::Text { id, text } => tuple(json!({"type": "ai", "content": text, "id": id})),
            Event::Reasoning { id, text } => {
                let kwargs = json!({ "reasoning_content": text });
                tuple(json!({"type": "ai", "content": "", "id": id, "additional_kwargs": kwargs}))
            }
            Event::ToolCalls { id, calls } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| json!({"name": call.name, "args": call.args, "id": call.id}))
                    .collect();
                tuple(json!({"type": "ai", "content": "", "id": id, "tool_calls": calls}))
            }
            Event::ToolResult(message) => tuple(tool_result(message)),
            Event::Usage { id, usage } => {
                tuple(json!({"type": "ai", "content": "", "id": id, "usage_metadata": usage}))
            }
            Event::ToolProgress { call, text } => {
                Self::of(&AgentEvent::ToolProgress { call_id: call.clone(), text: text.clone() })
            }
            Event::Values(values) => Self::values(values),
            Event::Paused(interrupts) => Self::of(&AgentEvent::Paused(Arc::clone(interrupts))),
            Event::Custom(data) => Self { event: "custom", data: data.clone() },
            Event::End(End { ended, usage, .. }) => {
                let mut frame = Self::end(&Ok(*ended));
                let UsageMetadata { input_tokens, output_tokens, total_tokens, .. } = usage;
                let usage = json!({
                    "input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": total_tokens,
                });
                add(&mut frame.data, "usage", usage);
                frame
            }
        }
    }
}

fn tuple(data: Value) -> Frame {
    Frame { event: "messages-tuple", data }
}

fn tool_result(message: &Message) -> Value {
    let result = message.as_tool_result();
    let mut data = json!({
        "type": "tool", "content": message.text(), "name": message.name,
        "tool_call_id": result.map(|result| &result.tool_call_id), "id": message.id,
    });
    if let Some(artifact) = result.and_then(|result| result.artifact.as_ref()) {
        add(&mut data, "artifact", artifact.clone());
    }
    data
}

fn add(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

/// Hands a run's events to a channel; when nobody reads any more, it cancels the run.
pub(super) struct Teller {
    channel: Sender<Result<Event, ClientError>>,
    stop: CancellationToken,
    /// Held only while one event is sorted, never across an await.
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// Messages whose words have been told, in pieces or whole.
    words: HashSet<MessageId>,
    /// Messages whose calls, result or usage have been told.
    rest: HashSet<MessageId>,
    usage: UsageMetadata,
}

impl Teller {
    pub(super) fn new(channel: Sender<Result<Event, ClientError>>, stop: CancellationToken) -> Self {
        Self { channel, stop, told: Mutex::default() }
    }

    pub(super) fn usage(&self) -> UsageMetadata {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).usage.clone()
    }

    /// Waits for a reader that is behind, but not once the run is cancelled: it may never read again.
    async fn tell(&self, event: Event) {
        tokio::select! {
            biased;
            sent = self.channel.reserve() => match sent {
                Ok(place) => place.send(Ok(event)),
                Err(_) => self.stop.cancel(),
            },
            () = self.stop.cancelled() => {}
        }
    }

    fn sort(&self, event: AgentEvent) -> Vec<Event> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            AgentEvent::MessageChunk(chunk) => told.chunk(&chunk),
            AgentEvent::Message(message) => told.message(&message),
            AgentEvent::Values(reached) => vec![Event::Values(reached.values)],
            AgentEvent::Paused(interrupts) => vec![Event::Paused(interrupts)],
            AgentEvent::Custom(data) => vec![Event::Custom(data)],
            AgentEvent::ToolProgress { call_id, text } => vec![Event::ToolProgress { call: call_id, text }],
            AgentEvent::SideCall(call) => {
                told.usage.add(&call.usage);
                Vec::new()
            }
            // What they say is in the messages.
            AgentEvent::Updates { .. }
            | AgentEvent::ModelStarted
            | AgentEvent::ToolStarted(_)
            | AgentEvent::ToolFinished(_)
            | AgentEvent::Child { .. } => Vec::new(),
        }
    }
}

#[async_trait]
impl EventSink for Teller {
    async fn emit(&self, event: AgentEvent) {
        for event in self.sort(event) {
            self.tell(event).await;
        }
    }
}

impl Told {
    fn chunk(&mut self, chunk: &Message) -> Vec<Event> {
        let Some(id) = chunk.id.clone() else { return Vec::new() };
        let mut events = Vec::new();
        if let Some(Value::String(text)) = chunk.additional_kwargs.get("reasoning_content") {
            events.push(Event::Reasoning { id: id.clone(), text: text.clone() });
        }
        let text = chunk.text();
        if !text.is_empty() {
            self.words.insert(id.clone());
            events.push(Event::Text { id, text });
        }
        events
    }

    fn message(&mut self, message: &Arc<Message>) -> Vec<Event> {
        let Some(id) = message.id.clone() else { return Vec::new() };
        let mut events = Vec::new();
        match &message.body {
            Body::Ai(ai) => {
                let text = message.text();
                if self.words.insert(id.clone()) && !text.is_empty() {
                    events.push(Event::Text { id: id.clone(), text });
                }
                if !self.rest.insert(id.clone()) {
                    return events;
                }
                if !ai.tool_calls.is_empty() {
                    events.push(Event::ToolCalls { id: id.clone(), calls: ai.tool_calls.clone() });
                }
                if let Some(usage) = ai.usage.clone() {
                    self.usage.add(&usage);
                    events.push(Event::Usage { id, usage });
                }
            }
            Body::Tool(_) if self.rest.insert(id) => events.push(Event::ToolResult(Arc::clone(message))),
            _ => {}
        }
        events
    }
}
