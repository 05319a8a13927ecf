//! The lines of those that work for the agent: one when a subagent begins, one when it ends.
//!
//! Invariant: what a subagent says in between is not shown; its report is the agent's to pass on.

use std::collections::HashMap;

use serde_json::Value;

/// What the delegations are about, by their ids.
#[derive(Default)]
pub(super) struct Delegated(HashMap<String, String>);

impl Delegated {
    /// The line for an event, if it is one to be shown.
    pub(super) fn line(&mut self, event: &Value) -> Option<String> {
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        let (kind, task) = (text("type")?.strip_prefix("task_")?, text("task_id")?);
        match kind {
            "started" => {
                let about = text("description").unwrap_or("a task").to_owned();
                let who = text("subagent_type").unwrap_or("a subagent");
                let line = format!("  ▸ {about} ({who})");
                self.0.insert(task.to_owned(), about);
                Some(line)
            }
            "completed" | "failed" | "cancelled" | "timed_out" => {
                let about = self.0.remove(task).unwrap_or_else(|| "a task".to_owned());
                let tokens = event.get("usage").and_then(|usage| usage.get("total_tokens")?.as_u64());
                let tokens = tokens.filter(|tokens| *tokens > 0);
                let tokens = tokens.map(|tokens| format!(", {} tokens", super::count(tokens)));
                let why = text("error").map(|why| format!(": {why}")).unwrap_or_default();
                let how = kind.replace('_', " ");
                Some(format!("  ▪ {about}: {how}{}{why}", tokens.unwrap_or_default()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_when_it_begins_and_one_when_it_ends() {
        let mut delegated = Delegated::default();
        let mut line = |event: Value| delegated.line(&event);
        let begins = json!({"type": "task_started", "task_id": "a", "description": "find it", "subagent_type": "bash"});
        assert_eq!(line(begins).as_deref(), Some("  ▸ find it (bash)"));
        assert_eq!(line(json!({"type": "task_running", "task_id": "a", "message": {}})), None);
        let ends = json!({"type": "task_timed_out", "task_id": "a", "error": "too late", "usage": {"total_tokens": 1234}});
        assert_eq!(line(ends).as_deref(), Some("  ▪ find it: timed out, 1.2k tokens: too late"));
        assert_eq!(
            line(json!({"type": "task_completed", "task_id": "x"})).as_deref(),
            Some("  ▪ a task: completed")
        );
        assert_eq!(line(json!({"type": "llm_retry"})), None);
    }
}
