//! What a thread has come to when its runs did not come to their end, and what may be done with that.

use hart_kernel::{ModelError, ModelErrorKind};
use hart_models::ScriptedTurn;
use hart_types::Message;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

fn says(text: &str) -> Value {
    json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": text}]}})
}

fn go_on() -> Value {
    json!({"assistant_id": "agent", "input": null})
}

fn texts(values: &Value) -> Vec<&str> {
    values["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_failed_run_says_where_and_why_and_can_be_gone_on_with() {
    let server = Server::new(&[]).await;
    let id = server.thread().await;
    server.say(ModelError::new(ModelErrorKind::BadRequest, "m", "scripted failure").into());
    server.post(&format!("/threads/{id}/runs/wait"), says("hi")).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["next"], json!(["model"]));
    assert!(state["tasks"][0]["error"].as_str().unwrap().contains("scripted failure"), "{state}");
    assert_eq!(server.get(&format!("/threads/{id}")).await["status"], "error");
    server.say(ScriptedTurn::text("hello"));
    let values = server.post(&format!("/threads/{id}/runs/wait"), go_on()).await;
    assert_eq!(texts(&values), ["hi", "hello"]);
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!((&state["next"], &state["tasks"]), (&json!([]), &json!([])));
    server.close().await;
}

#[tokio::test]
async fn a_stopped_run_can_be_gone_on_with() {
    let server = Server::playing(vec![ScriptedTurn::Hang]).await;
    let id = server.thread().await;
    let run = server.post(&format!("/threads/{id}/runs"), says("hi")).await;
    let run = run["run_id"].as_str().unwrap();
    while server.get(&format!("/threads/{id}/state")).await["next"] != json!(["model"]) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    server.post(&format!("/threads/{id}/runs/{run}/cancel?wait=true"), json!({})).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["next"], json!(["model"]));
    assert_eq!(server.get(&format!("/threads/{id}")).await["status"], "interrupted");
    server.say(ScriptedTurn::text("hello"));
    let values = server.post(&format!("/threads/{id}/runs/wait"), go_on()).await;
    assert_eq!(texts(&values), ["hi", "hello"]);
    assert_eq!(server.get(&format!("/threads/{id}")).await["status"], "idle");
    server.close().await;
}

#[tokio::test]
async fn nothing_can_be_gone_on_with_where_nothing_was_said() {
    let server = Server::new(&[]).await;
    let id = server.thread().await;
    let told = server.post(&format!("/threads/{id}/runs/wait"), go_on()).await;
    assert_eq!(told["__error__"]["error"], "EmptyInputError", "{told}");
    // Nor is anybody asked where what was said cannot be.
    let misspelt =
        json!({"assistant_id": "agent", "input": {"mesages": [{"role": "user", "content": "hi"}]}});
    let told = server.post(&format!("/threads/{id}/runs/wait"), misspelt).await;
    assert_eq!(told["__error__"]["error"], "EmptyInputError", "{told}");
    server.close().await;
}

#[tokio::test]
async fn a_pruned_thread_keeps_its_newest_state_and_goes_on() {
    let server = Server::new(&["one", "two", "three"]).await;
    let id = server.thread().await;
    for text in ["a", "b"] {
        server.post(&format!("/threads/{id}/runs/wait"), says(text)).await;
    }
    let before = server.get(&format!("/threads/{id}/state")).await;
    let prune = json!({"thread_ids": [id], "strategy": "keep_latest"});
    assert_eq!(server.post("/threads/prune", prune).await, json!({"pruned_count": 1}));
    let after = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!((&after["values"], &after["next"]), (&before["values"], &json!([])));
    assert_eq!(after["checkpoint"], before["checkpoint"]);
    let history = server.post(&format!("/threads/{id}/history"), json!({"limit": 100})).await;
    assert_eq!(history.as_array().unwrap().len(), 1);
    // There is nothing left to come back to: a run that is forgotten takes no state along.
    let last = server.get(&format!("/threads/{id}/runs?limit=1")).await[0]["run_id"].clone();
    let last = format!("/threads/{id}/runs/{}", last.as_str().unwrap());
    assert!(server.call(Method::DELETE, &last, Value::Null).await.0.is_success());
    let values = server.post(&format!("/threads/{id}/runs/wait"), says("c")).await;
    assert_eq!(texts(&values), ["a", "one", "b", "two", "c", "three"]);
    server.close().await;
}

