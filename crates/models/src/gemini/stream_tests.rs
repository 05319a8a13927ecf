use hart_kernel::ModelErrorKind;

use super::*;

fn feed(events: &[Value]) -> (GeminiDecoder, VecDeque<ChatChunk>, Option<Fault>) {
    let mut decoder = GeminiDecoder::new("gemini");
    let mut out = VecDeque::new();
    for event in events {
        let data = event.to_string();
        if let Err(fault) = decoder.event(SseEvent { event: "message", data: &data, id: "" }, &mut out) {
            return (decoder, out, Some(fault));
        }
    }
    (decoder, out, None)
}

fn decode(events: &[Value]) -> (VecDeque<ChatChunk>, Message) {
    let (mut decoder, out, fault) = feed(events);
    assert!(fault.is_none(), "{fault:?}");
    assert!(decoder.is_complete());
    (out, decoder.take())
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn stop(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}]})
}

#[test]
fn a_recorded_answer() {
    // As the API sent it, but for the length of the signature.
    let (chunks, message) = decode(&[
        json!({"candidates": [{"content": {"parts": [{"text": "**Checking**\n\n", "thought": true}], "role": "model"}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 60, "totalTokenCount": 91, "thoughtsTokenCount": 31}, "modelVersion": "gemini-2.5-flash", "responseId": "abc"}),
        json!({"candidates": [{"content": {"parts": [{"text": "It is "}], "role": "model"}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 60, "candidatesTokenCount": 3, "totalTokenCount": 94, "thoughtsTokenCount": 31}}),
        json!({"candidates": [{"content": {"parts": [{"text": "sunny."}], "role": "model"}, "index": 0}]}),
        json!({"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "CiQB+/=="}], "role": "model"}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 60, "candidatesTokenCount": 7, "totalTokenCount": 98, "thoughtsTokenCount": 31,
                "cachedContentTokenCount": 40, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 60}]}}),
    ]);
    assert_eq!(chunks.len(), 3);
    let want = json!([
        {"type": "reasoning", "reasoning": "**Checking**\n\n"},
        {"type": "text", "text": "It is sunny."},
        {"type": "text", "text": "", "thoughtSignature": "CiQB+/=="},
    ]);
    assert_eq!(serde_json::to_value(&message.content).unwrap(), want);
    assert_eq!(message.text(), "It is sunny.");
    let usage = serde_json::to_value(message.as_ai().unwrap().usage.as_ref().unwrap()).unwrap();
    let want = json!({"input_tokens": 60, "output_tokens": 38, "total_tokens": 98,
        "input_token_details": {"cache_read": 40}, "output_token_details": {"reasoning": 31}});
    assert_eq!(usage, want);
    let want = json!({"finish_reason": "STOP", "model_name": "gemini-2.5-flash", "model_provider": "gemini", "id": "abc"});
    assert_eq!(Value::Object(message.response_metadata.clone()), want);
}

#[test]
fn a_signed_part_is_never_joined_with_another() {
    let (_, message) = decode(&[
        parts(json!([{"text": "a"}, {"text": "b", "thoughtSignature": "S1"}, {"text": "c"}])),
        parts(json!([{"text": "d"}, {"text": "", "thought": true}, {"text": "e"}])),
        stop("STOP"),
    ]);
    let want = json!([
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "thoughtSignature": "S1"},
        {"type": "text", "text": "cde"},
    ]);
    assert_eq!(serde_json::to_value(&message.content).unwrap(), want);
}

#[test]
fn calls_keep_their_ids_signatures_and_places() {
    let (chunks, message) = decode(&[
        parts(json!([
            {"functionCall": {"name": "ls", "args": {"z": 1, "a": 2}, "id": "f1"}, "thoughtSignature": "S1"},
            {"functionCall": {"name": "now"}},
            {"text": "after"},
            {"functionCall": {"name": "cat", "args": null}},
        ])),
        stop("STOP"),
    ]);
    let calls = message.tool_calls();
    assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["ls", "now", "cat"]);
    assert_eq!((calls[0].id.as_ref().unwrap().as_str(), &calls[0].extra[SIGNATURE]), ("f1", &json!("S1")));
    assert_eq!(Value::Object(calls[0].args.clone()).to_string(), r#"{"z":1,"a":2}"#);
    let made_up = calls[1].id.as_ref().unwrap().as_str();
    assert!(made_up.starts_with(MADE_UP_ID) && calls[2].id != calls[1].id);
    let want = json!([
        {"type": "tool_use", "id": "f1", "name": "ls", "input": {}},
        {"type": "tool_use", "id": made_up, "name": "now", "input": {}},
        {"type": "text", "text": "after"},
    ]);
    assert_eq!(serde_json::to_value(&message.content).unwrap(), want);
    let told: Vec<_> = chunks.iter().filter(|chunk| matches!(chunk, ChatChunk::ToolCall(_))).collect();
    assert_eq!(told.len(), 3);
}

