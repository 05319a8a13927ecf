//! What was said on a thread, each with the run that said it: the log of steps read as a conversation.
//!
//! Invariant: numbers rise along the thread and stay when more is said; a message that was written again keeps its own.

use std::collections::HashMap;

use hart_kernel::{Step, Timestamp};
use hart_types::{CheckpointId, RunId};
use serde_json::Value;

use crate::reasoning;

/// A message, and where it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// From 1 upwards.
    pub seq: u64,
    pub run: RunId,
    pub at: Timestamp,
    /// The step that wrote it first.
    pub step: CheckpointId,
    /// The step before that one.
    pub before: Option<CheckpointId>,
    /// As the state shows it.
    pub message: Value,
}

impl Said {
    pub fn id(&self) -> &str {
        self.message.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// `human`, `ai`, `tool`, …
    pub fn kind(&self) -> &str {
        self.message.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it was said for the model alone.
    pub fn is_hidden(&self) -> bool {
        let hidden = self.message.pointer("/additional_kwargs/hide_from_ui");
        hidden.is_some_and(|hidden| *hidden == Value::Bool(true))
    }

    /// Whether a person said it.
    pub fn is_from_user(&self) -> bool {
        self.kind() == "human" && !self.is_hidden()
    }
}

/// What the steps wrote, in order.
pub(crate) fn read(steps: &[Step]) -> Vec<Said> {
    let mut said: Vec<Option<Said>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for step in steps {
        let writes = step.writes.iter().filter(|write| write.key == MESSAGES);
        for message in writes.flat_map(|write| match &write.value {
            Value::Array(messages) => messages.as_slice(),
            single => std::slice::from_ref(single),
        }) {
            let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
            let place = places.get(id).and_then(|place| said.get_mut(*place));
            match (message.get("type").and_then(Value::as_str), place) {
                (Some("remove"), _) if id == REMOVE_ALL => said.iter_mut().for_each(|said| *said = None),
                (Some("remove"), Some(place)) => *place = None,
                (Some("remove"), None) => {}
                (_, Some(Some(known))) => known.message = message.clone(),
                _ => {
                    if !id.is_empty() {
                        places.insert(id, said.len());
                    }
                    said.push(Some(Said {
                        seq: said.len() as u64 + 1,
                        run: step.run_id.clone(),
                        at: step.created_at,
                        step: step.id.clone(),
                        before: step.parent.clone(),
                        message: message.clone(),
                    }));
                }
            }
        }
    }
    let mut said: Vec<Said> = said.into_iter().flatten().collect();
    said.iter_mut().for_each(|said| reasoning::show(&mut said.message));
    said
}

/// The state key, as the kernel calls it.
const MESSAGES: &str = "messages";
/// What LangGraph's clients call all messages.
const REMOVE_ALL: &str = "__remove_all__";

#[cfg(test)]
mod tests {
    use hart_kernel::{LoggedWrite, StepSource};
    use serde_json::json;

    use super::*;

    fn step(id: &str, messages: Value) -> Step {
        Step {
            id: id.into(),
            parent: Some(format!("before-{id}").as_str().into()),
            run_id: format!("run-{id}").as_str().into(),
            source: StepSource::Model,
            created_at: Timestamp::UNIX_EPOCH,
            writes: vec![LoggedWrite { key: MESSAGES.to_owned(), value: messages, private: false }],
            next: None,
        }
    }

    #[test]
    fn numbers_stay_with_their_messages() {
        let said = |id: &str, text: &str| json!({"type": "ai", "id": id, "content": text});
        let steps = [
            step("1", json!([said("a", "one"), said("b", "two")])),
            step("2", json!([said("a", "again"), {"type": "remove", "id": "b"}])),
            step("3", said("c", "three")),
        ];
        let read = read(&steps);
        let told: Vec<_> = read
            .iter()
            .map(|said| (said.seq, said.id(), said.run.as_str(), &said.message["content"]))
            .collect();
        assert_eq!(told, [(1, "a", "run-1", &json!("again")), (3, "c", "run-3", &json!("three"))]);
        let all = [&steps[..], &[step("4", json!([{"type": "remove", "id": "__remove_all__"}]))]].concat();
        assert!(super::read(&all).is_empty());
    }
}