#[tokio::test]
async fn a_thread_is_made_with_what_was_written_elsewhere() {
    let server = Server::new(&["hello"]).await;
    let write = |node: &str, kind: &str, text: &str| json!({"updates": [{"values": {"messages": [{"type": kind, "content": text}]}, "as_node": node}]});
    let steps = json!([
        write("__input__", "human", "a"),
        write("model", "ai", "b"),
        write("__input__", "human", "c")
    ]);
    let made = server.post("/threads", json!({"metadata": {"graph_id": "agent"}, "supersteps": steps})).await;
    assert_eq!((&made["status"], texts(&made["values"])), (&json!("interrupted"), vec!["a", "b", "c"]));
    let id = made["thread_id"].as_str().unwrap();
    let history = server.post(&format!("/threads/{id}/history"), json!({"limit": 9})).await;
    assert_eq!(history.as_array().unwrap().len(), 3);
    let values = server.post(&format!("/threads/{id}/runs/wait"), go_on()).await;
    assert_eq!(texts(&values), ["a", "b", "c", "hello"]);
    // Half a thread is none.
    let count = server.post("/threads/count", json!({})).await;
    let wrong = json!([write("__input__", "human", "a"), write("nobody", "ai", "b")]);
    let body = json!({"metadata": {"graph_id": "agent"}, "supersteps": wrong});
    assert_eq!(server.call(Method::POST, "/threads", body).await.0.as_u16(), 400);
    assert_eq!(server.post("/threads/count", json!({})).await, count);
    server.close().await;
}

#[tokio::test]
async fn a_state_that_was_written_by_hand_waits_where_something_is_left_to_do() {
    let server = Server::new(&[]).await;
    let made = server.post("/threads", json!({"metadata": {"graph_id": "agent"}})).await;
    let id = made["thread_id"].as_str().unwrap();
    let write = |node: &str| json!({"values": {"messages": []}, "as_node": node});
    server.post(&format!("/threads/{id}/state"), write("__start__")).await;
    assert_eq!(server.get(&format!("/threads/{id}")).await["status"], "interrupted");
    server.post(&format!("/threads/{id}/state"), write("__end__")).await;
    assert_eq!(server.get(&format!("/threads/{id}")).await["status"], "idle");
    let nowhere = json!({"values": {}, "checkpoint_id": "1f1e08e6-21ba-6588-8000-88dfff15b743"});
    let (status, _) = server.call(Method::POST, &format!("/threads/{id}/state"), nowhere).await;
    assert_eq!(status.as_u16(), 404);
    server.close().await;
}

#[tokio::test]
async fn whoever_goes_on_before_an_input_gets_an_answer_to_it() {
    let server = Server::new(&["one", "another"]).await;
    let id = server.thread().await;
    server.post(&format!("/threads/{id}/runs/wait"), says("a")).await;
    let history = server.post(&format!("/threads/{id}/history"), json!({"limit": 9})).await;
    let oldest = history.as_array().unwrap().last().unwrap();
    assert_eq!(oldest["next"], json!(["__start__"]));
    let again = json!({"assistant_id": "agent", "input": null, "checkpoint": oldest["checkpoint"]});
    let values = server.post(&format!("/threads/{id}/runs/wait"), again).await;
    assert_eq!(texts(&values), ["a", "another"]);
    let wrong = json!({"assistant_id": "agent", "input": null, "checkpoint": {"checkpoint_id": 5}});
    let (status, _) = server.call(Method::POST, &format!("/threads/{id}/runs/wait"), wrong).await;
    assert_eq!(status.as_u16(), 422);
    server.close().await;
}

