//! The OpenAI dialect, byte for byte where it matters.

use hart_testkit::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::client::{asking, json_of, openai, openai_events};

fn asking_with_usage() -> Value {
    let mut body = asking(true);
    body["stream_options"] = json!({"include_usage": true});
    body
}

#[tokio::test]
async fn a_streamed_text_has_the_documented_bytes() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("Hé"));
    let response = openai(&server, &asking(true)).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let head = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":"#;
    let expected = [
        r#"{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}"#,
        r#"{"content":"Hé"},"logprobs":null,"finish_reason":null}]}"#,
        r#"{},"logprobs":null,"finish_reason":"stop"}]}"#,
    ];
    let expected: String = expected.iter().map(|rest| format!("{head}{rest}\n\n")).collect();
    assert_eq!(response.text().await.unwrap(), format!("{expected}data: [DONE]\n\n"));
}

#[tokio::test]
async fn parallel_tool_calls_have_indices_and_fragments_that_join() {
    let args = json!({"command": "ls -la", "timeout": 5});
    let turn = Turn::new()
        .tool_call("call_1", "bash", args.clone())
        .tool_call("call_2", "read", json!({"path": "ü"}))
        .chunk_chars(3);
    let events = openai_events(turn, &asking(true)).await;
    assert_eq!(events[0].data["choices"][0]["delta"]["content"], Value::Null);
    let calls: Vec<&Value> = events
        .iter()
        .map(|e| &e.data["choices"][0]["delta"]["tool_calls"][0])
        .filter(|c| !c.is_null())
        .collect();
    let opening = json!({"index": 1, "id": "call_2", "type": "function", "function": {"name": "read", "arguments": ""}});
    assert!(calls.contains(&&opening));
    let joined = |index: u64| -> String {
        let of = calls.iter().filter(|call| call["index"] == index);
        of.map(|call| call["function"]["arguments"].as_str().unwrap()).collect()
    };
    assert_eq!(serde_json::from_str::<Value>(&joined(0)).unwrap(), args);
    assert_eq!(joined(1), r#"{"path":"ü"}"#);
    assert!(calls.iter().all(|c| c["function"]["arguments"].as_str().unwrap().chars().count() <= 3));
    assert_eq!(events[events.len() - 2].data["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn reasoning_comes_in_its_own_field_and_without_signature() {
    let turn = Turn::new().reasoning("think").signature("sig").redacted_reasoning("blob").text("answer");
    let events = openai_events(turn, &asking(true)).await;
    let deltas: Vec<_> = events.iter().map(|e| &e.data["choices"][0]["delta"]).collect();
    assert_eq!(deltas[1], &json!({"reasoning_content": "think"}));
    assert_eq!(deltas[2], &json!({"content": "answer"}));
    let events = openai_events(Turn::new().reasoning("r").reasoning_field("reasoning"), &asking(true)).await;
    assert_eq!(events[1].data["choices"][0]["delta"], json!({"reasoning": "r"}));
}

#[tokio::test]
async fn usage_is_a_last_chunk_without_choices_and_only_on_request() {
    let turn = Turn::new().text("x").usage(100, 7).cached(60).reasoning_tokens(3);
    let events = openai_events(turn.clone(), &asking_with_usage()).await;
    let chunk = &events[events.len() - 2].data;
    assert_eq!(chunk["choices"], json!([]));
    let expected = json!({
        "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 3},
    });
    assert_eq!(chunk["usage"], expected);
    assert_eq!(events[0].data["usage"], Value::Null);
    assert!(events[0].data.as_object().unwrap().contains_key("usage"));

    let unasked = openai_events(turn.clone(), &asking(true)).await;
    assert!(unasked.iter().all(|e| e.data.get("usage").is_none()));
    let careless = openai_events(turn.without_usage(), &asking_with_usage()).await;
    assert!(careless.iter().all(|e| e.data["choices"] != json!([])));
}

#[tokio::test]
async fn a_whole_message_carries_text_reasoning_calls_and_usage() {
    let server = ModelServer::start().await;
    server.push(Turn::new().reasoning("r").text("t").tool_call_raw_args("c", "bash", "{broken").usage(3, 4));
    server.push(Turn::new().tool_call("c", "bash", json!({})).stop("max_tokens"));
    let whole = json_of(openai(&server, &asking(false)).await).await;
    assert_eq!(whole["object"], "chat.completion");
    let call = json!({"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{broken"}});
    let message = json!({"role": "assistant", "content": "t", "refusal": null, "reasoning_content": "r", "tool_calls": [call]});
    assert_eq!(whole["choices"][0]["message"], message);
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(whole["usage"]["total_tokens"], 7);
    let second = json_of(openai(&server, &asking(false)).await).await;
    assert_eq!(second["choices"][0]["message"]["content"], Value::Null);
    assert_eq!(second["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn the_done_marker_can_be_missing() {
    let events = openai_events(Turn::new().text("x").without_done(), &asking(true)).await;
    assert_eq!(events.last().unwrap().data["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn an_error_can_end_the_stream() {
    let turn = Turn::new().text("x").stream_error("server_error", "boom");
    let events = openai_events(turn, &asking(true)).await;
    assert_eq!(events.last().unwrap().data["error"]["message"], "boom");
}
