//! The event protocol against what LangGraph's own server was recorded to say for the same conversation.

use hart_models::ScriptedTurn;
use reqwest::Method;
use serde_json::{Value, json};

use crate::lines::Lines;
use crate::support::Server;

const THREAD: &str = "8dfa6a67-f94e-4dce-908c-067346fa676b";

fn call(tool: &str, args: Value) -> ScriptedTurn {
    ScriptedTurn::call("call_1", tool, args)
}

fn human(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

/// Where it happened, what, and which fields it had: what a client can rely on.
fn shape(envelope: &Value) -> String {
    let params = &envelope["params"];
    let depth: Vec<&str> = params["namespace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| segment.as_str().unwrap().split(':').next().unwrap())
        .collect();
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> =
            value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    };
    let data = &params["data"];
    let messages: Vec<String> = data["messages"]
        .as_array()
        .into_iter()
        .flatten()
        // Who speaks is known by the namespace; hart's answers have no name of their own.
        .map(|message| {
            format!("{}{:?}", message["type"], keys(message)).replace("\"name\", \"resp", "\"resp")
        })
        .collect();
    let block = ["content", "delta"].map(|key| data[key]["type"].as_str().unwrap_or_default());
    // Arguments come whole each time, where the recorded server appends: its own clients cannot read that.
    let block = if block[1] == "tool-call-delta" { ["", "block-delta"] } else { block };
    let fields: Vec<String> =
        keys(data).into_iter().filter(|key| !["usage", "metadata"].contains(&key.as_str())).collect();
    format!("{} {depth:?} {} {fields:?} {block:?} {messages:?}", envelope["method"], data["event"])
}

/// Runs of the same shape, such as words, count once.
fn shapes<'a>(envelopes: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut shapes: Vec<String> = envelopes.map(shape).collect();
    shapes.dedup();
    shapes
}

fn recorded(name: &str) -> Vec<Value> {
    let path = format!("{}/../../contracts/wire/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

async fn heard(server: &Server, commands: &[(&str, Value, &str)]) -> Vec<Value> {
    let channels = json!({"channels": ["values", "messages", "tools", "lifecycle", "input"]});
    let path = format!("/threads/{THREAD}/stream/events");
    let mut lines = Lines::open(server.request(Method::POST, &path).body(channels.to_string())).await;
    let mut all = Vec::new();
    for (method, params, last) in commands {
        let mut params = params.clone();
        if let Some(asked) = all.iter().find(|event: &&Value| event["method"] == "input.requested") {
            params["interrupt_id"] = asked["params"]["data"]["interrupt_id"].clone();
        }
        let command = json!({"id": 1, "method": method, "params": params});
        let answer = server.post(&format!("/threads/{THREAD}/commands"), command).await;
        assert_eq!(answer["type"], "success", "{answer}");
        let is_last = |event: &Value| {
            event["method"] == "lifecycle"
                && event["params"]["namespace"] == json!([])
                && event["params"]["data"]["event"] == *last
        };
        all.extend(lines.until(|line| is_last(&line.data)).await.into_iter().map(|line| line.data));
    }
    all
}

#[tokio::test]
async fn a_tool_call_is_told_as_recorded() {
    let turns = vec![
        call("get_weather", json!({"city": "Paris"})),
        ScriptedTurn::text("Tool said: It is sunny in Paris."),
    ];
    let server = Server::playing(turns).await;
    let start = json!({"assistant_id": "agent", "input": human("Paris?")});
    let events = heard(&server, &[("run.start", start, "completed")]).await;
    assert_eq!(shapes(events.iter()), shapes(recorded("v2_events_tool").iter()));
    server.close().await;
}

#[tokio::test]
async fn a_question_and_its_answer_are_told_as_recorded() {
    let turns = vec![call("ask_human", json!({"question": "Deploy?"})), ScriptedTurn::text("Tool said: yes")];
    let server = Server::playing(turns).await;
    let start = json!({"assistant_id": "agent", "input": human("Deploy?")});
    let commands = [
        ("run.start", start, "interrupted"),
        ("input.respond", json!({"namespace": [], "response": "yes"}), "completed"),
    ];
    let events = heard(&server, &commands).await;
    assert_eq!(shapes(events.iter()), shapes(recorded("v2_interrupt").iter()));
    server.close().await;
}

/// The recorded server tells of the child's first state before its beginning; everything else is the same.
#[tokio::test]
async fn an_agent_inside_a_call_is_told_as_recorded() {
    let turns = vec![
        call("task", json!({"description": "SAY sub done"})),
        ScriptedTurn::text("sub done"),
        ScriptedTurn::text("Tool said: sub done"),
    ];
    let server = Server::playing(turns).await;
    let start = json!({"assistant_id": "agent", "input": human("go")});
    let events = heard(&server, &[("run.start", start, "completed")]).await;
    let mut expected = recorded("v2_subagent");
    expected.swap(10, 11);
    assert_eq!(shapes(events.iter()), shapes(expected.iter()));
    let started = events.iter().find(|event| event["params"]["data"]["event"] == "started").unwrap();
    assert_eq!(started["params"]["data"]["cause"], json!({"type": "toolCall", "tool_call_id": "call_1"}));
    assert_eq!(started["params"]["data"]["graph_name"], "researcher");
    server.close().await;
}
