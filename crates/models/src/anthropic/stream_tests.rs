use serde_json::json;

use super::*;

fn decode(events: &[Value]) -> (Vec<ChatChunk>, Option<Message>) {
    let mut decoder = MessagesDecoder::new("anthropic");
    let mut out = VecDeque::new();
    for event in events {
        let name = event["type"].as_str().unwrap().to_owned();
        decoder.event(SseEvent { event: &name, data: &event.to_string(), id: "" }, &mut out).unwrap();
    }
    (out.into(), decoder.is_complete().then(|| decoder.take()))
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}})
}

#[test]
fn plain_text_is_a_string_and_counts_include_the_cache() {
    let (chunks, message) = decode(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude", "role": "assistant", "content": [],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 1,
                "cache_creation": {"ephemeral_5m_input_tokens": 30}}}}),
        start(0, json!({"type": "text", "text": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "text_delta", "text": "Hi"})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "event_of_tomorrow", "x": 1}),
        stop("end_turn"),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(chunks.len(), 1);
    let message = message.unwrap();
    assert_eq!(message.content, Content::Text("Hi".to_owned()));
    let usage = serde_json::to_value(message.as_ai().unwrap().usage.as_ref().unwrap()).unwrap();
    let details = json!({"cache_read": 200, "cache_creation": 30, "ephemeral_5m_input_tokens": 30});
    assert_eq!(
        usage,
        json!({"input_tokens": 240, "output_tokens": 9, "total_tokens": 249, "input_token_details": details})
    );
    let want = json!({"stop_reason": "end_turn", "model_name": "claude", "model_provider": "anthropic", "id": "msg_1"});
    assert_eq!(Value::Object(message.response_metadata.clone()), want);
}

#[test]
fn thinking_is_kept_with_its_signature_in_order() {
    let (chunks, message) = decode(&[
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see"})),
        delta(0, json!({"type": "signature_delta", "signature": "EqQB+/="})),
        start(1, json!({"type": "redacted_thinking", "data": "opaque=="})),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Done"})),
        start(3, json!({"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"p\": 1"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "}"})),
        stop("tool_use"),
    ]);
    let message = message.unwrap();
    let want = json!([
        {"type": "thinking", "thinking": "Let me see", "signature": "EqQB+/="},
        {"type": "redacted_thinking", "data": "opaque=="},
        {"type": "text", "text": "Done"},
    ]);
    assert_eq!(serde_json::to_value(&message.content).unwrap(), want);
    assert_eq!(message.tool_calls()[0].args["p"], 1);
    let calls = chunks.iter().filter(|chunk| matches!(chunk, ChatChunk::ToolCall(_))).count();
    assert_eq!(calls, 3);
}

#[test]
fn a_call_followed_by_text_leaves_its_mark() {
    let (_, message) = decode(&[
        start(0, json!({"type": "tool_use", "id": "t1", "name": "ls", "input": {"whole": true}})),
        start(1, json!({"type": "text", "text": "after"})),
        stop("tool_use"),
    ]);
    let message = message.unwrap();
    assert_eq!(message.tool_calls()[0].args["whole"], true);
    let kinds: Vec<_> = serde_json::to_value(&message.content).unwrap().as_array().unwrap().clone();
    assert_eq!((&kinds[0]["type"], &kinds[1]["text"]), (&json!("tool_use"), &json!("after")));
}

#[test]
fn citations_server_tools_and_unknown_blocks_are_kept() {
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u", "encrypted_content": "e"}]});
    let (_, message) = decode(&[
        start(0, json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"})),
        start(1, result.clone()),
        start(2, json!({"type": "text", "text": "", "citations": []})),
        delta(2, json!({"type": "text_delta", "text": "said"})),
        delta(
            2,
            json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "c"}}),
        ),
        start(3, json!({"type": "dream", "story": "once "})),
        delta(3, json!({"type": "dream_delta", "story": "upon", "depth": 2})),
        stop("end_turn"),
    ]);
    let want = json!([
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        result,
        {"type": "text", "text": "said", "citations": [{"type": "char_location", "cited_text": "c"}]},
        {"type": "dream", "story": "once upon", "depth": 2},
    ]);
    assert_eq!(serde_json::to_value(&message.unwrap().content).unwrap(), want);
}

#[test]
fn broken_input_is_an_invalid_call() {
    let (_, message) = decode(&[
        start(0, json!({"type": "tool_use", "id": "t1", "name": "ls", "input": {}})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"p\": "})),
        stop("max_tokens"),
    ]);
    let invalid = message.unwrap().as_ai().unwrap().invalid_tool_calls.clone();
    assert_eq!(invalid[0].args.as_deref(), Some("{\"p\": "));
    assert_eq!(invalid[0].id.as_ref().unwrap().as_str(), "t1");
}

#[test]
fn without_a_stop_reason_it_is_not_whole() {
    assert!(decode(&[start(0, json!({"type": "text", "text": "half"}))]).1.is_none());
    assert!(decode(&[json!({"type": "message_stop"})]).1.is_some());
}
