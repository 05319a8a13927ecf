use hart_types::{Ai, ToolCall};
use serde_json::Map;

use super::*;

fn calls(ids: &[&str]) -> Arc<Message> {
    let tool_calls = ids.iter().map(|id| ToolCall::new(*id, "ls", Map::new())).collect();
    Arc::new(Message::new(Body::Ai(Ai { tool_calls, ..Ai::default() }), ""))
}

fn result(id: &str) -> Arc<Message> {
    Arc::new(Message::tool(&id.into(), "ls", ToolStatus::Success, id))
}

fn human() -> Arc<Message> {
    Arc::new(Message::human("q"))
}

/// `h`, `a`, a result's call id, or `?id` for a repaired one.
fn shape(messages: &MessageList) -> String {
    let words = messages.iter().map(|message| match &message.body {
        Body::Human => "h".to_owned(),
        Body::Ai(_) => "a".to_owned(),
        Body::Tool(result) if result.status == ToolStatus::Error => format!("?{}", result.tool_call_id),
        Body::Tool(result) => result.tool_call_id.to_string(),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_sound_history_is_left_alone() {
    assert!(is_sound(&[human(), calls(&["1", "2"]), result("2"), result("1"), human()]));
}

#[test]
fn histories_are_repaired() {
    for (history, expected) in [
        (vec![human(), calls(&["1"]), human()], "h a ?1 h"),
        (vec![human(), calls(&["1", "2"]), result("1")], "h a 1 ?2"),
        (vec![result("9"), human()], "h"),
        (vec![calls(&["1"]), human(), result("1")], "a 1 h"),
        (vec![calls(&["1"]), result("1"), result("1")], "a 1"),
        // An id used again: the second call's result must not answer the first.
        (vec![calls(&["1"]), human(), calls(&["1"]), result("1")], "a ?1 h a 1"),
    ] {
        assert!(!is_sound(&history));
        let repaired = repair(&history.into());
        assert_eq!(shape(&repaired), expected);
        assert!(is_sound(&repaired));
    }
}

#[test]
fn what_was_checked_is_not_looked_at_again_unless_it_changed() {
    let checked = Checked::default();
    let mut messages = MessageList::from(vec![human(), calls(&["1"]), result("1")]);
    assert!(checked.is_sound(&messages));
    messages.push(calls(&["2"]));
    assert!(!checked.is_sound(&messages));
    messages.push(result("2"));
    assert!(checked.is_sound(&messages));
    let shortened = MessageList::from(vec![human(), calls(&["1"]), human()]);
    assert!(!checked.is_sound(&shortened));
}