#[test]
fn images_can_be_shown_and_unknown_parts_are_kept() {
    let (_, message) = decode(&[
        parts(json!([
            {"inlineData": {"mimeType": "image/png", "data": "QQ=="}, "thoughtSignature": "S"},
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"dream": 1, "thoughtSignature": "T"},
        ])),
        stop("STOP"),
    ]);
    let want = json!([
        {"type": "image", "mime_type": "image/png", "base64": "QQ==", "thoughtSignature": "S"},
        {"type": "gemini_part", "part": {"executableCode": {"language": "PYTHON", "code": "1"}}},
        {"type": "gemini_part", "part": {"dream": 1, "thoughtSignature": "T"}},
    ]);
    assert_eq!(serde_json::to_value(&message.content).unwrap(), want);
}

fn kind(fault: Option<Fault>) -> (ModelErrorKind, String) {
    match fault {
        Some(Fault::Provider(failure)) => {
            let error = failure.into_error("m", None);
            (error.kind, error.message.clone())
        }
        Some(Fault::Protocol(message)) => (ModelErrorKind::Malformed, message),
        None => panic!("no fault"),
    }
}

#[test]
fn what_was_filtered_is_an_error_or_a_refusal() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}});
    let want = (ModelErrorKind::ContentFilter, "it blocked the prompt for PROHIBITED_CONTENT".to_owned());
    assert_eq!(kind(feed(&[blocked]).2), want);
    // Ratings alone are no block.
    let rated = json!({"promptFeedback": {"safetyRatings": []}});
    assert!(feed(&[rated]).2.is_none());

    for reason in FILTERED {
        let told = kind(feed(&[parts(json!([{"text": "hm", "thought": true}])), stop(reason)]).2);
        assert_eq!(told, (ModelErrorKind::ContentFilter, format!("it stopped for {reason}")));
    }
    let (_, message) = decode(&[
        parts(json!([{"text": "Once upon"}])),
        json!({"candidates": [{"finishReason": "RECITATION", "finishMessage": "too close to a book"}]}),
    ]);
    assert_eq!(message.text(), "Once upon");
    assert_eq!(message.additional_kwargs["refusal"], "too close to a book");
    assert_eq!(message.response_metadata["finish_reason"], "RECITATION");
}

#[test]
fn a_malformed_call_comes_back_to_the_model() {
    let message = "Malformed function call: print(default_api.write_file(path='a'";
    let (chunks, message) =
        decode(&[json!({"candidates": [{"finishReason": MALFORMED_CALL, "finishMessage": message}]})]);
    let invalid = &message.as_ai().unwrap().invalid_tool_calls[0];
    assert_eq!(invalid.name.as_deref(), Some("write_file"));
    assert!(invalid.args.as_deref().unwrap().contains("path='a'"));
    assert_eq!(chunks.len(), 1);
}

#[test]
fn an_end_without_an_answer_can_be_asked_again_and_with_one_is_an_end() {
    for reason in BROKEN {
        assert_eq!(kind(feed(&[stop(reason)]).2).0, ModelErrorKind::Malformed);
        assert_eq!(decode(&[parts(json!([{"text": "x"}])), stop(reason)]).1.text(), "x");
    }
    for reason in ["STOP", "MAX_TOKENS", "A_REASON_OF_TOMORROW"] {
        assert_eq!(decode(&[stop(reason)]).1.response_metadata["finish_reason"], reason);
    }
    assert!(!feed(&[parts(json!([{"text": "half"}]))]).0.is_complete());
}

#[test]
fn an_error_in_the_stream_has_its_kind() {
    let error =
        json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    assert_eq!(kind(feed(&[error]).2), (ModelErrorKind::Overloaded, "The model is overloaded.".to_owned()));
}

#[test]
fn odd_shapes_are_survived() {
    for odd in [
        json!({}),
        json!({"candidates": null}),
        json!({"candidates": [{"content": {}}]}),
        json!({"candidates": [{"content": {"parts": null}}]}),
    ] {
        assert!(feed(std::slice::from_ref(&odd)).2.is_none(), "{odd}");
    }
    assert!(feed(&[parts(json!([{"text": 7}]))]).2.is_some());
}
