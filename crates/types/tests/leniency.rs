//! Odd messages: everything a client or an old store may hand us is read, and nothing is lost.

use hart_types::{Block, BlockView, Body, Content, ImageSource, Message, ToolStatus};
use serde_json::{Value, json};

fn round_trip(value: Value) -> Message {
    let message: Message = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&message).unwrap(), value);
    message
}

#[test]
fn unknown_fields_and_kinds_survive() {
    round_trip(json!({"type": "human", "content": "x", "example": false, "future": {"a": [1, null]}}));
    let other = round_trip(json!({"type": "function", "content": "x", "name": "f"}));
    assert_eq!(other.body, Body::Other("function".into()));
}

#[test]
fn known_fields_of_a_strange_shape_survive() {
    let message =
        round_trip(json!({"type": "ai", "content": null, "tool_calls": "none", "usage_metadata": {"x": 1}}));
    assert!(message.tool_calls().is_empty());
    assert_eq!(message.text(), "");
    round_trip(json!({"type": "tool", "content": "x", "tool_call_id": null, "status": "odd"}));
}

#[test]
fn setting_a_field_that_was_absent_writes_it() {
    let mut message: Message =
        serde_json::from_value(json!({"type": "human", "content": "x", "name": 7})).unwrap();
    message.id = Some("m1".into());
    message.name = Some("ada".into());
    assert_eq!(
        serde_json::to_value(&message).unwrap(),
        json!({"type": "human", "content": "x", "id": "m1", "name": "ada"})
    );
}

#[test]
fn a_new_message_has_all_of_langchains_fields() {
    let message = Message::tool(&"c1".into(), "ls", ToolStatus::Success, "ok").with_id("m1");
    let expected = json!({
        "content": "ok", "additional_kwargs": {}, "response_metadata": {}, "type": "tool", "name": "ls", "id": "m1",
        "tool_call_id": "c1", "artifact": null, "status": "success",
    });
    assert_eq!(serde_json::to_string(&message).unwrap(), serde_json::to_string(&expected).unwrap());
}

#[test]
fn openai_roles_are_understood() {
    for (role, kind) in
        [("user", "human"), ("assistant", "ai"), ("system", "system"), ("developer", "system")]
    {
        let message: Message = serde_json::from_value(json!({"role": role, "content": "x"})).unwrap();
        assert_eq!(message.kind(), kind);
    }
}

#[test]
fn what_is_not_a_message_is_refused_with_a_reason() {
    let error = serde_json::from_value::<Message>(json!({"content": "x"})).unwrap_err().to_string();
    assert!(error.contains("`type`"), "{error}");
    assert!(serde_json::from_value::<Message>(json!({"type": 3})).is_err());
}

#[test]
fn images_are_found_in_every_shape() {
    let base64 = ImageSource::Base64 { mime_type: "image/png", data: "AA==" };
    let url = ImageSource::Url("https://x/y.png");
    for (block, expected) in [
        (json!({"type": "image_url", "image_url": {"url": "https://x/y.png"}}), url),
        (json!({"type": "image_url", "image_url": "https://x/y.png"}), url),
        (json!({"type": "image", "url": "https://x/y.png"}), url),
        (json!({"type": "image", "mime_type": "image/png", "base64": "AA=="}), base64),
        (json!({"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "AA=="}), base64),
        (
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}),
            base64,
        ),
    ] {
        assert_eq!(Block::object(block.clone()).view(), BlockView::Image(expected), "{block}");
    }
}

#[test]
fn text_leaves_reasoning_out() {
    let content = Content::Blocks(vec![Block::reasoning("hm"), Block::text("a"), Block::Bare("b".into())]);
    assert_eq!(content.text(), "ab");
}
