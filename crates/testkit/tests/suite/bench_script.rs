//! The model of a benchmark.

use std::time::Duration;

use hart_testkit::{BenchModel, BenchScript, ModelServer, script};
use serde_json::{Value, json};

use crate::client::{Event, asking, json_of, parse, post};

async fn openai(model: &BenchModel, body: &Value) -> Vec<Event> {
    let response = post(format!("{}/chat/completions", model.openai_base()), body).await.unwrap();
    parse(&response.text().await.unwrap())
}

async fn anthropic(model: &BenchModel, body: &Value) -> Vec<Event> {
    let response = post(format!("{}/v1/messages", model.url()), body).await.unwrap();
    parse(&response.text().await.unwrap())
}

fn openai_text(events: &[Event]) -> String {
    events.iter().filter_map(|e| e.data["choices"][0]["delta"]["content"].as_str()).collect()
}

fn anthropic_text(events: &[Event]) -> String {
    events.iter().filter_map(|e| e.data["delta"]["text"].as_str()).collect()
}

fn counted(tokens: u32) -> String {
    (0..tokens).map(|i| format!("tok{i} ")).collect()
}

#[tokio::test]
async fn the_tool_results_of_the_task_decide_the_turn() {
    let args = json!({"command": "true"});
    let script =
        BenchScript { turns: 2, parallel: 2, tool: "bash".into(), args, tokens: 3, ..BenchScript::default() };
    let model = ModelServer::bench(script);
    let mut body = asking(true);
    let result = json!({"role": "tool", "tool_call_id": "x", "content": "ok"});
    let calling = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "x"}]});
    let answer = json!({"role": "assistant", "content": "done", "tool_calls": null});
    let mut finish_after = async |more: &[&Value]| {
        body["messages"].as_array_mut().unwrap().extend(more.iter().copied().cloned());
        let events = openai(&model, &body).await;
        events[events.len() - 2].data["choices"][0]["finish_reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(finish_after(&[]).await, "tool_calls");
    assert_eq!(finish_after(&[&calling, &result, &result]).await, "tool_calls");
    assert_eq!(finish_after(&[&calling, &result, &result]).await, "stop");
    // Once it has answered, a new task begins.
    assert_eq!(finish_after(&[&answer]).await, "tool_calls");
    assert_eq!(model.requests(), 4);
    assert!(model.bytes_received() > 0);
}

#[tokio::test]
async fn anthropic_results_count_too_and_call_ids_differ_between_rounds() {
    let model = BenchModel::start(BenchScript { turns: 2, tokens: 3, ..BenchScript::default() });
    let mut body = asking(true);
    let mut ids = Vec::new();
    for round in 0..2 {
        let events = anthropic(&model, &body).await;
        let id = events[1].data["content_block"]["id"].clone();
        assert_eq!(events[1].data["content_block"]["name"], "noop", "in round {round}");
        let history = body["messages"].as_array_mut().unwrap();
        history.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id}]}));
        history.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": ""}]}),
        );
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(anthropic_text(&anthropic(&model, &body).await), counted(3));
}

#[tokio::test]
async fn every_way_of_sending_sends_the_same_events() {
    let tokens = 2000;
    let plain = BenchScript { tokens, ..BenchScript::default() };
    let ways = [
        plain.clone(),
        BenchScript { flush_each_token: true, ..plain.clone() },
        BenchScript { token_interval: Some(Duration::from_nanos(1)), workers: 2, ..plain },
    ];
    let mut with_usage = asking(true);
    with_usage["stream_options"] = json!({"include_usage": true});
    for script in ways {
        let model = BenchModel::start(script.clone());
        let events = openai(&model, &with_usage).await;
        assert_eq!(openai_text(&events), counted(tokens), "{script:?}");
        assert_eq!(events[events.len() - 2].data["usage"]["completion_tokens"], tokens);
        let events = openai(&model, &asking(true)).await;
        assert!(events.iter().all(|event| event.data["usage"].is_null()), "{script:?}");
        assert_eq!(events.last().unwrap().data, "[DONE]");
        let events = anthropic(&model, &asking(true)).await;
        assert_eq!(anthropic_text(&events), counted(tokens), "{script:?}");
        assert_eq!(events.last().unwrap().name.as_deref(), Some("message_stop"));
    }
}

#[tokio::test]
async fn timestamps_are_taken_when_a_token_is_sent() {
    let model = BenchModel::start(BenchScript { tokens: 5, timestamps: true, ..BenchScript::default() });
    let before = script::unix_nanos();
    for text in [
        openai_text(&openai(&model, &asking(true)).await),
        anthropic_text(&anthropic(&model, &asking(true)).await),
    ] {
        let stamps: Vec<u64> = text.split_whitespace().map(|stamp| stamp.parse().unwrap()).collect();
        assert_eq!(stamps.len(), 5);
        assert!(stamps.is_sorted() && stamps[0] >= before);
    }
}

#[tokio::test]
async fn a_whole_message_and_a_bad_request_are_answered() {
    let model = BenchModel::start(BenchScript { tokens: 2, ..BenchScript::default() });
    let whole =
        json_of(post(format!("{}/chat/completions", model.openai_base()), &asking(false)).await.unwrap())
            .await;
    assert_eq!(whole["choices"][0]["message"]["content"], counted(2));
    let bad = post(format!("{}/chat/completions", model.openai_base()), &json!([])).await.unwrap();
    assert_eq!(bad.status(), 400);
}

#[test]
fn a_script_has_a_json_form_with_defaults() {
    let script: BenchScript = serde_json::from_str(r#"{"turns": 3, "tool": "bash"}"#).unwrap();
    assert_eq!((script.turns, script.tool.as_str(), script.tokens), (3, "bash", 16));
    assert!(serde_json::from_str::<BenchScript>(r#"{"turn": 3}"#).is_err());
}
