use serde_json::json;

use super::*;

/// Feeds the events and gives back the fragments and the message.
fn decode(events: &[Value]) -> (Vec<ChatChunk>, Option<Message>) {
    let mut decoder = ChatDecoder::new("test");
    let mut out = VecDeque::new();
    for event in events {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        decoder.event(SseEvent { event: "message", data: &data, id: "" }, &mut out).unwrap();
    }
    (out.into(), decoder.is_complete().then(|| decoder.take()))
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn calls(deltas: &[Value]) -> Message {
    let mut events: Vec<Value> = deltas.iter().map(|call| delta(json!({"tool_calls": [call]}))).collect();
    events.push(json!("[DONE]"));
    decode(&events).1.unwrap()
}

fn names_and_args(message: &Message) -> Vec<(String, String)> {
    let calls = message.tool_calls().iter();
    calls.map(|call| (call.name.clone(), Value::Object(call.args.clone()).to_string())).collect()
}

fn pair(name: &str, args: &str) -> (String, String) {
    (name.to_owned(), args.to_owned())
}

#[test]
fn text_metadata_and_counts() {
    let (chunks, message) = decode(&[
        json!({"id": "c1", "model": "gpt-x", "system_fingerprint": "fp", "choices": [{"delta": {"role": "assistant", "content": ""}}], "usage": null}),
        delta(json!({"content": "Hel\u{1F98C}"})),
        delta(json!({"content": "lo", "brand_new": [1, {"a": 2}]})),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {
            "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 3},
        }}),
        json!("[DONE]"),
    ]);
    let message = message.unwrap();
    assert_eq!(chunks.len(), 2);
    assert_eq!(message.content, Content::Text("Hel\u{1F98C}lo".to_owned()));
    let want = json!({"finish_reason": "stop", "model_name": "gpt-x", "model_provider": "test", "system_fingerprint": "fp", "id": "c1"});
    assert_eq!(Value::Object(message.response_metadata.clone()), want);
    let usage = serde_json::to_value(message.as_ai().unwrap().usage.as_ref().unwrap()).unwrap();
    let want = json!({
        "input_tokens": 100, "output_tokens": 7, "total_tokens": 107,
        "input_token_details": {"cache_read": 64}, "output_token_details": {"reasoning": 3},
    });
    assert_eq!(usage, want);
}

#[test]
fn cached_tokens_in_other_spellings() {
    let spellings = [
        json!({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 5}),
        json!({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 5}),
    ];
    for usage in spellings {
        let last = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}], "usage": {}});
        let message = decode(&[last]).1.unwrap();
        let usage = message.as_ai().unwrap().usage.clone().unwrap();
        assert_eq!(usage.input_token_details.unwrap().cache_read, Some(5));
        assert_eq!(usage.total_tokens, 10);
    }
}

#[test]
fn reasoning_in_either_field_and_in_parts() {
    for field in ["reasoning_content", "reasoning"] {
        let (chunks, message) = decode(&[
            delta(json!({field: "hm "})),
            delta(json!({field: "so"})),
            delta(json!({"content": "A"})),
            json!("[DONE]"),
        ]);
        assert!(matches!(&chunks[0], ChatChunk::Reasoning(text) if text == "hm "));
        assert_eq!(
            message.unwrap().content,
            Content::Blocks(vec![Block::reasoning("hm so"), Block::text("A")])
        );
    }
    let parts = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "A"},
    ]});
    let message = decode(&[delta(parts), json!("[DONE]")]).1.unwrap();
    assert_eq!(message.content, Content::Blocks(vec![Block::reasoning("hm"), Block::text("A")]));
}

#[test]
fn parallel_calls_interleaved() {
    let message = calls(&[
        json!({"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}}),
        json!({"index": 1, "id": "b", "type": "function", "function": {"name": "cat", "arguments": "{\"p\":"}}),
        json!({"index": 0, "function": {"arguments": "{}"}}),
        json!({"index": 1, "function": {"arguments": "1}"}}),
    ]);
    assert_eq!(names_and_args(&message), [pair("ls", "{}"), pair("cat", "{\"p\":1}")]);
    assert_eq!(message.tool_calls()[1].id.as_ref().unwrap().as_str(), "b");
}

#[test]
fn servers_that_leave_out_the_index() {
    let message = calls(&[
        json!({"id": "a", "function": {"name": "ls", "arguments": "{\"x\""}}),
        json!({"function": {"arguments": ":1}"}}),
        json!({"id": "b", "function": {"name": "ls", "arguments": "{}"}}),
    ]);
    assert_eq!(names_and_args(&message), [pair("ls", "{\"x\":1}"), pair("ls", "{}")]);
}

#[test]
fn servers_that_repeat_id_and_name_with_every_fragment() {
    let message = calls(&[
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"x\""}}),
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": ":1"}}),
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": "}"}}),
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}}),
    ]);
    assert_eq!(names_and_args(&message), [pair("ls", "{\"x\":1}")]);
}

