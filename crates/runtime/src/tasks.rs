//! What is done next at a checkpoint, named the same by streams and by states.
//!
//! Invariant: a task has one id, whoever tells of it: it follows from the checkpoint before it.

use hart_kernel::Interrupt;
use serde::Deserialize;
use uuid::Uuid;

/// One that waits or is being done.
#[derive(Clone, Debug, PartialEq)]
pub struct NextTask {
    pub id: String,
    /// The node.
    pub name: String,
    /// The call it makes, and its place among those of its message.
    pub call: Option<(String, usize)>,
    /// What it asks.
    pub interrupts: Vec<Interrupt>,
}

/// The tasks at a checkpoint whose state is `values`, as JSON. Calls that are done ask nothing any more.
pub(crate) fn next_tasks(
    checkpoint: &str,
    next: Option<&str>,
    values: &[u8],
    interrupts: &[Interrupt],
    is_done: impl Fn(&str) -> bool,
) -> Vec<NextTask> {
    let Some(name) = next else { return Vec::new() };
    let calls = if name == TOOLS { pending_calls(values) } else { Vec::new() };
    if calls.is_empty() {
        let id = task_id(checkpoint, name, "");
        return vec![NextTask { id, name: name.to_owned(), call: None, interrupts: interrupts.to_vec() }];
    }
    let mut shares = shared_out(interrupts, calls.iter().map(String::as_str).filter(|call| !is_done(call)));
    shares.reverse();
    let task = |(place, call): (usize, String)| NextTask {
        id: task_id(checkpoint, name, &call),
        name: name.to_owned(),
        interrupts: if is_done(&call) { Vec::new() } else { shares.pop().unwrap_or_default() },
        call: Some((call, place)),
    };
    calls.into_iter().enumerate().map(task).collect()
}

/// The node that makes calls.
const TOOLS: &str = "tools";

pub(crate) fn task_id(checkpoint: &str, node: &str, call: &str) -> String {
    let name = format!("{checkpoint}/{node}/{call}");
    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}

/// What each of the calls asks. A question that is none of theirs is the first one's.
pub(crate) fn shared_out<'a>(
    interrupts: &[Interrupt],
    calls: impl IntoIterator<Item = &'a str>,
) -> Vec<Vec<Interrupt>> {
    let ids: Vec<String> = calls.into_iter().map(|call| Interrupt::new(call, ()).id).collect();
    let mut shares = vec![Vec::new(); ids.len()];
    for interrupt in interrupts {
        let owner = ids.iter().position(|id| *id == interrupt.id).unwrap_or(0);
        if let Some(share) = shares.get_mut(owner) {
            share.push(interrupt.clone());
        }
    }
    shares
}

/// The calls of the last answer that have no result, in their order.
fn pending_calls(values: &[u8]) -> Vec<String> {
    let Ok(State { messages }) = serde_json::from_slice(values) else { return Vec::new() };
    let Some(last) = messages.iter().rposition(|message| !message.tool_calls.is_empty()) else {
        return Vec::new();
    };
    let answered = |id: &str| messages.iter().skip(last).any(|it| it.tool_call_id.as_deref() == Some(id));
    let calls = messages.get(last).into_iter().flat_map(|message| &message.tool_calls);
    calls.filter_map(|call| call.id.clone()).filter(|id| !answered(id)).collect()
}

#[derive(Deserialize)]
struct State {
    #[serde(default)]
    messages: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    tool_calls: Vec<Call>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_call_without_a_result_is_a_task_with_its_own_questions() {
        let values = json!({"messages": [
            {"type": "ai", "tool_calls": [{"id": "a"}, {"id": "b"}, {"id": "c"}]},
            {"type": "tool", "tool_call_id": "a"},
        ]});
        let (of_c, of_nobody) = (Interrupt::new("c", "c?"), Interrupt::new("x", "x?"));
        let asked = [of_c.clone(), of_nobody.clone()];
        let tasks = next_tasks("k", Some("tools"), values.to_string().as_bytes(), &asked, |_| false);
        let told: Vec<_> =
            tasks.iter().map(|task| (task.call.clone().unwrap(), task.interrupts.clone())).collect();
        assert_eq!(told, [(("b".to_owned(), 0), vec![of_nobody]), (("c".to_owned(), 1), vec![of_c])]);
        assert_eq!(tasks[0].id, task_id("k", "tools", "b"));
        let later = next_tasks("k", Some("tools"), values.to_string().as_bytes(), &asked, |call| call == "b");
        let told: Vec<_> = later.iter().map(|task| task.interrupts.len()).collect();
        assert_eq!(told, [0, 2], "one that is done asks nothing");
        let model = next_tasks("k", Some("model"), b"{}", &[], |_| false);
        assert_eq!((model[0].name.as_str(), &model[0].call), ("model", &None));
        assert!(next_tasks("k", None, b"{}", &[], |_| false).is_empty());
    }
}
