//! What a run tells whoever follows it, typed.
//!
//! Invariant: of one message every word, every call and every count is told once, however it came about.

use std::sync::Arc;

use hart_types::{Interrupt, Message, MessageId, RunId, ThreadId, ToolCall, ToolCallId, UsageMetadata};
use serde_json::{Map, Value};

use crate::record::Artifact;
use crate::values::Values;

/// One thing that happened in a run. [`Frame::from`](crate::Frame) makes of it what DeerFlow's client yields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The next words of an answer.
    Text { id: MessageId, text: String },
    /// An answer that was begun is void: the server was cut off, and the model is asked again.
    Withdrawn { id: MessageId },
    /// The next words of its reasoning, where a model shows it.
    Reasoning { id: MessageId, text: String },
    /// The calls that an answer makes.
    ToolCalls { id: MessageId, calls: Vec<ToolCall> },
    /// A call that is being executed.
    ToolStarted(ToolCall),
    /// Output of a tool that is still running.
    ToolProgress { call: ToolCallId, text: String },
    /// The message that answers a call.
    ToolResult(Arc<Message>),
    /// What an answer cost.
    Usage { id: MessageId, usage: UsageMetadata },
    /// What a step wrote to the state.
    Updates { node: String, update: Map<String, Value> },
    /// The state after a durable step.
    Values(Values),
    /// The run waits for a person. `End` follows.
    Paused(Vec<Interrupt>),
    /// Anything a middleware or a tool wants to be seen.
    Custom(Value),
    /// The last one.
    End(End),
}

/// How a run ended that did not fail.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct End {
    /// Of all model calls of the run.
    pub usage: UsageMetadata,
    pub values: Values,
    /// What it waits to be told; empty unless it paused.
    pub interrupts: Vec<Interrupt>,
}

impl End {
    pub(crate) fn new(usage: UsageMetadata, values: Values, interrupts: Vec<Interrupt>) -> Self {
        Self { usage, values, interrupts }
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The agent's last words, or its question where it asked one.
    pub text: String,
    pub thread: ThreadId,
    pub run: RunId,
    /// Of all model calls of the run.
    pub usage: UsageMetadata,
    /// All files the thread has handed over so far.
    pub artifacts: Vec<Artifact>,
    /// The state that was reached.
    pub values: Values,
    pub(crate) interrupts: Vec<Interrupt>,
}

impl Answer {
    /// What the thread waits to be told before it goes on; empty unless the run paused.
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.interrupts
    }

    /// What the provider calls the model that spoke last, where it says so.
    pub fn model(&self) -> Option<String> {
        let messages = self.values.messages();
        let spoken = messages.iter().rev().find(|message| message.as_ai().is_some())?;
        spoken.response_metadata.get("model_name").and_then(Value::as_str).map(str::to_owned)
    }
}
