use hart_kernel::ModelErrorKind;
use hart_types::Content;
use serde_json::json;

use super::*;

fn read(events: &[Value]) -> (Vec<ChatChunk>, ResponseDecoder, Result<Progress, Fault>) {
    let mut decoder = ResponseDecoder::new("openai");
    let (mut out, mut last) = (VecDeque::new(), Ok(Progress::More));
    for event in events {
        let name = event["type"].as_str().unwrap_or("message").to_owned();
        last = decoder.event(SseEvent { event: &name, data: &event.to_string(), id: "" }, &mut out);
    }
    (out.into(), decoder, last)
}

fn decode(events: &[Value]) -> (Vec<ChatChunk>, Option<Message>) {
    let (out, mut decoder, last) = read(events);
    last.unwrap();
    (out, decoder.is_complete().then(|| decoder.take()))
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item, "sequence_number": 1})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: u64, text: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "delta": text,
        "item_id": "x", "logprobs": [], "obfuscation": "abcdef"})
}

fn completed(more: Value) -> Value {
    let mut response = json!({"id": "resp_1", "model": "gpt-5.6", "status": "completed", "error": null});
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "response.completed", "response": response})
}

fn said(chunks: &[ChatChunk]) -> (String, String, String) {
    let (mut text, mut reasoning, mut args) = (String::new(), String::new(), String::new());
    for chunk in chunks {
        match chunk {
            ChatChunk::Text(more) => text.push_str(more),
            ChatChunk::Reasoning(more) => reasoning.push_str(more),
            ChatChunk::ToolCall(call) => args.push_str(call.args.as_deref().unwrap_or_default()),
            other => panic!("{other:?}"),
        }
    }
    (text, reasoning, args)
}

fn content(message: &Message) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

#[test]
fn plain_text_is_a_string_with_counts_and_a_reason() {
    let message_item = json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi!", "annotations": [], "logprobs": []}]});
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 107});
    let (chunks, message) = decode(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5.6", "output": []}}),
        added(
            0,
            json!({"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}),
        ),
        json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0,
            "part": {"type": "output_text", "text": ""}}),
        delta("output_text", 0, "Hi"),
        json!({"type": "response.of_tomorrow.delta", "delta": {"not": "text"}, "item": 7, "response": []}),
        delta("output_text", 0, "!"),
        done(0, message_item.clone()),
        completed(json!({"output": [message_item], "usage": usage, "service_tier": "default"})),
    ]);
    assert_eq!(chunks.len(), 2);
    let message = message.unwrap();
    assert_eq!(message.content, Content::Text("Hi!".to_owned()));
    assert_eq!(
        serde_json::to_value(message.as_ai().unwrap().usage.as_ref().unwrap()).unwrap(),
        json!({"input_tokens": 100, "output_tokens": 7, "total_tokens": 107,
            "input_token_details": {"cache_read": 64}, "output_token_details": {"reasoning": 3}})
    );
    let want = json!({"finish_reason": "stop", "model_name": "gpt-5.6", "model_provider": "openai",
        "service_tier": "default", "object": "response", "status": "completed", "id": "resp_1"});
    assert_eq!(Value::Object(message.response_metadata), want);
}

#[test]
fn reasoning_items_are_kept_verbatim_before_their_calls() {
    let first = json!({"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA+/=",
        "summary": [{"type": "summary_text", "text": "One"}, {"type": "summary_text", "text": "Two"}]});
    let second = json!({"id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "gBBB"});
    let call = |n: u32, args: &str| {
        json!({"id": format!("fc_{n}"), "type": "function_call", "status": "completed", "arguments": args,
            "call_id": format!("call_{n}"), "name": "ls"})
    };
    let summary = |index: u64, part: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": index, "summary_index": part, "delta": text});
    let (chunks, message) = decode(&[
        // What the opening holds is not yet the final word.
        added(0, json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "other"})),
        summary(0, 0, "On"),
        summary(0, 0, "e"),
        summary(0, 1, "Two"),
        done(0, first.clone()),
        added(1, call(1, "")),
        delta("function_call_arguments", 1, "{\"p\":"),
        delta("function_call_arguments", 1, "1}"),
        done(1, call(1, "{\"p\":1}")),
        added(2, second.clone()),
        done(2, second.clone()),
        added(3, call(2, "")),
        delta("function_call_arguments", 3, "{ \"p\": 2 }"),
        done(3, call(2, "{ \"p\": 2 }")),
        completed(json!({})),
    ]);
    let (_, reasoning, args) = said(&chunks);
    assert_eq!((reasoning.as_str(), args.as_str()), ("One\n\nTwo", "{\"p\":1}{ \"p\": 2 }"));
    let message = message.unwrap();
    let ids: Vec<_> = message.tool_calls().iter().map(|call| call.id.clone().unwrap().to_string()).collect();
    assert_eq!(ids, ["call_1", "call_2"]);
    // The arguments are written out only where the model wrote them its own way.
    let mut plain = call(1, "");
    plain.as_object_mut().unwrap().shift_remove("arguments");
    assert_eq!(content(&message), json!([first, plain, second, call(2, "{ \"p\": 2 }")]));
    assert_eq!(message.response_metadata["finish_reason"], "tool_calls");
}

