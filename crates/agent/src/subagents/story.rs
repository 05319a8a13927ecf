//! Tells clients of a subagent while it works, and notices when it no longer does.
//!
//! Invariant: what happens is told the moment it happens; nobody asks for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hart_kernel::{AgentEvent, EventSink, Timestamp, async_trait};
use hart_types::{Message, ToolCallId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Kind;

/// What is told of one subagent, beside what it says itself.
pub(super) struct Story {
    /// Whoever hears the run it works for.
    outer: Arc<dyn EventSink>,
    task: ToolCallId,
    model: String,
    /// Never held across an await.
    so_far: Mutex<SoFar>,
}

struct SoFar {
    messages: u64,
    input_tokens: u64,
    output_tokens: u64,
    heard: Instant,
}

impl Story {
    pub(super) fn new(outer: Arc<dyn EventSink>, task: &ToolCallId, kind: &Kind) -> Arc<Self> {
        let so_far = SoFar { messages: 0, input_tokens: 0, output_tokens: 0, heard: Instant::now() };
        Arc::new(Self { outer, task: task.clone(), model: kind.model.clone(), so_far: Mutex::new(so_far) })
    }

    pub(super) async fn begins(&self, description: &str, kind: &Kind, at: Timestamp) {
        let event = json!({
            "type": "task_started", "task_id": self.task, "description": description,
            "model_name": self.model, "subagent_type": kind.name, "started_at": at,
        });
        self.tell(event).await;
    }

    pub(super) async fn tell(&self, event: Value) {
        self.outer.emit(AgentEvent::Custom(event)).await;
    }

    /// Around whoever hears what the subagent says.
    pub(super) fn hearing(self: &Arc<Self>, inner: Arc<dyn EventSink>) -> Arc<dyn EventSink> {
        Arc::new(Hearing { inner, story: Arc::clone(self) })
    }

    /// Returns when nothing was heard for `limit`.
    pub(super) async fn silence(&self, limit: Duration) {
        loop {
            let heard = self.so_far.lock().unwrap_or_else(PoisonError::into_inner).heard;
            // A limit beyond all clocks is none.
            let Some(until) = heard.checked_add(limit) else { return std::future::pending().await };
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// The event for a message, if it is one of the subagent's own.
    fn hear(&self, event: &AgentEvent) -> Option<Value> {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.heard = Instant::now();
        let AgentEvent::Message(message) = event else { return None };
        // What its tools bring back is a step as what it says is one.
        if message.as_ai().is_none() && message.as_tool_result().is_none() {
            return None;
        }
        so_far.messages += 1;
        if let Some(usage) = message.as_ai().and_then(|ai| ai.usage.as_ref()) {
            so_far.input_tokens += usage.input_tokens;
            so_far.output_tokens += usage.output_tokens;
        }
        Some(self.running(message, &so_far))
    }

    fn running(&self, message: &Message, so_far: &SoFar) -> Value {
        let SoFar { messages, input_tokens, output_tokens, .. } = so_far;
        json!({
            "type": "task_running", "task_id": self.task, "message": message,
            "message_index": messages, "total_messages": messages,
            "usage": {
                "input_tokens": input_tokens, "output_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
            },
            "model_name": self.model,
        })
    }
}

struct Hearing {
    inner: Arc<dyn EventSink>,
    story: Arc<Story>,
}

#[async_trait]
impl EventSink for Hearing {
    async fn emit(&self, event: AgentEvent) {
        let running = self.story.hear(&event);
        self.inner.emit(event).await;
        if let Some(running) = running {
            self.story.tell(running).await;
        }
    }
}
