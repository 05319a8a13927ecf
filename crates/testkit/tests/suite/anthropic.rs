//! The Anthropic dialect, byte for byte where it matters.

use hart_testkit::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::client::{anthropic, anthropic_events, asking, json_of};

#[tokio::test]
async fn a_streamed_turn_has_every_event_in_order() {
    let turn = Turn::new()
        .reasoning("think")
        .signature("sig")
        .redacted_reasoning("blob")
        .text("Hi")
        .tool_call("toolu_1", "bash", json!({"command": "ls"}))
        .usage(100, 7)
        .cached(60)
        .cache_written(30);
    let events = anthropic_events(turn, &asking(true)).await;
    assert!(events.iter().all(|event| event.name.as_deref() == event.data["type"].as_str()));
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 1},
    });
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let expected = [
        json!({"type": "message_start", "message": message}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "think"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "blob"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Hi"})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": r#"{"command":"ls"}"#})),
        stop(3),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ];
    let data: Vec<_> = events.into_iter().map(|event| event.data).collect();
    assert_eq!(data, expected);
}

#[tokio::test]
async fn an_event_is_two_lines_and_a_blank_one() {
    let server = ModelServer::start().await;
    server.push(Turn::new());
    let text = anthropic(&server, &asking(true)).await.text().await.unwrap();
    assert!(text.contains("event: ping\ndata: {\"type\":\"ping\"}\n\n"));
    assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
}

#[tokio::test]
async fn broken_arguments_are_streamed_as_they_are() {
    let turn = Turn::new().tool_call_raw_args("t", "bash", "{\"a\": tru").chunk_chars(4);
    let events = anthropic_events(turn, &asking(true)).await;
    let joined: String = events.iter().filter_map(|e| e.data["delta"]["partial_json"].as_str()).collect();
    assert_eq!(joined, "{\"a\": tru");
}

#[tokio::test]
async fn stop_words_are_translated_and_unknown_ones_kept() {
    for (said, sent) in [("length", "max_tokens"), ("end_turn", "end_turn"), ("pause_turn", "pause_turn")] {
        let events = anthropic_events(Turn::new().text("x").stop(said), &asking(true)).await;
        assert_eq!(events[events.len() - 2].data["delta"]["stop_reason"], sent);
    }
}

#[tokio::test]
async fn a_whole_message_carries_its_blocks() {
    let server = ModelServer::start().await;
    server.push(Turn::new().reasoning("r").signature("s").text("t").tool_call("c", "bash", json!({"a": 1})));
    let whole = json_of(anthropic(&server, &asking(false)).await).await;
    let content = json!([
        {"type": "thinking", "thinking": "r", "signature": "s"},
        {"type": "text", "text": "t"},
        {"type": "tool_use", "id": "c", "name": "bash", "input": {"a": 1}},
    ]);
    assert_eq!(whole["content"], content);
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["usage"]["output_tokens"], 5);
}

#[tokio::test]
async fn an_error_can_end_the_stream() {
    let turn = Turn::new().text("x").stream_error("overloaded_error", "Overloaded");
    let events = anthropic_events(turn, &asking(true)).await;
    let last = events.last().unwrap();
    assert_eq!(last.name.as_deref(), Some("error"));
    assert_eq!(last.data["error"]["type"], "overloaded_error");
}
