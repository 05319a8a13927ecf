//! An agent's events as the lines a client reads: `{"event": …, "data": …}` with LangGraph's names for them.
//!
//! Invariant: a frame is plain JSON; whoever reads it needs no hart.

use hart_kernel::{AgentEvent, Ended, RunError, Snapshot};
use hart_types::{RunId, ThreadId};
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    pub event: &'static str,
    pub data: Value,
}

impl Frame {
    /// The first frame of a run.
    pub fn metadata(run: &RunId, thread: &ThreadId, model: &str) -> Self {
        Self { event: "metadata", data: json!({"run_id": run, "thread_id": thread, "model": model}) }
    }

    /// A state.
    pub fn values(values: &Snapshot) -> Self {
        Self { event: "values", data: Value::Object(values.to_json()) }
    }

    /// The last frame of a run.
    pub fn end(outcome: &Result<Ended, RunError>) -> Self {
        let data = match outcome {
            Ok(Ended::Finished) => json!({"status": "success"}),
            Ok(Ended::Paused) => json!({"status": "paused"}),
            Err(RunError::Cancelled) => json!({"status": "interrupted"}),
            Err(error) => json!({"status": "error", "error": error.to_string()}),
        };
        Self { event: "end", data }
    }

    pub fn of(event: &AgentEvent) -> Self {
        match event {
            AgentEvent::MessageChunk(chunk) => Self { event: "messages", data: json!([chunk, {}]) },
            AgentEvent::Message(message) => Self { event: "message", data: json!(message) },
            AgentEvent::Updates { node, update } => {
                Self { event: "updates", data: json!({ (node.as_ref()): update }) }
            }
            AgentEvent::Values(reached) => Self::values(&reached.values),
            AgentEvent::ModelStarted => Self { event: "model_started", data: Value::Null },
            AgentEvent::Child { call_id, agent, event } => {
                let inner = Self::of(event);
                let data = json!({"tool_call_id": call_id, "agent": agent, "event": inner.event, "data": inner.data});
                Self { event: "child", data }
            }
            AgentEvent::Paused(interrupts) => {
                Self { event: "updates", data: json!({ "__interrupt__": interrupts.as_ref() }) }
            }
            AgentEvent::ToolStarted(call) => Self { event: "tool_started", data: json!(call) },
            AgentEvent::ToolProgress { call_id, text } => {
                Self { event: "tool_progress", data: json!({"tool_call_id": call_id, "text": text}) }
            }
            AgentEvent::ToolFinished(message) => Self { event: "tool_finished", data: json!(message) },
            AgentEvent::SideCall(call) => {
                let data = json!({"caller": call.caller, "model": call.model, "usage": call.usage});
                Self { event: "side_call", data }
            }
            AgentEvent::Custom(data) => Self { event: "custom", data: data.clone() },
        }
    }
}