#[test]
fn calls_alone_leave_the_content_empty() {
    let call =
        json!({"id": "fc_1", "type": "function_call", "arguments": "{}", "call_id": "c1", "name": "ls"});
    let (chunks, message) = decode(&[done(0, call), completed(json!({}))]);
    assert_eq!(message.as_ref().unwrap().content, Content::default());
    assert_eq!(message.unwrap().tool_calls()[0].name, "ls");
    assert_eq!(chunks.len(), 2, "an item that was never announced is told when it is done");
}

#[test]
fn a_server_that_only_tells_the_end_is_understood() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{\"a\":1}"},
    ]);
    let (chunks, message) =
        decode(&[delta("output_text", 1, "Hel"), completed(json!({"output": output})), json!({"type": "x"})]);
    assert_eq!(said(&chunks), ("Hello".to_owned(), "hm".to_owned(), "{\"a\":1}".to_owned()));
    let message = message.unwrap();
    assert_eq!(message.text(), "Hello");
    assert_eq!(message.tool_calls()[0].args["a"], 1);
}

#[test]
fn citations_phases_refusals_and_items_of_built_in_tools_are_kept() {
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "deer", "sources": [{"type": "url", "url": "u"}]}});
    let note = json!({"type": "url_citation", "start_index": 0, "end_index": 4, "url": "u", "title": "t"});
    let text = |notes: Value| json!({"type": "output_text", "text": "Deer", "annotations": notes});
    let message_item = |content: Value| json!({"id": "msg_1", "type": "message", "role": "assistant", "phase": "commentary", "content": content});
    let noted = json!({"type": "response.output_text.annotation.added", "output_index": 1, "content_index": 0, "annotation": note});
    let refusal = json!({"type": "refusal", "refusal": "No."});
    let (chunks, message) = decode(&[
        added(0, json!({"id": "ws_1", "type": "web_search_call", "status": "in_progress"})),
        json!({"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}),
        done(0, search.clone()),
        added(1, message_item(json!([]))),
        delta("output_text", 1, "Deer"),
        noted,
        json!({"type": "response.refusal.delta", "output_index": 1, "content_index": 1, "delta": "No."}),
        // The notes came on their own; this server does not repeat them.
        done(1, message_item(json!([text(json!([])), refusal]))),
        completed(json!({})),
    ]);
    assert_eq!(said(&chunks).0, "Deer");
    let message = message.unwrap();
    let want = json!([
        search,
        {"type": "text", "text": "Deer", "annotations": [note], "id": "msg_1", "phase": "commentary"},
        {"type": "refusal", "refusal": "No.", "id": "msg_1", "phase": "commentary"},
    ]);
    assert_eq!(content(&message), want);
    assert_eq!(message.additional_kwargs["refusal"], "No.");
}

#[test]
fn why_an_answer_is_incomplete_is_told() {
    for (reason, word) in
        [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("new", "new")]
    {
        let details = json!({"reason": reason});
        let event = json!({"type": "response.incomplete", "response": {"incomplete_details": details}});
        let message = decode(&[delta("output_text", 0, "half"), event]).1.unwrap();
        assert_eq!(message.response_metadata["finish_reason"], word);
        assert_eq!(message.response_metadata["incomplete_details"], details);
        assert_eq!(message.response_metadata["status"], "incomplete");
        assert_eq!(message.text(), "half");
    }
}

#[test]
fn broken_and_nameless_calls_are_kept_as_invalid() {
    let call = |name: &str, args: &str| json!({"type": "function_call", "call_id": "c", "name": name, "arguments": args});
    let (_, message) =
        decode(&[done(0, call("ls", "{\"p\": ")), done(1, call("", "{}")), completed(json!({}))]);
    let message = message.unwrap();
    assert!(message.tool_calls().is_empty());
    let invalid = &message.as_ai().unwrap().invalid_tool_calls;
    assert_eq!(invalid[0].args.as_deref(), Some("{\"p\": "));
    assert_eq!(invalid[1].error.as_deref(), Some("the call names no tool"));
    assert_eq!(message.content, Content::default());
}

#[test]
fn what_had_come_of_a_broken_answer_is_kept() {
    let (_, mut decoder, _) = read(&[
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "th"}),
        added(1, json!({"type": "message", "id": "m", "content": []})),
        delta("output_text", 1, "ha"),
        added(2, json!({"type": "function_call", "call_id": "c", "name": "ls", "arguments": ""})),
        delta("function_call_arguments", 2, "{\"a"),
    ]);
    assert!(!decoder.is_complete());
    let message = decoder.take();
    assert_eq!(message.text(), "ha");
    assert_eq!(content(&message)[0]["summary"][0]["text"], "th");
    assert_eq!(message.as_ai().unwrap().invalid_tool_calls[0].args.as_deref(), Some("{\"a"));
    assert!(message.response_metadata.get("finish_reason").is_none());
}

