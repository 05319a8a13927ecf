//! What the server remembers, and how it chooses its turn.

use hart_testkit::{Dialect, ModelServer, ToolResult, Turn};
use serde_json::{Value, json};

use crate::client::{anthropic, asking, http, json_of, openai};

#[tokio::test]
async fn a_request_is_recorded_as_sent() {
    let server = ModelServer::start().await;
    server.push(Turn::new());
    let mut body = asking(true);
    body["tools"] = json!([{"type": "function", "function": {"name": "bash"}}]);
    body["messages"] = json!([{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]);
    openai(&server, &body).await.text().await.unwrap();
    let request = server.last_request();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.dialect(), Some(Dialect::OpenAi));
    assert_eq!(request.header("Content-Type"), Some("application/json"));
    assert_eq!(request.body, body);
    assert_eq!((request.model(), request.is_stream(), request.messages().len()), ("m", true, 2));
    assert_eq!((request.system().as_str(), request.texts_of("user")), ("be brief", vec!["hi".to_owned()]));
    assert_eq!(request.tool_names(), ["bash"]);
}

#[tokio::test]
async fn tool_results_are_found_in_both_dialects() {
    let server = ModelServer::with(|_| Turn::new()).await;
    let mut body = asking(false);
    body["messages"] = json!([
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
    ]);
    openai(&server, &body).await;
    let result = |id: &str, content: &str, is_error| ToolResult {
        call_id: id.into(),
        content: content.into(),
        is_error,
    };
    assert_eq!(server.last_request().tool_results(), [result("a", "one", false), result("b", "two", false)]);

    body["system"] = json!([{"type": "text", "text": "be brief"}]);
    body["tools"] = json!([{"name": "bash", "input_schema": {}}]);
    body["messages"] = json!([{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}], "is_error": true},
    ]}]);
    anthropic(&server, &body).await;
    let request = server.last_request();
    assert_eq!(request.dialect(), Some(Dialect::Anthropic));
    assert_eq!(request.tool_result("b"), Some(result("b", "two", true)));
    assert_eq!(request.tool_result("c"), None);
    assert_eq!((request.system().as_str(), request.tool_names()), ("be brief", vec!["bash"]));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn pushed_turns_come_before_the_responder() {
    let server = ModelServer::with(|request| Turn::new().text(request.texts_of("user").concat())).await;
    server.push_all([Turn::new().text("first")]);
    assert_eq!(server.remaining(), 1);
    let content = async || {
        json_of(openai(&server, &asking(false)).await).await["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(content().await, "first");
    assert_eq!(content().await, "hi");
    assert_eq!(server.remaining(), 0);
}

#[tokio::test]
async fn a_panic_in_the_responder_becomes_an_answer() {
    let server = ModelServer::with(|request| panic!("no turn for {}", request.model())).await;
    let response = openai(&server, &asking(true)).await;
    assert_eq!(response.status(), 500);
    assert!(json_of(response).await["error"]["message"].as_str().unwrap().contains("no turn for m"));
}

#[tokio::test]
async fn models_are_listed_in_the_dialect_of_the_asker() {
    let server = ModelServer::start().await;
    let url = format!("{}/v1/models", server.url());
    let openai: Value = json_of(http().get(&url).send().await.unwrap()).await;
    assert_eq!((&openai["object"], &openai["data"][0]["object"]), (&json!("list"), &json!("model")));
    let asked = http().get(&url).header("anthropic-version", "2023-06-01");
    assert_eq!(json_of(asked.send().await.unwrap()).await["data"][0]["type"], "model");
    let lost = http().get(format!("{}/nowhere", server.url())).send().await.unwrap();
    assert_eq!(lost.status(), 404);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_large_body_is_taken_and_an_invalid_one_refused() {
    let server = ModelServer::with(|_| Turn::new()).await;
    let mut body = asking(false);
    body["messages"][0]["content"] = json!("x".repeat(20 * 1024 * 1024));
    assert_eq!(openai(&server, &body).await.status(), 200);
    assert_eq!(server.last_request().raw.len(), body.to_string().len());
    assert_eq!(anthropic(&server, &json!("no object")).await.status(), 400);
}

#[test]
fn a_server_needs_no_runtime_of_its_caller() {
    let server = ModelServer::start_blocking();
    assert!(server.anthropic_base().starts_with("http://127.0.0.1:"));
    assert!(server.requests().is_empty());
}
