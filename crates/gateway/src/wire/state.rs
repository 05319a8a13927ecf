//! A thread's state at a step, as LangGraph's clients see it.
//!
//! Invariant: what a thread waits for is in its tasks and beside them, under the same id.

use hart_kernel::Interrupt;
use hart_runtime::port::StepInfo;
use hart_runtime::{ThreadState, source};
use hart_types::{CheckpointId, ThreadId};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::time;

pub(crate) fn json(thread: &ThreadId, state: &ThreadState) -> Value {
    let Some(step) = &state.step else { return fresh() };
    let values: Option<Box<RawValue>> = serde_json::from_slice(&state.values).ok();
    let interrupts: Vec<Value> = state.interrupts.iter().map(interrupt).collect();
    let at = |id: &CheckpointId| json!({"checkpoint_id": id, "thread_id": thread, "checkpoint_ns": ""});
    let next: Vec<&String> = step.next.iter().collect();
    let tasks: Vec<Value> = next
        .iter()
        .map(|name| {
            json!({
                "id": task_id(state), "name": name, "path": ["__pregel_push", 0, false], "error": null,
                "interrupts": interrupts, "checkpoint": null, "state": null, "result": null,
            })
        })
        .collect();
    json!({
        "values": values,
        "next": next,
        "tasks": tasks,
        "metadata": metadata(thread, step),
        "created_at": time(step.created_at),
        "checkpoint": at(&step.id),
        "parent_checkpoint": step.parent.as_ref().map(at),
        "interrupts": interrupts,
        "checkpoint_id": step.id,
        "parent_checkpoint_id": step.parent,
    })
}

/// What is said about a step.
pub(crate) fn metadata(thread: &ThreadId, step: &StepInfo) -> Value {
    json!({
        "source": source(step.source), "step": step.number, "parents": {}, "thread_id": thread, "run_id": step.run,
    })
}

pub(crate) fn interrupt(interrupt: &Interrupt) -> Value {
    match &interrupt.response_schema {
        None => json!({"id": interrupt.id, "value": interrupt.value}),
        Some(_) => asked(interrupt),
    }
}

/// With what its answer must look like, as streams show it.
pub(crate) fn asked(interrupt: &Interrupt) -> Value {
    json!({"value": interrupt.value, "id": interrupt.id, "response_schema": interrupt.response_schema})
}

/// What waits, by the step it waits at.
pub(crate) fn task_id(state: &ThreadState) -> String {
    let step = state.step.as_ref().map(|step| step.id.as_str()).unwrap_or_default();
    Uuid::new_v5(&Uuid::NAMESPACE_OID, step.as_bytes()).to_string()
}

fn fresh() -> Value {
    json!({
        "values": {}, "next": [], "tasks": [], "metadata": null, "created_at": null, "checkpoint": null,
        "parent_checkpoint": null, "interrupts": [], "checkpoint_id": null, "parent_checkpoint_id": null,
    })
}
