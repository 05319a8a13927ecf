use serde_json::json;

use super::*;

fn feed(lines: &[Value]) -> (OllamaDecoder, VecDeque<ChatChunk>, Result<Progress, Fault>) {
    let mut decoder = OllamaDecoder::new("ollama");
    let mut out = VecDeque::new();
    let mut last = Ok(Progress::More);
    for line in lines {
        let data = line.to_string();
        last = decoder.event(SseEvent { event: "message", data: &data, id: "" }, &mut out);
    }
    (decoder, out, last)
}

#[test]
fn a_recorded_answer() {
    let at = "2025-10-08T12:00:00.123456Z";
    let say =
        |message: Value| json!({"model": "qwen3:8b", "created_at": at, "message": message, "done": false});
    let (mut decoder, chunks, last) = feed(&[
        say(json!({"role": "assistant", "content": "", "thinking": "The user"})),
        say(json!({"role": "assistant", "content": "", "thinking": " asks."})),
        say(json!({"role": "assistant", "content": "Look"})),
        say(json!({"role": "assistant", "content": "ing."})),
        say(json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "call_1", "function": {"index": 0, "name": "ls", "arguments": {"z": 1, "a": 2}}},
            {"function": {"index": 1, "name": "now", "arguments": {}}}]})),
        json!({"model": "qwen3:8b", "created_at": at, "message": {"role": "assistant", "content": ""}, "done": true,
            "done_reason": "stop", "total_duration": 5, "load_duration": 1, "prompt_eval_count": 200,
            "prompt_eval_duration": 2, "eval_count": 30, "eval_duration": 2}),
    ]);
    assert_eq!(last.unwrap(), Progress::Complete);
    assert_eq!(chunks.len(), 6);
    let message = decoder.take();
    let want =
        json!([{"type": "reasoning", "reasoning": "The user asks."}, {"type": "text", "text": "Looking."}]);
    assert_eq!(serde_json::to_value(&message.content).unwrap(), want);
    let calls = message.tool_calls();
    assert_eq!(calls[0].id.as_ref().unwrap().as_str(), "call_1");
    assert!(calls[1].id.as_ref().unwrap().as_str().starts_with("call_"));
    assert_eq!(Value::Object(calls[0].args.clone()).to_string(), r#"{"z":1,"a":2}"#);
    let usage = message.as_ai().unwrap().usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (200, 30, 230));
    let want = json!({"finish_reason": "stop", "model_name": "qwen3:8b", "model_provider": "ollama", "created_at": at,
        "total_duration": 5, "load_duration": 1, "prompt_eval_duration": 2, "eval_duration": 2});
    assert_eq!(Value::Object(message.response_metadata.clone()), want);
}

#[test]
fn older_and_odd_servers_are_understood() {
    let (mut decoder, _, last) = feed(&[
        json!({"message": {"content": "x", "tool_calls": [{"function": {"name": "ls", "arguments": "{\"p\": 1}"}}, {"function": {"name": ""}}, {}]}}),
        json!({"done": true}),
    ]);
    assert_eq!(last.unwrap(), Progress::Complete);
    let message = decoder.take();
    assert_eq!(message.tool_calls()[0].args["p"], 1);
    assert_eq!(message.as_ai().unwrap().invalid_tool_calls.len(), 2);
    assert_eq!(message.as_ai().unwrap().usage, None);
    assert_eq!(message.response_metadata["finish_reason"], "stop");
}

#[test]
fn an_error_ends_the_answer_wherever_it_comes() {
    let line = json!({"message": {"content": "half"}, "done": false});
    let (mut decoder, _, last) =
        feed(&[line, json!({"error": "an error was encountered while running the model"})]);
    let Err(Fault::Provider(failure)) = last else { panic!("{last:?}") };
    assert!(failure.into_error("m", None).message.contains("running the model"));
    assert!(!decoder.is_complete());
    assert_eq!(decoder.take().text(), "half");
}
