//! Where LangChain's clients look for what a model thought: `additional_kwargs.reasoning_content`, beside a text.
//!
//! Invariant: a state shows an answer as its fragments did; what only blocks can say stays in blocks beside it.

use hart_types::{Body, Content, Message, REASONING_CONTENT};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::raw;

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
    let (thought, text) = (thought(blocks), plain(blocks));
    let (Some(thought), Some(message)) = (thought, message.as_object_mut()) else { return };
    let kwargs = message.entry("additional_kwargs").or_insert_with(|| Map::new().into());
    if let Some(kwargs) = kwargs.as_object_mut() {
        kwargs.entry(REASONING_CONTENT).or_insert_with(|| thought.into());
    }
    if let Some(text) = text {
        message.insert("content".to_owned(), text.into());
    }
}

/// All that blocks say beside thoughts, where that is text and nothing is lost by saying so.
fn plain(blocks: &[Value]) -> Option<String> {
    let texts = blocks.iter().map(|block| match block.get("type").and_then(Value::as_str) {
        Some("reasoning") => only(block, "reasoning").map(|_| ""),
        Some("text") => only(block, "text"),
        _ => None,
    });
    texts.collect()
}

/// What a block says under the key, if it says nothing else.
fn only<'a>(block: &'a Value, key: &str) -> Option<&'a str> {
    let fields = block.as_object()?;
    fields.keys().all(|field| field == "type" || field == key).then(|| fields.get(key)?.as_str())?
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

    /// Either way; what is shown, and what was thought.
    fn content(content: &Value) -> (Value, Value) {
        let mut value = json!({"type": "ai", "id": "a", "content": content, "additional_kwargs": {}});
        let message: Message = serde_json::from_value(value.clone()).unwrap();
        show(&mut value);
        assert_eq!(serde_json::from_str::<Value>(shown(&message).get()).unwrap(), value);
        (value["content"].take(), value["additional_kwargs"][REASONING_CONTENT].take())
    }

    #[test]
    fn thoughts_are_told_where_clients_look_for_them() {
        let words = json!({"type": "text", "text": "yes"});
        let thought = json!({"type": "reasoning", "reasoning": "hm"});
        assert_eq!(content(&json!([thought, words])), (json!("yes"), json!("hm")));
        assert_eq!(content(&json!([thought])), (json!(""), json!("hm")));
        let summary = json!([{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]);
        for (only_blocks, thought) in [
            (json!([{"type": "reasoning", "id": "rs_1", "summary": summary}, words]), json!("a\n\nb")),
            (json!([{"type": "reasoning", "reasoning": "hm", "signature": "s"}, words]), json!("hm")),
            (json!([thought, {"type": "image", "url": "u"}]), json!("hm")),
            (json!("yes"), Value::Null),
            (json!([words]), Value::Null),
            (json!([{"type": "thinking", "thinking": "hm"}, words]), Value::Null),
        ] {
            assert_eq!(content(&only_blocks), (only_blocks.clone(), thought));
        }
    }

    #[test]
    fn what_a_client_has_sent_back_is_not_told_twice() {
        let content = json!([{"type": "reasoning", "reasoning": "hm", "signature": "s"}]);
        let own = json!({(REASONING_CONTENT): "its own"});
        let mut sent = json!({"type": "ai", "id": "a", "content": content, "additional_kwargs": own});
        let before = sent.clone();
        show(&mut sent);
        assert_eq!(sent, before);
        let human = json!({"type": "human", "id": "h", "content": content});
        let mut shown = human.clone();
        show(&mut shown);
        assert_eq!(shown, human);
    }
}
