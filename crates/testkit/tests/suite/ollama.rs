//! The Ollama dialect, byte for byte where it matters.

use hart_testkit::{Dialect, ModelServer, Turn};
use serde_json::json;

use crate::client::{asking, json_of, post};

#[tokio::test]
async fn a_streamed_answer_has_the_documented_bytes() {
    let server = ModelServer::start().await;
    server.push(Turn::new().reasoning("hm").text("Hé").tool_call("", "ls", json!({"p": 1})).usage(7, 3));
    let response = post(format!("{}/api/chat", server.ollama_base()), &asking(true)).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let messages = [
        r#"{"role":"assistant","content":"","thinking":"hm"}"#,
        r#"{"role":"assistant","content":"Hé"}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"ls","arguments":{"p":1}}}]}"#,
    ];
    let line = |message: &str, end: &str| {
        format!(
            "{{\"model\":\"m\",\"created_at\":\"2023-11-14T22:13:20Z\",\"message\":{message},\"done\":{end}}}\n"
        )
    };
    let mut expected: String = messages.iter().map(|message| line(message, "false")).collect();
    let end = r#"true,"done_reason":"stop","total_duration":1000000,"prompt_eval_count":7,"eval_count":3"#;
    expected.push_str(&line(r#"{"role":"assistant","content":""}"#, end));
    assert_eq!(response.text().await.unwrap(), expected);
    let request = server.last_request();
    assert_eq!((request.dialect(), request.is_stream()), (Some(Dialect::Ollama), true));
}

#[tokio::test]
async fn a_whole_answer_and_an_error_have_their_shape() {
    let server = ModelServer::start().await;
    let url = format!("{}/api/chat", server.ollama_base());
    server.push(Turn::new().text("Hi").tool_call("c1", "ls", json!({})).stop("max_tokens"));
    let whole = json_of(post(url.clone(), &asking(false)).await.unwrap()).await;
    let call = json!({"function": {"index": 0, "name": "ls", "arguments": {}}, "id": "c1"});
    assert_eq!(whole["message"], json!({"role": "assistant", "content": "Hi", "tool_calls": [call]}));
    assert_eq!((&whole["done"], &whole["done_reason"]), (&json!(true), &json!("length")));
    server.push(Turn::status(404).message("model not found"));
    assert_eq!(json_of(post(url, &asking(true)).await.unwrap()).await, json!({"error": "model not found"}));
}
