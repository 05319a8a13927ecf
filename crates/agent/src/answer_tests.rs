use hart_types::{Ai, InvalidToolCall, ToolCall};
use serde_json::{Map, json};

use super::*;

fn answer(blocks: Value) -> Message {
    let ai = Ai {
        tool_calls: vec![ToolCall::new("a", "ls", Map::new()), ToolCall::new("b", "bash", Map::new())],
        invalid_tool_calls: vec![InvalidToolCall::new("c", "write_file", "{", "cut".into())],
        ..Ai::default()
    };
    Message::new(Body::Ai(ai), serde_json::from_value::<Vec<Block>>(blocks).unwrap())
}

#[test]
fn calls_go_with_their_marks() {
    let mark = |id: &str| json!({"type": "tool_use", "id": id, "name": "x", "input": {}});
    let mut message = answer(json!([{"type": "text", "text": "hi"}, mark("a"), mark("b"), mark("c")]));
    let taken = take_calls(&mut message, |id| id.is_some_and(|id| id.as_str() == "a"));
    assert_eq!(taken, ["bash", "write_file"]);
    assert_eq!(message.tool_calls().len(), 1);
    let left = serde_json::to_value(&message.content).unwrap();
    assert_eq!(left, json!([{"type": "text", "text": "hi"}, mark("a")]));
}

#[test]
fn an_answer_is_blank_when_a_reader_sees_nothing() {
    let cases = [
        (json!([]), true),
        (json!([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": " \n"}]), true),
        (json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]), true),
        (json!([{"type": "text", "text": "x"}]), false),
        (json!([{"type": "image", "source_type": "url", "url": "https://x"}]), false),
    ];
    for (blocks, blank) in cases {
        let mut message = answer(blocks.clone());
        assert!(!is_blank(&message), "it calls: {blocks}");
        take_calls(&mut message, |_| false);
        assert_eq!(is_blank(&message), blank, "{blocks}");
    }
    assert!(is_blank(&Message::ai(" ")) && !is_blank(&Message::human("")));
}

#[test]
fn who_wrote_it() {
    assert!(is_from_user(&Message::human("hi")));
    assert!(!is_from_user(&hidden("note")));
    let mut form = hidden("red");
    form.additional_kwargs.insert("human_input_response".into(), json!({"value": "red"}));
    assert!(is_from_user(&form));
    assert!(!is_from_user(&Message::ai("hi")));
}