#[test]
fn errors_in_every_shape_have_their_kind() {
    use ModelErrorKind::{BadRequest, ContextOverflow, Overloaded, RateLimit};
    let failed =
        |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    let overflow = ContextOverflow { limit: None, used: None };
    for (event, kind) in [
        (failed(json!({"code": "server_error", "message": "x"})), Overloaded),
        (failed(json!({"code": "rate_limit_exceeded", "message": "x"})), RateLimit),
        (failed(json!({"code": "invalid_prompt", "message": "x"})), BadRequest),
        (failed(json!({"code": "context_length_exceeded", "message": "x"})), overflow),
        (failed(json!(null)), Overloaded),
        (json!({"type": "response.failed"}), Overloaded),
        (json!({"type": "error", "code": "rate_limit_exceeded", "message": "x", "param": null}), RateLimit),
        (json!({"type": "error", "code": null, "message": "x"}), Overloaded),
        (
            json!({"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "x"}}),
            RateLimit,
        ),
        (json!({"type": "error", "error": {"type": "too_many_requests", "message": "x"}}), RateLimit),
        (json!({"error": {"type": "rate_limit_error", "message": "x"}}), RateLimit),
        (json!({"error": {"type": "invalid_request_error", "message": "x"}}), BadRequest),
    ] {
        match read(std::slice::from_ref(&event)).2 {
            Err(Fault::Provider(failure)) => assert_eq!(failure.error_kind(), kind, "{event}"),
            other => panic!("{event}: {other:?}"),
        }
    }
    let mut decoder = ResponseDecoder::new("openai");
    let nonsense = SseEvent { event: "message", data: "<html>", id: "" };
    assert!(matches!(decoder.event(nonsense, &mut VecDeque::new()), Err(Fault::Protocol(_))));
    let marker = SseEvent { event: "message", data: "[DONE]", id: "" };
    assert!(matches!(decoder.event(marker, &mut VecDeque::new()), Ok(Progress::More)));
    assert!(!decoder.is_complete());
}

#[test]
fn whatever_comes_is_decoded_or_refused_and_can_be_sent_again() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/responses");
    let words: [&[u8]; 8] =
        [b"null", b"[]", b"{}", b"\"\"", b"output_index", b"\"delta\"", b"response.", b"\n"];
    hart_testkit::fuzz::run(&corpus, 3000, 7, &words, |bytes| {
        let (mut decoder, mut out) = (ResponseDecoder::new("openai"), VecDeque::new());
        for line in String::from_utf8_lossy(bytes).lines() {
            let event = SseEvent { event: "message", data: line, id: "" };
            if !matches!(decoder.event(event, &mut out), Ok(Progress::More)) {
                break;
            }
        }
        let message = decoder.take();
        let items = super::super::items::encode(&message.content, message.as_ai().unwrap(), true, false);
        let list = format!("[{}]", String::from_utf8(items.to_vec()).unwrap());
        assert!(serde_json::from_str::<Vec<Map<String, Value>>>(&list).is_ok(), "{list}");
    });
}
