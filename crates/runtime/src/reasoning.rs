//! Where LangChain's clients look for what a model thought: `additional_kwargs.reasoning_content`, as in fragments.
//!
//! Invariant: it is told beside the blocks, never kept: a state has what its model said once.

use hart_types::{Body, Content, Message};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::raw;

pub(crate) const KEY: &str = "reasoning_content";

/// A message as clients are shown it.
pub(crate) fn shown(message: &Message) -> Box<RawValue> {
    if matches!((&message.body, &message.content), (Body::Ai(_), Content::Blocks(_))) {
        return raw(&told(message));
    }
    raw(message)
}

/// The same, to be told in something else.
pub(crate) fn told(message: &Message) -> Value {
    let mut told = serde_json::to_value(message).unwrap_or_default();
    show(&mut told);
    told
}

/// Of one that is JSON already.
pub(crate) fn show(message: &mut Value) {
    let is_ai = message.get("type").is_some_and(|kind| kind == "ai");
    let Some(Value::Array(blocks)) = message.get("content").filter(|_| is_ai) else { return };
    let (Some(thought), Some(message)) = (thought(blocks), message.as_object_mut()) else { return };
    let kwargs = message.entry("additional_kwargs").or_insert_with(|| Map::new().into());
    if let Some(kwargs) = kwargs.as_object_mut() {
        kwargs.entry(KEY).or_insert_with(|| thought.into());
    }
}

/// What blocks of the kind `reasoning` say; those of the kind `thinking` are known to all clients.
pub(crate) fn thought(blocks: &[Value]) -> Option<String> {
    let of_kind = |block: &&Value| block.get("type").is_some_and(|kind| kind == "reasoning");
    let parts = blocks.iter().filter(of_kind).flat_map(|block| match block.get("reasoning") {
        Some(Value::String(text)) => vec![text.as_str()],
        _ => summary(block),
    });
    let parts: Vec<&str> = parts.filter(|text| !text.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// OpenAI's own models tell a summary of theirs.
fn summary(block: &Value) -> Vec<&str> {
    let parts = block.get("summary").and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| part.get("text")?.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn thoughts_are_told_where_clients_look_for_them() {
        let thought = |content: Value| {
            let mut value = json!({"type": "ai", "id": "a", "content": content, "additional_kwargs": {}});
            let message: Message = serde_json::from_value(value.clone()).unwrap();
            show(&mut value);
            assert_eq!(serde_json::from_str::<Value>(shown(&message).get()).unwrap(), value, "either way");
            value["additional_kwargs"][KEY].clone()
        };
        let words = json!({"type": "text", "text": "yes"});
        assert_eq!(thought(json!([{"type": "reasoning", "reasoning": "hm"}, words])), "hm");
        let summary = json!([{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]);
        assert_eq!(
            thought(json!([{"type": "reasoning", "id": "rs_1", "summary": summary}, words])),
            "a\n\nb"
        );
        for nothing in [json!("yes"), json!([words]), json!([{"type": "thinking", "thinking": "hm"}, words])]
        {
            assert_eq!(thought(nothing), Value::Null);
        }
    }

    #[test]
    fn what_a_client_has_sent_back_is_not_told_twice() {
        let content = json!([{"type": "reasoning", "reasoning": "hm"}]);
        let mut sent =
            json!({"type": "ai", "id": "a", "content": content, "additional_kwargs": {(KEY): "its own"}});
        let before = sent.clone();
        show(&mut sent);
        assert_eq!(sent, before);
        let human = json!({"type": "human", "id": "h", "content": content});
        let mut shown = human.clone();
        show(&mut shown);
        assert_eq!(shown, human);
    }
}
