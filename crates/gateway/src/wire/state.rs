//! A thread's state at a step, as LangGraph's clients see it.
//!
//! Invariant: what a thread waits for is in its tasks and beside them, under the same id.

use hart_kernel::{Interrupt, StepSource};
use hart_runtime::port::StepInfo;
use hart_runtime::{NextTask, Thread, ThreadState, source};
use hart_types::CheckpointId;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::time;

/// Its values are sent as they are, however large.
#[derive(Debug, Default, Serialize)]
pub(crate) struct StateJson {
    values: Box<RawValue>,
    next: Vec<String>,
    pub(crate) tasks: Vec<Value>,
    metadata: Value,
    created_at: Option<String>,
    checkpoint: Option<Value>,
    parent_checkpoint: Option<Value>,
    interrupts: Vec<Value>,
    checkpoint_id: Option<CheckpointId>,
    parent_checkpoint_id: Option<CheckpointId>,
}

pub(crate) fn json(thread: &Thread, state: &ThreadState) -> StateJson {
    let values = serde_json::from_slice(&state.values).unwrap_or_default();
    let Some(step) = &state.step else { return StateJson { values, ..StateJson::default() } };
    let at = |id: &CheckpointId| json!({"checkpoint_id": id, "thread_id": thread.id, "checkpoint_ns": ""});
    // Calls that have their result already while others ask are not to be made again.
    let is_done =
        |task: &&NextTask| task.call.is_some() && state.at == thread.head && result(state, task).is_some();
    StateJson {
        values,
        next: state.tasks.iter().filter(|task| !is_done(task)).map(|task| task.name.clone()).collect(),
        tasks: state.tasks.iter().map(|task| task_json(state, task)).collect(),
        metadata: metadata(thread, step),
        created_at: Some(time(step.created_at)),
        checkpoint: Some(at(&step.id)),
        parent_checkpoint: step.parent.as_ref().map(at),
        interrupts: state.interrupts.iter().map(interrupt).collect(),
        checkpoint_id: Some(step.id.clone()),
        parent_checkpoint_id: step.parent.clone(),
    }
}

/// What is said about a step.
pub(crate) fn metadata(thread: &Thread, step: &StepInfo) -> Value {
    let mut metadata = Map::new();
    // Whose the thread is now: nearly always that of all its steps.
    for key in ["graph_id", "assistant_id"] {
        metadata.extend(thread.metadata.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    metadata.extend(step.run_metadata.clone());
    let mut say = |key: &str, value: Value| metadata.insert(key.to_owned(), value);
    say("source", json!(source(step.source)));
    say("step", json!(step.number));
    say("parents", json!({}));
    say("thread_id", json!(thread.id));
    // What was written by hand is of no run.
    if step.source != StepSource::Update {
        say("run_id", json!(step.run));
    }
    metadata.into()
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

fn task_json(state: &ThreadState, task: &NextTask) -> Value {
    let interrupts: Vec<Value> = task.interrupts.iter().map(interrupt).collect();
    let path = match &task.call {
        Some((_, place)) => json!(["__pregel_push", place, false]),
        None => json!(["__pregel_pull", task.name]),
    };
    json!({
        "id": task.id, "name": task.name, "path": path, "error": null, "interrupts": interrupts, "checkpoint": null,
        "state": null, "result": result(state, task),
    })
}

/// What the task has written, if it has.
fn result(state: &ThreadState, task: &NextTask) -> Option<Value> {
    let call = task.call.as_ref().map(|(call, _)| call.as_str());
    let own =
        |message: &&Value| call.is_none() || message.get("tool_call_id").and_then(Value::as_str) == call;
    let written: Vec<&Value> = state.results.iter().filter(own).collect();
    (!written.is_empty()).then(|| json!({ "messages": written }))
}

/// At a step that never was.
pub(crate) fn nowhere(thread: &Thread, state: &ThreadState, at: CheckpointId) -> StateJson {
    let checkpoint = Some(json!({"checkpoint_id": at, "thread_id": thread.id}));
    StateJson { checkpoint, checkpoint_id: Some(at), ..json(thread, state) }
}
