//! Where a request to Anthropic is marked for its cache.

use std::sync::Arc;

use hart_kernel::{ChatModel, ChatRequest};
use hart_models::{Dialect, build};
use hart_testkit::{ModelServer, Turn};
use hart_types::{Block, Message, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use crate::support::{ask, config, http, human, request, tool};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn caching(server: &ModelServer, more: Value) -> Arc<dyn ChatModel> {
    let mut all = json!({"prompt_caching": true});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    build(&config(server, Dialect::Anthropic, all), &http())
}

fn first() -> ChatRequest {
    let mut request = human("look around");
    request.system = Some("Be brief.".into());
    request.tools = [tool("ls"), tool("cat")].into();
    request
}

/// What was sent last, as text.
async fn sent(server: &ModelServer, model: &dyn ChatModel, request: &ChatRequest) -> String {
    server.push(Turn::new().text("ok"));
    ask(model, request.clone()).await;
    String::from_utf8(server.last_request().raw.to_vec()).unwrap()
}

#[tokio::test]
async fn it_is_on_unless_switched_off() {
    let server = ModelServer::start().await;
    let entry = |more: Value| {
        let mut entry = json!({"use": "anthropic", "model": "m", "base_url": server.anthropic_base()});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(entry).unwrap()
    };
    let marked = |more: Value| hart_models::ModelConfig::resolve(entry(more), &|_| None).unwrap();
    assert!(marked(json!({})).prompt_caching);
    assert!(!marked(json!({"enable_prompt_caching": false})).prompt_caching);
    for (more, marks) in [(json!({}), 3), (json!({"prompt_caching": false}), 0)] {
        let model = build(&marked(more), &http());
        assert_eq!(sent(&server, &*model, &first()).await.matches(MARK).count(), marks);
    }
    let own = caching(&server, json!({"extra_body": {"cache_control": {"type": "ephemeral"}}}));
    assert!(!sent(&server, &*own, &first()).await.contains("\"},\"cache_control\""));
    assert_eq!(sent(&server, &*own, &first()).await.matches("cache_control").count(), 1);
}

#[tokio::test]
async fn the_marks_move_and_nothing_else_changes() {
    let server = ModelServer::start().await;
    let (model, fresh) = (caching(&server, json!({})), |server: &ModelServer| caching(server, json!({})));
    let plain = build(&config(&server, Dialect::Anthropic, json!({})), &http());
    let mut asked = first();
    let mut before = String::new();
    for round in 0..6 {
        let body = sent(&server, &*model, &asked).await;
        assert_eq!(body, sent(&server, &*fresh(&server), &asked).await, "kept bytes carry no mark");
        let without = body.replace(MARK, "");
        assert_eq!(without, sent(&server, &*plain, &asked).await, "only the marks are added");
        assert_eq!(body.matches(MARK).count(), if round == 0 { 3 } else { 4 });
        let messages = server.last_request().messages().to_vec();
        assert_eq!(messages.len(), 1 + 2 * round);
        let parsed: Value = serde_json::from_str(&body).unwrap();
        let marked = |message: &Value| {
            message["content"].as_array().unwrap().last().unwrap()["cache_control"].is_object()
        };
        let messages = parsed["messages"].as_array().unwrap();
        let at: Vec<usize> = (0..messages.len()).filter(|at| marked(&messages[*at])).collect();
        let last = messages.len() - 1;
        assert_eq!(at, if round == 0 { vec![0] } else { vec![last - 2, last] });
        if round > 0 {
            let common = before.bytes().zip(without.bytes()).take_while(|(a, b)| a == b).count();
            assert!(
                before.get(common..).unwrap().starts_with("],\"stream\""),
                "the last request is the start of this one"
            );
        }
        before = without;

        server.push(
            Turn::new()
                .reasoning("hm")
                .signature("c2ln")
                .tool_call(format!("c{round}"), "ls", json!({"path": "/"}))
                .tool_call(format!("d{round}"), "ls", json!({"path": "/a"})),
        );
        let answer = ask(&*model, asked.clone()).await;
        asked.messages.push(answer.into());
        for id in ["c", "d"] {
            let id = ToolCallId::from(format!("{id}{round}").as_str());
            asked.messages.push(Message::tool(&id, "ls", ToolStatus::Success, "a.txt").into());
        }
    }
}

#[tokio::test]
async fn there_are_never_more_than_four() {
    let server = ModelServer::start().await;
    let more = json!({"extra_body": {"tools": [{"type": "web_search_20250305", "name": "web_search", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}});
    let model = caching(&server, more);
    let marked = |text: &str| {
        Block::object(json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}))
    };
    let document = Block::object(json!({
        "type": "document", "cache_control": {"type": "ephemeral"},
        "source": {"type": "text", "media_type": "text/plain", "data": "t"},
    }));
    let mut asked = request([
        Message::human(vec![marked("a"), document]),
        Message::ai(vec![marked("b")]),
        Message::human(vec![marked("c")]),
        Message::ai(vec![marked("d")]),
        Message::human(vec![marked("e")]),
    ]);
    asked.system = Some("S".into());
    let body = sent(&server, &*model, &asked).await;
    assert_eq!(body.matches("cache_control").count(), 4, "{body}");
    assert!(body.contains(r#""ttl":"1h""#));
}

#[tokio::test]
async fn a_conversation_that_ends_with_the_model_is_marked_at_what_the_user_said() {
    let server = ModelServer::start().await;
    let model = caching(&server, json!({}));
    let asked = request([Message::human("count: 1"), Message::ai("2")]);
    let body = sent(&server, &*model, &asked).await;
    assert!(body.contains(&format!(r#""text":"count: 1"{MARK}}}"#)), "{body}");
    assert_eq!(body.matches(MARK).count(), 1);
}
