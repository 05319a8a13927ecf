//! The dialect of Responses, byte for byte where it matters.

use hart_testkit::{BenchModel, BenchScript, Dialect, ModelServer, ToolResult, Turn};
use serde_json::{Value, json};

use crate::client::{Event, json_of, parse, post};

fn asking(stream: bool) -> Value {
    let input = json!([{"type": "message", "role": "user", "content": "hi"}]);
    json!({"model": "m", "input": input, "stream": stream, "include": ["reasoning.encrypted_content"]})
}

async fn ask(base: String, body: &Value) -> reqwest::Response {
    post(format!("{base}/responses"), body).await.unwrap()
}

async fn events(turn: Turn, body: &Value) -> Vec<Event> {
    let server = ModelServer::start().await;
    server.push(turn);
    parse(&ask(server.openai_base(), body).await.text().await.unwrap())
}

#[tokio::test]
async fn a_streamed_turn_has_every_event_in_order() {
    let turn = Turn::new()
        .reasoning("think")
        .signature("sig")
        .redacted_reasoning("blob")
        .text("Hi")
        .tool_call("call_1", "bash", json!({"command": "ls"}))
        .usage(100, 7)
        .cached(60)
        .reasoning_tokens(3);
    let events = events(turn, &asking(true)).await;
    assert!(events.iter().all(|event| event.name.as_deref() == event.data["type"].as_str()));
    assert!((0..).zip(&events).all(|(n, event)| event.data["sequence_number"] == json!(n)));
    let kinds: Vec<_> = events.iter().map(|event| event.data["type"].as_str().unwrap()).collect();
    let want = "created in_progress \
        output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done \
        reasoning_summary_part.done output_item.done output_item.added output_item.done \
        output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done \
        output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed";
    let want: Vec<_> = want.split(' ').map(|kind| format!("response.{kind}")).collect();
    assert_eq!(kinds, want);
    let whole = &events.last().unwrap().data["response"];
    let output = json!([
        {"id": "rs_1_0", "type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}],
            "encrypted_content": "sig"},
        {"id": "rs_1_1", "type": "reasoning", "summary": [], "encrypted_content": "blob"},
        {"id": "msg_1_2", "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hi"}]},
        {"id": "fc_1_3", "type": "function_call", "status": "completed", "arguments": "{\"command\":\"ls\"}",
            "call_id": "call_1", "name": "bash"},
    ]);
    assert_eq!((&whole["output"], &whole["status"]), (&output, &json!("completed")));
    assert_eq!(
        whole["usage"],
        json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 107})
    );
    let mut opened = events.iter().filter(|event| event.data["type"] == "response.output_item.added");
    assert!(opened.clone().all(|event| event.data["item"]["status"] != "completed"));
    assert_eq!(opened.next_back().unwrap().data["item"]["arguments"], "");
}

#[tokio::test]
async fn encrypted_content_comes_only_to_those_who_ask() {
    let mut body = asking(false);
    body.as_object_mut().unwrap().remove("include");
    let server = ModelServer::start().await;
    server.push(Turn::new().reasoning("think").signature("sig"));
    let whole = json_of(ask(server.openai_base(), &body).await).await;
    assert!(whole["output"][0].get("encrypted_content").is_none());
    assert_eq!(whole["output"][0]["summary"][0]["text"], "think");
}

#[tokio::test]
async fn endings_and_errors() {
    for (word, reason) in
        [("length", "max_output_tokens"), ("max_tokens", "max_output_tokens"), ("refusal", "content_filter")]
    {
        let events = events(Turn::new().text("x").stop(word), &asking(true)).await;
        let last = &events.last().unwrap().data;
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"], json!({"reason": reason}));
    }
    let events = events(Turn::new().stream_error("server_error", "boom"), &asking(true)).await;
    assert_eq!(events.last().unwrap().data["error"]["message"], "boom");
}

#[tokio::test]
async fn a_request_is_understood() {
    let server = ModelServer::start().await;
    server.push(Turn::new());
    let body = json!({
        "model": "m", "instructions": "Be brief.", "tools": [{"type": "function", "name": "ls"}],
        "input": [
            {"type": "message", "role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "ok"}]},
        ],
    });
    ask(server.openai_base(), &body).await;
    let request = server.last_request();
    assert_eq!(request.dialect(), Some(Dialect::Responses));
    assert_eq!((request.system().as_str(), request.tool_names()), ("Be brief.", vec!["ls"]));
    assert_eq!((request.texts_of("user"), request.messages().len()), (vec!["hi".to_owned()], 3));
    let result = ToolResult { call_id: "c1".into(), content: "ok".into(), is_error: false };
    assert_eq!(request.tool_results(), [result]);
}

#[tokio::test]
async fn the_model_of_a_benchmark_speaks_it_too() {
    let model = BenchModel::start(BenchScript { turns: 1, parallel: 2, tokens: 3, ..BenchScript::default() });
    let mut body = asking(true);
    let asked = async |body: &Value| parse(&ask(model.openai_base(), body).await.text().await.unwrap());
    let calls = |events: &[Event]| {
        events.iter().filter(|e| e.data["type"] == "response.function_call_arguments.done").count()
    };
    assert_eq!(calls(&asked(&body).await), 2);
    let input = body["input"].as_array_mut().unwrap();
    let output = json!({"type": "function_call_output", "call_id": "x", "output": "ok"});
    input.extend([output.clone(), output]);
    let events = asked(&body).await;
    let text: String = events.iter().filter_map(|e| e.data["delta"].as_str()).collect();
    assert_eq!((calls(&events), text.as_str()), (0, "tok0 tok1 tok2 "));
    let stamped = BenchModel::start(BenchScript { tokens: 120, timestamps: true, ..BenchScript::default() });
    let events = parse(&ask(stamped.openai_base(), &asking(true)).await.text().await.unwrap());
    let stamps = events.iter().filter_map(|e| e.data["delta"].as_str()?.trim().parse::<u64>().ok());
    assert_eq!(stamps.filter(|stamp| *stamp > 0).count(), 120);
    // Another question begins another task.
    let again = [
        json!({"type": "message", "role": "assistant", "content": "done"}),
        json!({"type": "message", "role": "user", "content": "again"}),
    ];
    body["input"].as_array_mut().unwrap().extend(again);
    assert_eq!(calls(&asked(&body).await), 2);
}