#[tokio::test]
async fn history_is_filtered_by_what_is_said_about_a_state() {
    let server = Server::new(&["one", "two", "three"]).await;
    let id = server.thread().await;
    for text in ["a", "b"] {
        server.post(&format!("/threads/{id}/runs/wait"), says(text)).await;
    }
    let history = async |body: Value| -> Vec<Value> {
        let states = server.post(&format!("/threads/{id}/history"), body).await;
        states.as_array().unwrap().iter().map(|state| state["metadata"]["step"].clone()).collect()
    };
    assert_eq!(history(json!({})).await, [4]);
    assert_eq!(history(json!({"limit": 9, "metadata": {"source": "input"}})).await, [2, -1]);
    assert_eq!(history(json!({"limit": 1, "metadata": {"source": "input"}})).await, [2]);
    assert_eq!(history(json!({"limit": 1, "metadata": {"step": 0}})).await, [0]);
    let runs = server.get(&format!("/threads/{id}/runs")).await;
    let of_first = json!({"limit": 9, "metadata": {"run_id": runs[1]["run_id"], "source": "loop"}});
    assert_eq!(history(of_first).await, [1, 0]);
    assert!(history(json!({"metadata": {"step": "0"}})).await.is_empty());
    let mut tagged = says("c");
    tagged["metadata"] = json!({"experiment": 7});
    server.post(&format!("/threads/{id}/runs/wait"), tagged).await;
    assert_eq!(history(json!({"limit": 9, "metadata": {"experiment": 7}})).await, [7, 6, 5]);
    assert!(history(json!({"limit": 9, "metadata": {"experiment": 8}})).await.is_empty());
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["metadata"]["experiment"], 7);
    assert!(history(json!({"limit": 9, "checkpoint": {"checkpoint_ns": "tools:x"}})).await.is_empty());
    server.close().await;
}

#[tokio::test]
async fn messages_of_nobody_and_content_that_is_none_are_refused() {
    let server = Server::new(&[]).await;
    let made = server.post("/threads", json!({"metadata": {"graph_id": "agent"}})).await;
    let id = made["thread_id"].as_str().unwrap();
    for message in
        [json!({"role": "zz", "content": "x"}), json!({"role": "user", "content": 5}), json!({"foo": 1})]
    {
        let input = json!({"messages": [message]});
        let run = json!({"assistant_id": "agent", "input": input});
        let told = server.post(&format!("/threads/{id}/runs/wait"), run).await;
        assert_eq!(told["__error__"]["error"], "ValueError", "{message}: {told}");
        let (status, _) =
            server.call(Method::POST, &format!("/threads/{id}/state"), json!({"values": input})).await;
        assert_eq!(status.as_u16(), 400, "{message}");
    }
    // A state inside of a call is not the thread's.
    let inside = json!({"values": {}, "checkpoint": {"checkpoint_ns": "tools:1"}});
    for path in ["state", "state/checkpoint"] {
        let (status, told) =
            server.call(Method::POST, &format!("/threads/{id}/{path}"), inside.clone()).await;
        assert_eq!((status.as_u16(), &told["detail"]), (400, &json!("Subgraph tools:1 not found")));
    }
    assert_eq!(server.get(&format!("/threads/{id}/state")).await["values"], json!({}));
    server.close().await;
}

#[tokio::test]
async fn a_run_says_what_it_was_asked_with_and_what_it_was_not() {
    let server = Server::new(&["one", "two"]).await;
    let id = server.thread().await;
    server.post(&format!("/threads/{id}/runs/wait"), says("a")).await;
    let mut asked = says("b");
    for (key, value) in [
        ("interrupt_before", json!("*")),
        ("interrupt_after", json!(["tools"])),
        ("feedback_keys", json!(["score"])),
        ("stream_resumable", json!(false)),
        ("durability", json!("exit")),
    ] {
        asked[key] = value;
    }
    server.post(&format!("/threads/{id}/runs/wait"), asked).await;
    let runs = server.get(&format!("/threads/{id}/runs")).await;
    let shown = |run: usize| {
        let kwargs = &runs[run]["kwargs"];
        ["interrupt_before", "interrupt_after", "feedback_keys", "resumable", "durability", "temporary"]
            .map(|key| kwargs.get(key).unwrap_or_else(|| panic!("no {key} in {kwargs}")).clone())
    };
    let silent = [Value::Null, Value::Null, Value::Null, json!(true), json!("sync"), json!(false)];
    assert_eq!(shown(1), silent);
    let spoken = [json!("*"), json!(["tools"]), json!(["score"]), json!(false), json!("exit"), json!(false)];
    assert_eq!(shown(0), spoken);
    assert_eq!(runs[0]["kwargs"]["checkpoint_during"], false);
    server.close().await;
}

