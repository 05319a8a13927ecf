//! The states of agents inside calls, put together again from what was new in each.
//!
//! Invariant: a reader that has heard an agent from its first word is shown whole states.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use crate::event::raw;

/// The messages of each agent as they were last, by namespace.
#[derive(Debug, Default)]
pub(super) struct InsideStates(HashMap<Vec<String>, Vec<Box<RawValue>>>);

impl InsideStates {
    /// The state that `values` leads to, of which the first `kept` messages were there before.
    pub(super) fn whole(&mut self, namespace: &[String], kept: usize, values: &RawValue) -> Box<RawValue> {
        let Ok(mut parts) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(values.get()) else {
            return values.to_owned();
        };
        let new = parts.remove("messages");
        let new: Vec<Box<RawValue>> =
            new.and_then(|new| serde_json::from_str(new.get()).ok()).unwrap_or_default();
        let messages = self.0.entry(namespace.to_vec()).or_default();
        messages.truncate(kept);
        messages.extend(new);
        parts.insert("messages".to_owned(), raw(messages));
        raw(&parts)
    }

    /// All that the agent has heard and said.
    pub(super) fn said(&self, namespace: &[String]) -> &[Box<RawValue>] {
        self.0.get(namespace).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_state_is_what_was_kept_and_what_is_new() {
        let (mut states, here, there) = (InsideStates::default(), ["a".to_owned()], ["b".to_owned()]);
        let mut whole = |namespace: &[String], kept, values: Value| -> Value {
            serde_json::from_str(states.whole(namespace, kept, &raw(&values)).get()).unwrap()
        };
        assert_eq!(whole(&here, 0, json!({"messages": [1, 2], "x": 1})), json!({"messages": [1, 2], "x": 1}));
        assert_eq!(whole(&there, 0, json!({"messages": [9]})), json!({"messages": [9]}));
        assert_eq!(whole(&here, 2, json!({"messages": [3]})), json!({"messages": [1, 2, 3]}));
        assert_eq!(whole(&here, 1, json!({"messages": [4], "y": 2})), json!({"messages": [1, 4], "y": 2}));
    }
}