#[test]
fn servers_that_number_every_call_zero() {
    let with_ids = calls(&[
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}),
        json!({"index": 0, "id": "b", "function": {"name": "cat", "arguments": "{}"}}),
    ]);
    assert_eq!(names_and_args(&with_ids), [pair("ls", "{}"), pair("cat", "{}")]);
    let without = calls(&[
        json!({"index": 0, "function": {"name": "ls", "arguments": "{}"}}),
        json!({"index": 0, "function": {"name": "ls", "arguments": "{\"a\":1}"}}),
    ]);
    assert_eq!(names_and_args(&without), [pair("ls", "{}"), pair("ls", "{\"a\":1}")]);
    let ids: Vec<_> = without.tool_calls().iter().map(|call| call.id.clone().unwrap()).collect();
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.as_str().starts_with("call_")));
}

#[test]
fn arguments_as_an_object_null_or_nothing() {
    let message = calls(&[
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": {"p": [1, 2]}}}),
        json!({"index": 1, "id": "b", "function": {"name": "ls", "arguments": null}}),
        json!({"index": 2, "id": "c", "function": {"name": "ls"}}),
    ]);
    assert_eq!(names_and_args(&message), [pair("ls", "{\"p\":[1,2]}"), pair("ls", "{}"), pair("ls", "{}")]);
}

#[test]
fn broken_and_nameless_calls_are_kept_as_invalid() {
    let message = calls(&[
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"p\": "}}),
        json!({"index": 1, "id": "b", "function": {"name": "", "arguments": "{}"}}),
        json!({"index": 2, "id": "c", "function": {"name": "ls", "arguments": "[1]"}}),
    ]);
    assert!(message.tool_calls().is_empty());
    let invalid = &message.as_ai().unwrap().invalid_tool_calls;
    assert_eq!(invalid[0].args.as_deref(), Some("{\"p\": "));
    assert!(invalid[0].error.as_ref().unwrap().contains("not valid JSON: EOF"));
    assert_eq!(invalid[1].error.as_deref(), Some("the call names no tool"));
    assert!(invalid[2].error.as_ref().unwrap().contains("found an array"));
}

#[test]
fn fragments_carry_position_and_the_id_once() {
    let (chunks, _) = decode(&[
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": ""}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
    ]);
    let told: Vec<_> = chunks
        .iter()
        .map(|chunk| match chunk {
            ChatChunk::ToolCall(call) => serde_json::to_value(call).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told[0], json!({"name": "ls", "args": "", "id": "a", "index": 0, "type": "tool_call_chunk"}));
    assert_eq!(
        told[1],
        json!({"name": null, "args": "{}", "id": null, "index": 0, "type": "tool_call_chunk"})
    );
}

#[test]
fn signatures_of_other_providers_are_kept() {
    let signed = json!({"google": {"thought_signature": "c2ln"}});
    let message = calls(&[
        json!({"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}, "extra_content": signed}),
    ]);
    assert_eq!(message.tool_calls()[0].extra["extra_content"], signed);
    let details =
        json!({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]});
    let message = decode(&[delta(details), json!("[DONE]")]).1.unwrap();
    let block = serde_json::to_value(&message.content).unwrap();
    assert_eq!(block[0]["reasoning_details"][0]["data"], "x");
}

#[test]
fn an_answer_is_whole_only_with_a_reason_or_the_end_marker() {
    assert!(decode(&[delta(json!({"content": "half"}))]).1.is_none());
    assert!(
        decode(&[delta(json!({"content": "x"})), json!({"choices": [{"finish_reason": ""}]})]).1.is_none()
    );
    assert!(decode(&[json!({"choices": [{"delta": null, "finish_reason": "length"}]})]).1.is_some());
}

#[test]
fn an_error_object_ends_the_stream() {
    let mut decoder = ChatDecoder::new("test");
    let data = r#"{"error":{"message":"boom","type":"server_error","code":null}}"#;
    let fault = decoder.event(SseEvent { event: "message", data, id: "" }, &mut VecDeque::new());
    assert!(matches!(fault, Err(Fault::Provider(_))));
    let fault = decoder.event(SseEvent { event: "message", data: "nonsense", id: "" }, &mut VecDeque::new());
    assert!(matches!(fault, Err(Fault::Protocol(_))));
}
