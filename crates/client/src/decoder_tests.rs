use hart_types::UsageMetadata;
use serde_json::json;

use super::*;
use crate::Frame;

fn frame(event: &str, data: Value) -> StreamFrame {
    StreamFrame { event: event.to_owned(), data: data.to_string().into(), id: None }
}

fn told(decoder: &mut Decoder, frames: &[StreamFrame]) -> Vec<Event> {
    frames.iter().flat_map(|frame| decoder.read(frame)).collect()
}

fn chunk(text: &str) -> StreamFrame {
    frame("messages", json!([{"type": "AIMessageChunk", "id": "m1", "content": text}, {}]))
}

fn whole() -> Value {
    json!({"type": "ai", "id": "m1", "content": "Hello.", "usage_metadata":
        {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        "tool_calls": [{"name": "ls", "args": {}, "id": "c1", "type": "tool_call"}]})
}

#[test]
fn words_calls_and_counts_are_told_once_however_they_came() {
    let streamed = [
        frame("metadata", json!({"run_id": "r"})),
        chunk("Hel"),
        chunk("lo."),
        frame("updates", json!({"model": {"messages": [whole()]}})),
        frame("messages", json!([whole(), {}])),
    ];
    let mut decoder = Decoder::default();
    let events = told(&mut decoder, &streamed);
    let [
        Event::Text { text: a, .. },
        Event::Text { text: b, .. },
        Event::ToolCalls { calls, .. },
        Event::Usage { usage, .. },
        Event::Updates { .. },
    ] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!((a.as_str(), b.as_str(), calls[0].name.as_str()), ("Hel", "lo.", "ls"));
    assert_eq!(*usage, UsageMetadata::new(3, 2));
    // Read again after a line broke, nothing is told twice but the words, which the server does not send twice.
    let again = told(&mut decoder, &streamed[3..]);
    assert!(matches!(again.as_slice(), [Event::Updates { .. }]), "{again:?}");

    let unstreamed = told(&mut Decoder::default(), &streamed[4..]);
    assert!(matches!(&unstreamed[0], Event::Text { text, .. } if text == "Hello."), "{unstreamed:?}");
}

#[test]
fn words_that_are_taken_back_are_told_of_once() {
    let removed = frame("messages", json!([{"type": "remove", "id": "m1", "content": ""}, {}]));
    let events = told(&mut Decoder::default(), &[chunk("Hel"), removed.clone(), removed, chunk("Hello.")]);
    let [Event::Text { .. }, Event::Withdrawn { id }, Event::Text { .. }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(id.as_str(), "m1");
}

#[test]
fn tools_pauses_and_failures() {
    let mut decoder = Decoder::default();
    let result =
        json!({"type": "tool", "id": "m2", "content": "a.txt", "tool_call_id": "c1", "status": "success"});
    let call = json!({"name": "ls", "args": {}, "id": "c1", "type": "tool_call"});
    let events = told(
        &mut decoder,
        &[
            frame("tasks", json!({"id": "t", "name": "model", "input": {}})),
            frame("tasks", json!({"id": "t", "name": "tools", "input": [call]})),
            frame("custom", json!({"type": "tool_progress", "tool_call_id": "c1", "text": "a"})),
            frame("custom", json!({"type": "mine"})),
            frame("messages", json!([result, {}])),
            frame("tasks", json!({"id": "t", "name": "tools", "result": {"messages": [result]}})),
            frame("messages|tools:1", json!([whole(), {}])),
            frame(
                "updates",
                json!({"__interrupt__": [{"id": "i", "value": "sure?", "response_schema": null}]}),
            ),
            frame("values", json!({"messages": [], "title": "T"})),
            frame("error", json!({"error": "Boom", "message": "it broke"})),
        ],
    );
    let names: Vec<&str> = events.iter().map(|event| Frame::from(event).event).collect();
    assert_eq!(
        names,
        ["tool_started", "tool_progress", "custom", "messages-tuple", "updates", "values"],
        "{events:?}"
    );
    assert!(!decoder.has_ended());
    assert!(decoder.read(&frame("end", Value::Null)).is_empty() && decoder.has_ended());
    assert_eq!(decoder.failure().unwrap().message, "it broke");
    let (values, asked) = decoder.state();
    assert_eq!((values.unwrap().title(), asked[0].value.as_str()), (Some("T"), Some("sure?")));
}
