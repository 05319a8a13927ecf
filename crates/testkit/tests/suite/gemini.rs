//! The Gemini dialect, byte for byte where it matters.

use hart_testkit::{BenchModel, BenchScript, Dialect, ModelServer, ToolResult, Turn};
use serde_json::{Value, json};

use crate::client::{json_of, post};

fn asking() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
}

async fn stream(base: &str, body: &Value) -> Vec<Value> {
    let url = format!("{base}/v1beta/models/m:streamGenerateContent?alt=sse");
    let text = post(url, body).await.unwrap().text().await.unwrap();
    let events = text.strip_suffix("\r\n\r\n").unwrap().split("\r\n\r\n");
    events.map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn a_streamed_answer_has_the_documented_bytes() {
    let server = ModelServer::start().await;
    server.push(
        Turn::new().reasoning("hm").signature("S1").text("Hé").tool_call("", "ls", json!({})).signature("S2"),
    );
    let url = format!("{}/v1beta/models/m:streamGenerateContent?alt=sse", server.gemini_base());
    let response = post(url, &asking()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let parts = [
        r#"{"text":"hm","thought":true}"#,
        r#"{"text":"","thought":true,"thoughtSignature":"S1"}"#,
        r#"{"text":"Hé"}"#,
        r#"{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"S2"}"#,
    ];
    let event = |part: &str, end: &str, counts: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}},\"index\":0{end}}}],\
             \"modelVersion\":\"m\",\"responseId\":\"resp-1\"{counts}}}\r\n\r\n"
        )
    };
    let counts = concat!(
        r#","usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":0,"candidatesTokenCount":5,"#,
        r#""thoughtsTokenCount":0,"totalTokenCount":15}"#
    );
    let mut expected: String = parts.iter().map(|part| event(part, "", "")).collect();
    expected.push_str(&event(r#"{"text":""}"#, r#","finishReason":"STOP""#, counts));
    assert_eq!(response.text().await.unwrap(), expected);
}

#[tokio::test]
async fn a_whole_answer_an_error_and_the_models() {
    let server = ModelServer::start().await;
    server.push(Turn::new().text("Hi").stop("length"));
    let url = format!("{}/v1beta/models/m:generateContent", server.gemini_base());
    let whole = json_of(post(url.clone(), &asking()).await.unwrap()).await;
    assert_eq!(whole["candidates"][0]["content"]["parts"], json!([{"text": "Hi"}]));
    assert_eq!(whole["candidates"][0]["finishReason"], "MAX_TOKENS");
    server.push(Turn::status(429).message("slow"));
    let error = json_of(post(url, &asking()).await.unwrap()).await;
    assert_eq!(error, json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}));
}

#[tokio::test]
async fn a_request_is_understood() {
    let server = ModelServer::start().await;
    server.push(Turn::new());
    let body = json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [{"name": "ls"}, {"name": "cat"}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}, "id": "a"}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "ls", "response": {"output": "one"}, "id": "a"}},
                {"functionResponse": {"name": "cat", "response": {"error": "two"}}},
            ]},
        ],
    });
    stream(&server.gemini_base(), &body).await;
    let request = server.last_request();
    assert_eq!((request.dialect(), request.model(), request.is_stream()), (Some(Dialect::Gemini), "m", true));
    assert_eq!((request.system().as_str(), request.tool_names()), ("be brief", vec!["ls", "cat"]));
    assert_eq!(request.texts_of("user")[0], "hi");
    let result =
        |id: &str, text: &str, is_error| ToolResult { call_id: id.into(), content: text.into(), is_error };
    assert_eq!(request.tool_results(), [result("a", "one", false), result("", "two", true)]);
}

#[tokio::test]
async fn a_benchmark_counts_its_results() {
    let model = BenchModel::start(BenchScript { turns: 1, parallel: 2, tokens: 2, ..BenchScript::default() });
    let mut body = asking();
    let calls = stream(&model.url(), &body).await;
    assert!(calls[1]["candidates"][0]["content"]["parts"][0]["functionCall"].is_object());
    let part = |key: &str| json!({key: {"name": "noop", "args": {}, "response": {}}});
    let more = [
        json!({"role": "model", "parts": [part("functionCall"), part("functionCall")]}),
        json!({"role": "user", "parts": [part("functionResponse"), part("functionResponse")]}),
    ];
    body["contents"].as_array_mut().unwrap().extend(more);
    let answer = stream(&model.url(), &body).await;
    assert_eq!(answer[1]["candidates"][0]["content"]["parts"][0]["text"], "tok1 ");
}
