//! From the frames of a stream to the events of a run.
//!
//! Invariant: frames in order give events in order; a frame that was read before changes nothing.

use std::collections::HashSet;
use std::sync::Arc;

use hart_types::{Body, Interrupt, Message, MessageId, REASONING_CONTENT, ToolCall, ToolCallId};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Failure;
use crate::event::Event;
use crate::frame::StreamFrame;
use crate::values::Values;

#[derive(Debug, Default)]
pub struct Decoder {
    /// Messages whose words have been told, in pieces or whole.
    words: HashSet<MessageId>,
    /// Messages whose calls, result or usage have been told.
    rest: HashSet<MessageId>,
    values: Option<Values>,
    paused: Vec<Interrupt>,
    failure: Option<Failure>,
    ended: bool,
}

impl Decoder {
    /// The events that a frame tells of. Frames of agents inside of calls tell of none.
    pub fn read(&mut self, frame: &StreamFrame) -> Vec<Event> {
        match frame.event.as_str() {
            "messages" => self.message_frame(frame),
            "updates" => self.updates(frame),
            "tasks" => started(frame),
            "custom" => vec![custom(frame.json())],
            "values" => {
                let values = Values::from_json(frame.data.clone());
                self.values = Some(values.clone());
                vec![Event::Values(values)]
            }
            "error" => {
                self.failure = serde_json::from_slice(&frame.data).ok();
                Vec::new()
            }
            "end" => {
                self.ended = true;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Whether the last frame was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// The newest state, and what was asked.
    pub(crate) fn state(&mut self) -> (Option<Values>, Vec<Interrupt>) {
        let asked = std::mem::take(&mut self.paused);
        let asked = match (&self.values, asked) {
            (Some(values), asked) if asked.is_empty() => values.asked(),
            (_, asked) => asked,
        };
        (self.values.take(), asked)
    }

    /// `[message, metadata]`.
    fn message_frame(&mut self, frame: &StreamFrame) -> Vec<Event> {
        match serde_json::from_slice::<(Message, Value)>(&frame.data) {
            Ok((message, _)) if matches!(message.body, Body::AiChunk(_)) => self.chunk(&message),
            Ok((message, _)) => self.message(message),
            Err(error) => {
                tracing::debug!(%error, "a message of a stream cannot be read");
                Vec::new()
            }
        }
    }

    fn chunk(&mut self, chunk: &Message) -> Vec<Event> {
        let Some(id) = chunk.id.clone() else { return Vec::new() };
        let mut events = Vec::new();
        if let Some(Value::String(text)) = chunk.additional_kwargs.get(REASONING_CONTENT) {
            events.push(Event::Reasoning { id: id.clone(), text: text.clone() });
        }
        let text = chunk.text();
        if !text.is_empty() {
            self.words.insert(id.clone());
            events.push(Event::Text { id, text });
        }
        events
    }

    fn message(&mut self, message: Message) -> Vec<Event> {
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
                    events.push(Event::Usage { id, usage });
                }
            }
            Body::Remove if self.words.remove(&id) => events.push(Event::Withdrawn { id }),
            Body::Tool(_) if self.rest.insert(id) => events.push(Event::ToolResult(Arc::new(message))),
            _ => {}
        }
        events
    }

    /// `{node: update}`, or the questions a run paused with.
    fn updates(&mut self, frame: &StreamFrame) -> Vec<Event> {
        let Ok(nodes) = serde_json::from_slice::<Map<String, Value>>(&frame.data) else { return Vec::new() };
        let mut events = Vec::new();
        for (node, update) in nodes {
            match update {
                asked if node == "__interrupt__" => {
                    self.paused = serde_json::from_value(asked).unwrap_or_default();
                    events.push(Event::Paused(self.paused.clone()));
                }
                Value::Object(update) => {
                    let messages = update.get("messages").and_then(Value::as_array).into_iter().flatten();
                    for message in messages {
                        if let Ok(message) = serde_json::from_value(message.clone()) {
                            events.extend(self.message(message));
                        }
                    }
                    events.push(Event::Updates { node, update });
                }
                _ => {}
            }
        }
        events
    }
}

/// A task whose input is a call is the call's execution; it is told again when it ends.
fn started(frame: &StreamFrame) -> Vec<Event> {
    #[derive(Deserialize)]
    struct Started {
        name: String,
        input: Vec<ToolCall>,
    }
    match serde_json::from_slice::<Started>(&frame.data) {
        Ok(started) if started.name == "tools" => started.input.into_iter().map(Event::ToolStarted).collect(),
        _ => Vec::new(),
    }
}

fn custom(data: Value) -> Event {
    let field = |name: &str| data.get(name).and_then(Value::as_str);
    match (field("type"), field("tool_call_id"), field("text")) {
        (Some("tool_progress"), Some(call), Some(text)) => {
            Event::ToolProgress { call: ToolCallId::from(call), text: text.to_owned() }
        }
        _ => Event::Custom(data),
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
