//! The answers of a model that is not there: three commands that leave a mark each, and a last word.
//!
//! Invariant: what it says follows from the conversation alone, so a call that is made again is answered the same.

use serde_json::{Value, json};

/// As the configuration calls it.
pub(super) const NAME: &str = "script";

/// Where the commands leave their marks, in the thread's workspace.
pub(super) const LEDGER: &str = "chaos-ledger.txt";

/// What the commands write, one line each.
pub(super) const MARKS: [&str; 3] = ["one", "two", "three"];

/// The command that leaves a mark.
pub(super) fn command(mark: &str) -> String {
    format!("echo {mark} >> {LEDGER}")
}

/// What a model is asked to do, whichever it is.
pub(super) fn task() -> String {
    let [first, second, third] = MARKS.map(command);
    format!(
        "Run these three commands with the bash tool, exactly as they are written, each once, in a call of its own, one \
         after the other: `{first}`, then `{second}`, then `{third}`. If it is not known whether one of them took effect, \
         do not repeat it. Then answer with the word done."
    )
}

/// The pieces of a stream of chat completions that answers this request.
pub(super) fn answer(request: &Value) -> Vec<String> {
    let messages = request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let results = messages.iter().filter(|message| message.get("role") == Some(&json!("tool"))).count();
    let has_tools = request.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let mut pieces = Vec::new();
    let words = match MARKS.get(results).filter(|_| has_tools) {
        Some(mark) => format!("Now I leave the mark {mark}, and nothing else, as I was asked to do."),
        None => "done".to_owned(),
    };
    for word in words.split_inclusive(' ') {
        pieces.push(chunk(&json!({"role": "assistant", "content": word}), None));
    }
    if let Some(mark) = MARKS.get(results).filter(|_| has_tools) {
        let args = json!({"description": "leave a mark", "command": format!("{}; sleep 0.1", command(mark))});
        let call = json!({"index": 0, "id": format!("call-{mark}"), "type": "function",
                          "function": {"name": "bash", "arguments": args.to_string()}});
        pieces.push(chunk(&json!({"tool_calls": [call]}), None));
        pieces.push(chunk(&json!({}), Some("tool_calls")));
    } else {
        pieces.push(chunk(&json!({}), Some("stop")));
    }
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk =
        json!({"id": "script", "object": "chat.completion.chunk", "model": NAME, "choices": [choice]});
    format!("data: {chunk}\n\n")
}