/// What clients see ahead of a thread that was told to stop is a node they know.
#[tokio::test]
async fn a_run_told_to_stop_behind_the_model_stands_before_the_tools() {
    let call = ScriptedTurn::call("c1", "nothing_of_the_kind", json!({}));
    let server = Server::playing(vec![call, ScriptedTurn::text("done")]).await;
    let id = server.thread().await;
    let mut asked = says("a");
    asked["interrupt_after"] = json!(["model"]);
    server.post(&format!("/threads/{id}/runs/wait"), asked.clone()).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["next"], json!(["tools"]));
    asked["input"] = Value::Null;
    server.post(&format!("/threads/{id}/runs/wait"), asked).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!((&state["next"], &state["values"]["messages"][3]["content"]), (&json!([]), &json!("done")));
    server.close().await;
}

#[tokio::test]
async fn threads_made_by_runs_say_what_the_runs_say() {
    let server = Server::new(&["one"]).await;
    let id = "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a009";
    let mut start = says("a");
    start["if_not_exists"] = json!("create");
    start["metadata"] = json!({"user": "bob"});
    server.post(&format!("/threads/{id}/runs/wait"), start).await;
    let found = server.post("/threads/search", json!({"metadata": {"user": "bob"}})).await;
    assert_eq!(found[0]["thread_id"], id);
    server.close().await;
}

#[tokio::test]
async fn where_to_start_from_may_be_in_the_configuration() {
    let server = Server::new(&["one", "two", "three"]).await;
    let id = server.thread().await;
    let path = format!("/threads/{id}/runs/wait");
    server.post(&path, says("a")).await;
    let at = server.get(&format!("/threads/{id}/state")).await["checkpoint_id"].clone();
    server.post(&path, says("b")).await;
    let mut start = says("c");
    start["config"] = json!({"configurable": {"checkpoint_id": at}});
    assert_eq!(texts(&server.post(&path, start).await), ["a", "one", "c", "three"]);
    server.close().await;
}

#[tokio::test]
async fn whoever_waits_is_told_where() {
    let server = Server::new(&["one", "two"]).await;
    let id = server.thread().await;
    server.post(&format!("/threads/{id}/runs/wait"), says("a")).await;
    let run = server.get(&format!("/threads/{id}/runs")).await[0]["run_id"].as_str().unwrap().to_owned();
    let join = format!("/threads/{id}/runs/{run}/join");
    let joined = server.request(Method::GET, &join).send().await.unwrap();
    assert_eq!(joined.headers()["location"], join);
    let alone = server.request(Method::POST, "/runs/wait").body(says("b").to_string()).send().await.unwrap();
    let place = alone.headers()["content-location"].to_str().unwrap();
    assert_eq!(alone.headers()["location"].to_str().unwrap(), format!("{place}/join"));
    server.close().await;
}

/// DeerFlow's frontend reads it there, and takes the words of a stream from its fragments, those of a state from states.
#[tokio::test]
async fn what_a_model_thought_is_told_alike_in_fragments_and_states() {
    let content = json!([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]);
    let said: Message = serde_json::from_value(json!({"type": "ai", "content": content})).unwrap();
    let server = Server::playing(vec![said.into()]).await;
    let id = server.thread().await;
    let values = server.post(&format!("/threads/{id}/runs/wait"), says("a")).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    for state in [&values, &state["values"]] {
        let answer = &state["messages"][1];
        assert_eq!(answer["additional_kwargs"], json!({"reasoning_content": "hm"}));
        assert_eq!((&answer["content"], &answer["name"]), (&json!("yes"), &json!("agent")));
    }
    // What a client has read it may write.
    let answer = json!({"values": {"messages": [state["values"]["messages"][1]]}});
    server.post(&format!("/threads/{id}/state"), answer).await;
    let again = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(again["values"], state["values"]);
    server.close().await;
}

#[tokio::test]
async fn a_command_that_says_nothing_is_none() {
    let server = Server::new(&["one"]).await;
    let id = server.thread().await;
    let mut start = says("a");
    start["command"] = json!({});
    assert_eq!(texts(&server.post(&format!("/threads/{id}/runs/wait"), start).await), ["a", "one"]);
    server.close().await;
}
