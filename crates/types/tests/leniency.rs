//! Odd messages: everything a client or an old store may hand us is read, and nothing is lost.

use hart_types::{Block, BlockView, Body, Content, FileSource, ImageSource, Message, ToolStatus};
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
fn files_are_found_in_every_shape_and_come_out_unchanged() {
    let pdf = "application/pdf";
    let base64 = FileSource::Base64("JVBE");
    for (block, mime, source, file_name) in [
        (
            json!({"type": "file", "source_type": "base64", "mime_type": pdf, "data": "JVBE", "filename": "a.pdf"}),
            pdf,
            base64,
            Some("a.pdf"),
        ),
        (
            json!({"type": "file", "source_type": "url", "url": "https://x/a.pdf"}),
            pdf,
            FileSource::Url("https://x/a.pdf"),
            None,
        ),
        (json!({"type": "file", "source_type": "id", "id": "file_1"}), pdf, FileSource::Id("file_1"), None),
        (
            json!({"type": "file", "source_type": "text", "mime_type": "text/csv", "text": "a,b"}),
            "text/csv",
            FileSource::Text("a,b"),
            None,
        ),
        (json!({"type": "file", "base64": "JVBE", "mime_type": pdf, "id": "lc_1"}), pdf, base64, None),
        (json!({"type": "file", "file_id": "file_1", "id": "lc_1"}), pdf, FileSource::Id("file_1"), None),
        (json!({"type": "text-plain", "text": "t"}), "text/plain", FileSource::Text("t"), None),
        (
            json!({"type": "file", "file": {"file_data": "data:text/html;base64,JVBE", "filename": "a.html"}}),
            "text/html",
            base64,
            Some("a.html"),
        ),
        (json!({"type": "file", "file": {"file_id": "file_1"}}), pdf, FileSource::Id("file_1"), None),
        (
            json!({"type": "document", "title": "A", "source": {"type": "base64", "media_type": pdf, "data": "JVBE"}}),
            pdf,
            base64,
            Some("A"),
        ),
        (
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "t"}}),
            "text/plain",
            FileSource::Text("t"),
            None,
        ),
    ] {
        let seen = Block::object(block.clone());
        assert_eq!(seen.view(), BlockView::File { mime_type: mime, source, name: file_name }, "{block}");
        assert_eq!(serde_json::to_string(&seen).unwrap(), block.to_string());
    }
    let image = Block::file_base64("image/png", "AA==", "a.png");
    let source = ImageSource::Base64 { mime_type: "image/png", data: "AA==" };
    assert_eq!(image.view(), BlockView::Image(source));
    for broken in [
        json!({"type": "file"}),
        json!({"type": "file", "source_type": "id"}),
        json!({"type": "document", "source": 3}),
    ] {
        assert!(matches!(Block::object(broken).view(), BlockView::Other(_)));
    }
}

#[test]
fn text_leaves_reasoning_out() {
    let content = Content::Blocks(vec![Block::reasoning("hm"), Block::text("a"), Block::Bare("b".into())]);
    assert_eq!(content.text(), "ab");
}
