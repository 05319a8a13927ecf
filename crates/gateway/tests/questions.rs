//! Threads that wait for an answer: what clients see of them, and what becomes of the question.

use hart_models::ScriptedTurn;
use serde_json::{Value, json};

use crate::recorded_runs::frames;
use crate::support::Server;

/// A server, and a thread on it whose first question is open.
async fn asked(then: &[&str]) -> (Server, String) {
    let ask = |id: &str| ScriptedTurn::call(id, "ask_human", json!({"question": "Deploy?"}));
    let mut turns = vec![ask("c1")];
    turns.extend(then.iter().map(|text| ScriptedTurn::text(*text)));
    let server = Server::playing(turns).await;
    let id = server.thread().await;
    let start = json!({"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "go"}]}});
    let values = server.post(&format!("/threads/{id}/runs/wait"), start).await;
    assert_eq!(values["__interrupt__"][0]["value"], json!({"question": "Deploy?"}));
    (server, id)
}

async fn command(server: &Server, id: &str, command: Value) -> Vec<String> {
    let body = json!({"assistant_id": "agent", "command": command});
    said(&server.post(&format!("/threads/{id}/runs/wait"), body).await)
}

fn said(values: &Value) -> Vec<String> {
    let messages = values["messages"].as_array().unwrap_or_else(|| panic!("no messages in {values}"));
    messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

fn user(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

/// As LangGraph has it: a question belongs to the state it is asked in, and makes no further one.
#[tokio::test]
async fn a_question_is_at_the_state_it_is_asked_in() {
    let (server, id) = asked(&["done"]).await;
    let history = async || {
        let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
        states.as_array().unwrap().clone()
    };
    let steps = |states: &[Value]| -> Vec<Value> {
        states.iter().map(|state| json!([state["metadata"]["step"], state["next"]])).collect()
    };
    let waiting = history().await;
    let run = server.get(&format!("/threads/{id}/runs")).await[0]["run_id"].as_str().unwrap().to_owned();
    let stream = format!("/threads/{id}/runs/{run}/stream?stream_mode=tasks");
    let stream = server.request(reqwest::Method::GET, &stream).header("last-event-id", "-1");
    let told = stream.send().await.unwrap().text().await.unwrap();
    let task = waiting[0]["tasks"][0]["id"].as_str().unwrap();
    assert!(told.contains(task), "the task that asks has one id: {task} in {told}");
    let first = [json!([1, ["tools"]]), json!([0, ["model"]]), json!([-1, ["__start__"]])];
    assert_eq!(steps(&waiting), first);
    assert_eq!(waiting[0]["interrupts"][0]["value"], json!({"question": "Deploy?"}));
    assert_eq!(
        command(&server, &id, json!({"resume": "yes"})).await,
        ["go", "", "Human answered: yes", "done"]
    );
    let over = history().await;
    let all = [json!([3, []]), json!([2, ["model"]])].into_iter().chain(first).collect::<Vec<_>>();
    assert_eq!(steps(&over), all);
    for pair in over.windows(2) {
        assert_eq!(pair[0]["parent_checkpoint"], pair[1]["checkpoint"], "each follows the next of the list");
    }
    let result = &over[2]["tasks"][0]["result"]["messages"][0]["content"];
    assert_eq!(result, "Human answered: yes");
    let at = over[2]["checkpoint_id"].as_str().unwrap();
    let alone = server.get(&format!("/threads/{id}/state/{at}")).await;
    assert_eq!(alone["tasks"][0]["result"], over[2]["tasks"][0]["result"]);
    let page = json!({"limit": 1, "before": {"configurable": {"checkpoint_id": over[1]["checkpoint_id"]}}});
    let page = server.post(&format!("/threads/{id}/history"), page).await;
    assert_eq!(page[0]["checkpoint_id"], over[2]["checkpoint_id"]);
    server.close().await;
}

#[tokio::test]
async fn whoever_writes_past_a_question_closes_it_and_others_leave_it_open() {
    let answer =
        json!({"messages": [{"role": "tool", "tool_call_id": "c1", "name": "ask_human", "content": "no"}]});
    for (update, next, open) in [
        (json!({"values": null, "as_node": "__end__"}), json!([]), 0),
        (json!({"values": answer, "as_node": "tools"}), json!(["model"]), 0),
        (json!({"values": answer}), json!(["model"]), 0),
        (json!({"values": user("something else"), "as_node": "__start__"}), json!(["model"]), 0),
        (json!({"values": user("by the way")}), json!(["tools"]), 1),
        (json!({"values": {}}), json!(["tools"]), 1),
        (json!({"values": {"messages": [{"role": "system", "content": "note"}]}}), json!(["tools"]), 1),
    ] {
        let (server, id) = asked(&[]).await;
        server.post(&format!("/threads/{id}/state"), update.clone()).await;
        let state = server.get(&format!("/threads/{id}/state")).await;
        let asked = state["interrupts"].as_array().unwrap().len();
        assert_eq!((&state["next"], asked), (&next, open), "{update}");
        let thread = server.get(&format!("/threads/{id}")).await;
        assert_eq!(thread["interrupts"].as_object().unwrap().len(), open, "{update}");
        server.close().await;
    }
    let (server, id) = asked(&["other things"]).await;
    server
        .post(&format!("/threads/{id}/runs/wait"), json!({"assistant_id": "agent", "input": user("hi")}))
        .await;
    let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 3})).await;
    assert_eq!((&states[2]["next"], &states[2]["interrupts"]), (&json!(["__start__"]), &json!([])));
    server.close().await;
}

/// The answer is heard, and what was said beside it stands behind the result.
#[tokio::test]
async fn what_is_said_beside_an_answer_does_not_drown_it() {
    let (server, id) = asked(&["done"]).await;
    let heard = command(&server, &id, json!({"resume": "yes", "update": user("be quick")})).await;
    assert_eq!(heard, ["go", "", "Human answered: yes", "be quick", "done"]);
    server.close().await;
}

/// What chats send when somebody marks a question as resolved.
#[tokio::test]
async fn a_question_is_closed_by_going_to_the_end() {
    for goto in [json!("__end__"), json!(["__end__"])] {
        let (server, id) = asked(&["hello"]).await;
        let heard = command(&server, &id, json!({"goto": goto, "update": user("never mind")})).await;
        assert_eq!(heard, ["go", "", "never mind"]);
        let state = server.get(&format!("/threads/{id}/state")).await;
        assert_eq!((&state["next"], &state["interrupts"]), (&json!([]), &json!([])));
        assert_eq!(server.get(&format!("/threads/{id}")).await["status"], "idle");
        let next = json!({"assistant_id": "agent", "input": user("hi")});
        let heard = said(&server.post(&format!("/threads/{id}/runs/wait"), next).await);
        assert_eq!(heard.last().unwrap(), "hello");
        server.close().await;
    }
    let (server, id) = asked(&["done"]).await;
    assert_eq!(command(&server, &id, json!({"goto": "__end__"})).await, ["go", ""]);
    assert_eq!(command(&server, &id, json!({"resume": "yes"})).await, ["go", ""], "too late");
    let elsewhere = json!({"assistant_id": "agent", "command": {"goto": "tools"}});
    let (status, told) =
        server.call(reqwest::Method::POST, &format!("/threads/{id}/runs/wait"), elsewhere).await;
    assert_eq!(status, 422, "{told}");
    server.close().await;
}

/// Where a thread went on twice from one state, what came of it first is told there, and nothing of what was before.
#[tokio::test]
async fn a_state_that_was_gone_on_from_twice_says_what_came_of_it_first() {
    let server = Server::new(&["one", "two", "two again"]).await;
    let id = server.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    for words in ["first", "second"] {
        server.post(&wait, json!({"assistant_id": "agent", "input": user(words)})).await;
    }
    let history = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    let asked = history.as_array().unwrap().iter().find(|state| state["next"] == json!(["model"])).unwrap();
    let at = asked["checkpoint_id"].clone();
    let again = json!({"assistant_id": "agent", "input": null, "checkpoint": {"checkpoint_id": at}});
    assert_eq!(said(&server.post(&wait, again).await), ["first", "one", "second", "two again"]);
    let history = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    let state = history.as_array().unwrap().iter().find(|state| state["checkpoint_id"] == at).unwrap();
    let alone = server.get(&format!("/threads/{id}/state/{}", at.as_str().unwrap())).await;
    for state in [state, &alone] {
        assert_eq!(said(&state["tasks"][0]["result"]), ["two"], "{}", state["tasks"]);
    }
    server.close().await;
}

/// A write that settles the calls, or changes them, settles what they asked.
#[tokio::test]
async fn questions_go_with_the_calls_that_asked_them() {
    let result = json!({"type": "tool", "tool_call_id": "c1", "name": "ask_human", "content": "by hand"});
    let words = json!({"role": "user", "content": "words"});
    let (server, id) = asked(&["done"]).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    let call = state["values"]["messages"][1].clone();
    let remove = json!({"type": "remove", "id": call["id"], "content": ""});
    let all = json!({"type": "remove", "id": "__remove_all__", "content": ""});
    let edited = {
        let mut call = call.clone();
        call["tool_calls"][0]["args"] = json!({"question": "Now?"});
        call
    };
    for (written, left, next, open) in [
        (json!([words, result]), vec!["go", "", "by hand", "words"], "model", 0),
        (json!([remove, words]), vec!["go", "words"], "model", 0),
        (json!([all, words]), vec!["words"], "model", 0),
        (json!([edited, words]), vec!["go", "", "words"], "tools", 0),
    ] {
        let copy = server.post(&format!("/threads/{id}/copy"), json!({})).await;
        assert_eq!(copy["status"], "interrupted");
        let copy = copy["thread_id"].as_str().unwrap();
        server.post(&format!("/threads/{copy}/state"), json!({"values": {"messages": written}})).await;
        let state = server.get(&format!("/threads/{copy}/state")).await;
        assert_eq!(said(&state["values"]), left, "{written}");
        let asked = state["interrupts"].as_array().unwrap().len();
        assert_eq!((&state["next"], asked), (&json!([next]), open), "{written}");
    }
    // What waits can be taken back, and comes before what is said later.
    let first = json!({"role": "user", "content": "first", "id": "m1"});
    server.post(&format!("/threads/{id}/state"), json!({"values": {"messages": [first]}})).await;
    server.post(&format!("/threads/{id}/state"), json!({"values": user("second")})).await;
    let gone = json!({"values": {"messages": [{"type": "remove", "id": "m1", "content": ""}]}});
    server.post(&format!("/threads/{id}/state"), gone.clone()).await;
    let (status, _) = server.call(reqwest::Method::POST, &format!("/threads/{id}/state"), gone).await;
    assert_eq!(status, 400, "there is none of that id");
    let last = json!({"values": user("third"), "as_node": "__start__"});
    server.post(&format!("/threads/{id}/state"), last).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(said(&state["values"]), ["go", "", "second", "third"]);
    server.close().await;
}

/// Words that are written while a call asks can be read at once, and have their place when it has its result.
#[tokio::test]
async fn what_is_written_while_a_call_asks_does_not_drown_it() {
    let beside = async |then: &[&str]| {
        let (server, id) = asked(then).await;
        server.post(&format!("/threads/{id}/state"), json!({"values": user("be quick")})).await;
        let state = server.get(&format!("/threads/{id}/state")).await;
        assert_eq!(said(&state["values"]), ["go", "", "be quick"]);
        (server, id)
    };
    let (server, id) = beside(&["done"]).await;
    let heard = command(&server, &id, json!({"resume": "yes"})).await;
    assert_eq!(heard, ["go", "", "Human answered: yes", "be quick", "done"]);
    server.close().await;

    let (server, id) = beside(&["other things"]).await;
    let other = json!({"assistant_id": "agent", "input": user("never mind")});
    let heard = said(&server.post(&format!("/threads/{id}/runs/wait"), other).await);
    assert_eq!(heard, ["go", "", "be quick", "never mind", "other things"]);
    server.close().await;

    let (server, id) = beside(&[]).await;
    server.post(&format!("/threads/{id}/state"), json!({"values": null, "as_node": "__end__"})).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!((said(&state["values"]).len(), &state["interrupts"]), (3, &json!([])));
    server.close().await;
}

#[tokio::test]
async fn writes_without_an_answer_are_nobodys_words() {
    let (server, id) = asked(&["done"]).await;
    let note = json!({"update": {"messages": [{"role": "system", "content": "note"}]}});
    assert_eq!(command(&server, &id, note).await, ["go", "", "note"], "the same is asked again");
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["interrupts"].as_array().unwrap().len(), 1);
    assert_eq!(command(&server, &id, json!({"resume": "yes"})).await.len(), 5);
    let idle = command(&server, &id, json!({"update": user("written, not said")})).await;
    assert_eq!(idle.last().unwrap(), "written, not said");
    server.close().await;
}

#[tokio::test]
async fn a_run_that_was_told_to_stop_asks_nothing_and_says_who_stopped_it() {
    let server = Server::playing(vec![ScriptedTurn::text("one"), ScriptedTurn::Hang]).await;
    let id = server.thread().await;
    let mut start = json!({"assistant_id": "agent", "input": user("go"), "interrupt_before": ["model"]});
    let values = server.post(&format!("/threads/{id}/runs/wait"), start.clone()).await;
    assert!(values.get("__interrupt__").is_none(), "{values}");
    assert_eq!(server.get(&format!("/threads/{id}")).await["error"], Value::Null);
    start = json!({"assistant_id": "agent", "input": null});
    server.post(&format!("/threads/{id}/runs/wait"), start).await;
    let run = json!({"assistant_id": "agent", "input": user("again")});
    let run = server.post(&format!("/threads/{id}/runs"), run).await;
    let run = run["run_id"].as_str().unwrap();
    server.post(&format!("/threads/{id}/runs/{run}/cancel?wait=true"), json!({})).await;
    let thread = server.get(&format!("/threads/{id}")).await;
    assert_eq!(
        (&thread["status"], &thread["error"]["error"]),
        (&json!("interrupted"), &json!("UserInterrupt"))
    );
    assert_eq!(thread["config"], json!({"configurable": {}}));
    server.close().await;
}

/// As LangChain.js and OpenAI's clients write them.
#[tokio::test]
async fn messages_are_heard_in_every_spelling() {
    let server = Server::new(&["hello", "sunny"]).await;
    let id = server.thread().await;
    let object = json!({
        "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"],
        "kwargs": {"content": "hi", "additional_kwargs": {}, "response_metadata": {}},
    });
    let run = |messages: Value| json!({"assistant_id": "agent", "input": {"messages": messages}});
    let path = format!("/threads/{id}/runs/wait");
    assert_eq!(said(&server.post(&path, run(json!([object]))).await), ["hi", "hello"]);
    let function = json!({"name": "get_weather", "arguments": "{\"city\": \"x\"}"});
    let calls = json!([{"id": "t1", "type": "function", "function": function}]);
    let told = json!([
        {"role": "assistant", "content": null, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "t1", "content": "sun"},
        {"role": "user", "content": "so?"},
    ]);
    let values = server.post(&path, run(told)).await;
    let call = json!({"name": "get_weather", "args": {"city": "x"}, "id": "t1", "type": "tool_call"});
    assert_eq!(values["messages"][2]["tool_calls"], json!([call]));
    server.close().await;
}

/// Each call is told for itself, also where several were made together.
#[tokio::test]
async fn calls_made_together_are_told_one_by_one_and_failures_end_their_task() {
    let call = |id: &str| hart_types::ToolCall::new(id, "nothing_of_the_kind", serde_json::Map::new());
    let server = Server::playing(vec![ScriptedTurn::calls([call("a"), call("b")])]).await;
    let id = server.thread().await;
    let modes = json!(["updates", "tasks", "messages-tuple"]);
    let body = json!({"assistant_id": "agent", "input": user("hi"), "stream_mode": modes});
    let stream = server.request(reqwest::Method::POST, &format!("/threads/{id}/runs/stream"));
    let told = stream.body(body.to_string()).send().await.unwrap().text().await.unwrap();
    let events = frames(&told);
    let of = |name: &str| {
        events.iter().filter(|(event, _)| event == name).map(|(_, data)| data).collect::<Vec<_>>()
    };
    let results = of("updates").into_iter().filter_map(|update| update["tools"]["messages"].as_array());
    let lengths: Vec<usize> = results.map(Vec::len).collect();
    assert_eq!(lengths, [1, 1]);
    let of_calls: Vec<&str> = events
        .iter()
        .filter(|(_, data)| {
            !data["tools"].is_null() || (data["name"] == "tools" && !data["result"].is_null())
        })
        .map(|(event, _)| event.as_str())
        .collect();
    assert_eq!(of_calls, ["updates", "tasks", "updates", "tasks"], "what a call wrote, and that it is done");
    let of_tools: Vec<&Value> = of("messages").into_iter().filter(|told| told[0]["type"] == "tool").collect();
    let paths: Vec<&Value> = of_tools.iter().map(|told| &told[1]["langgraph_path"]).collect();
    assert_eq!(paths, [&json!(["__pregel_push", 0, false]), &json!(["__pregel_push", 1, false])]);
    // The model has nothing more to say, which is a failure here.
    let tasks = of("tasks");
    let last = tasks.last().unwrap();
    assert_eq!(last["name"], "model");
    assert!(last["error"]["message"].is_string() && last["error"]["error"].is_string(), "{last}");
    server.close().await;
}

/// Two calls that ask are two questions, and the state at which they are asked follows the one before it.
#[tokio::test]
async fn questions_asked_together_are_told_one_by_one() {
    let call = |id: &str| {
        let arguments = json!({"question": id}).as_object().unwrap().clone();
        hart_types::ToolCall::new(id, "ask_human", arguments)
    };
    let server = Server::playing(vec![ScriptedTurn::calls([call("a"), call("b")])]).await;
    let id = server.thread().await;
    let modes = json!(["updates", "checkpoints"]);
    let body = json!({"assistant_id": "agent", "input": user("hi"), "stream_mode": modes});
    let stream = server.request(reqwest::Method::POST, &format!("/threads/{id}/runs/stream"));
    let told = frames(&stream.body(body.to_string()).send().await.unwrap().text().await.unwrap());
    let asked: Vec<&Value> = told.iter().map(|(_, data)| &data["__interrupt__"]).collect();
    let asked: Vec<&Value> = asked.into_iter().filter(|asked| !asked.is_null()).collect();
    assert_eq!(asked.iter().map(|one| &one[0]["value"]["question"]).collect::<Vec<_>>(), ["a", "b"]);
    let last = told.iter().rfind(|(event, _)| event == "checkpoints").map(|(_, data)| data).unwrap();
    let state = server.get(&format!("/threads/{id}/state")).await;
    let ids = |key: &str| &last[key]["configurable"]["checkpoint_id"];
    assert_eq!(ids("config"), &state["checkpoint_id"]);
    assert_eq!(ids("parent_config"), &state["parent_checkpoint_id"]);
    server.close().await;
}

/// Whoever asks for no mode in particular is told what everybody is.
#[tokio::test]
async fn no_mode_is_the_default_one() {
    let server = Server::new(&["hello"]).await;
    let id = server.thread().await;
    let body = json!({"assistant_id": "agent", "input": user("hi"), "stream_mode": []});
    let stream = server.request(reqwest::Method::POST, &format!("/threads/{id}/runs/stream"));
    let told = stream.body(body.to_string()).send().await.unwrap().text().await.unwrap();
    assert!(told.contains("event: values"), "{told}");
    server.close().await;
}

/// A state keeps its name while a run stops there, asks again and goes on; streams and lists call it the same.
#[tokio::test]
async fn a_state_has_one_name_whoever_tells_of_it() {
    let (server, id) = asked(&["done"]).await;
    let history = async || {
        let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
        states.as_array().unwrap().iter().map(named).collect::<Vec<_>>()
    };
    let told = async |body: Value| {
        let request = server.request(reqwest::Method::POST, &format!("/threads/{id}/runs/stream"));
        let told = frames(&request.body(body.to_string()).send().await.unwrap().text().await.unwrap());
        let states = told.into_iter().filter(|(event, _)| event == "checkpoints").map(|(_, state)| {
            let place = |key: &str| state.pointer(&format!("/{key}/configurable/checkpoint_id")).cloned();
            let (at, parent) = (place("config").unwrap(), place("parent_config").unwrap_or_default());
            let about = &state["metadata"];
            let asked = &state["tasks"][0]["interrupts"][0]["id"];
            json!([at, parent, about["step"], about["source"], state["next"], asked])
        });
        states.collect::<Vec<_>>()
    };
    let run = |more: Value| {
        let mut body = json!({"assistant_id": "agent", "stream_mode": ["checkpoints"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let waiting = history().await;
    let of_first = server.get(&format!("/threads/{id}/runs")).await[0]["run_id"].as_str().unwrap().to_owned();
    let stream = format!("/threads/{id}/runs/{of_first}/stream?stream_mode=checkpoints");
    let stream = server.request(reqwest::Method::GET, &stream).header("last-event-id", "-1");
    let first = frames(&stream.send().await.unwrap().text().await.unwrap());
    assert_eq!(first.iter().filter(|(event, _)| event == "checkpoints").count(), waiting.len());
    // Asked again, with nothing said: the state it stands at, and no other one.
    assert_eq!(told(run(json!({"input": null}))).await, waiting[..1]);
    assert_eq!(history().await, waiting);
    // A note by hand is a state of its own, and stays one when it is asked there again.
    server.post(&format!("/threads/{id}/state"), json!({"values": {"title": "Deployment"}})).await;
    let noted = history().await;
    assert_eq!((&noted[0][3], &noted[1..]), (&json!("update"), &waiting[..]));
    assert_eq!(told(run(json!({"input": null}))).await, noted[..1]);
    assert_eq!(history().await, noted);
    // It is answered where it is asked, by the name it has.
    let at = waiting[0][0].as_str().unwrap();
    let asked = server.get(&format!("/threads/{id}/state/{at}")).await;
    assert_eq!(asked["interrupts"][0]["value"]["question"], "Deploy?");
    let answered = told(run(json!({"command": {"resume": "yes"}, "checkpoint_id": at}))).await;
    assert_eq!(answered[0], waiting[0]);
    assert_eq!(answered[1][1], waiting[0][0]);
    let over = history().await;
    assert!(answered[1..].iter().eq(over[..answered.len() - 1].iter().rev()), "{answered:?} {over:?}");
    server.close().await;
}

/// What lists and streams say of a state alike.
fn named(state: &Value) -> Value {
    let (at, parent) = (&state["checkpoint_id"], &state["parent_checkpoint_id"]);
    let (about, asked) = (&state["metadata"], &state["tasks"][0]["interrupts"][0]["id"]);
    json!([at, parent, about["step"], about["source"], state["next"], asked])
}

/// Where one call asks and another one is done, each is told for itself, and nothing is made or answered twice.
#[tokio::test]
async fn a_call_that_is_done_while_another_one_asks() {
    let call = |id: &str, tool: &str, args: Value| {
        hart_types::ToolCall::new(id, tool, args.as_object().unwrap().clone())
    };
    let calls = || {
        let ask = call("a", "ask_human", json!({"question": "Deploy?"}));
        ScriptedTurn::calls([ask, call("w", "get_weather", json!({"city": "Paris"}))])
    };
    let server = Server::playing(vec![calls(), ScriptedTurn::text("done")]).await;
    let id = server.thread().await;
    let start = json!({"assistant_id": "agent", "input": user("go")});
    server.post(&format!("/threads/{id}/runs/wait"), start).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    assert_eq!((&state["next"], &states[0]["tasks"]), (&json!(["tools"]), &state["tasks"]));
    let [asks, done] = state["tasks"].as_array().unwrap().as_slice() else { panic!("{state}") };
    assert_eq!(
        (&asks["result"], &asks["interrupts"][0]["value"]["question"]),
        (&Value::Null, &json!("Deploy?"))
    );
    assert_eq!((&done["path"], &done["interrupts"]), (&json!(["__pregel_push", 1, false]), &json!([])));
    assert_eq!(done["result"]["messages"][0]["content"], "It is sunny in Paris.");
    let answer = states[1]["tasks"][0]["result"]["messages"].as_array().unwrap();
    assert_eq!(answer.len(), 1, "the model's own words alone: {answer:?}");
    // By hand, and better: instead of what there was, not beside it.
    let rain = json!({"role": "tool", "tool_call_id": "w", "name": "get_weather", "content": "It rains."});
    server.post(&format!("/threads/{id}/state"), json!({"values": {"messages": [rain]}})).await;
    let heard = command(&server, &id, json!({"resume": "yes"})).await;
    assert_eq!(heard, ["go", "", "It rains.", "Human answered: yes", "done"]);
    let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    let results: Vec<&Value> = states[3]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["result"]["messages"][0]["content"])
        .collect();
    assert_eq!(results, [&Value::Null, &json!("It is sunny in Paris.")], "what was then, is then");
    server.close().await;
}

#[tokio::test]
async fn a_question_outlives_what_was_before_it() {
    let (server, id) = asked(&["done"]).await;
    let before = server.get(&format!("/threads/{id}/state")).await;
    let prune = json!({"thread_ids": [id], "strategy": "keep_latest"});
    assert_eq!(server.post("/threads/prune", prune).await["pruned_count"], 1);
    let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    assert_eq!(states.as_array().unwrap().len(), 1, "{states}");
    for key in ["checkpoint_id", "values", "next", "tasks", "interrupts"] {
        assert_eq!(states[0][key], before[key], "{key}");
    }
    let heard = command(&server, &id, json!({"resume": "yes"})).await;
    assert_eq!(heard, ["go", "", "Human answered: yes", "done"]);
    server.close().await;
}

/// Whoever goes back to where a thread was tells all who look that it is there.
#[tokio::test]
async fn a_thread_that_asks_again_at_an_older_state_is_there() {
    let (server, id) = asked(&["done"]).await;
    let state = async |at: &str| server.get(&format!("/threads/{id}/state{at}")).await;
    let history = async |body: Value| server.post(&format!("/threads/{id}/history"), body).await;
    let asking = state("").await["checkpoint_id"].as_str().unwrap().to_owned();
    command(&server, &id, json!({"resume": "yes"})).await;
    let one = history(json!({"checkpoint": {"checkpoint_id": asking}})).await;
    assert_eq!(one[0]["tasks"][0]["result"]["messages"][0]["content"], "Human answered: yes");
    let again = json!({"assistant_id": "agent", "input": null, "checkpoint_id": asking});
    server.post(&format!("/threads/{id}/runs/wait"), again).await;
    let (now, listed) = (state("").await, history(json!({"limit": 20})).await);
    assert_eq!((&now["checkpoint_id"], &now["next"]), (&json!(asking), &json!(["tools"])));
    assert_eq!((&now["tasks"][0]["result"], now["interrupts"].as_array().unwrap().len()), (&Value::Null, 1));
    assert_eq!(listed[0], now);
    assert_eq!(state(&format!("/{asking}")).await, now);
    assert_eq!(listed.as_array().unwrap().len(), 5, "no state twice");
    let page = history(json!({"limit": 20, "before": asking})).await;
    assert_eq!(page.as_array().unwrap()[..], listed.as_array().unwrap()[1..]);
    server.close().await;
}

/// What comes next at the state before an input is the input, whatever is said to it.
#[tokio::test]
async fn an_answer_to_a_state_before_the_input_takes_the_input_in() {
    let (server, id) = asked(&["hello"]).await;
    let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    let start = states.as_array().unwrap().last().unwrap()["checkpoint_id"].clone();
    let late = json!({"assistant_id": "agent", "command": {"resume": "yes"}, "checkpoint_id": start});
    assert_eq!(said(&server.post(&format!("/threads/{id}/runs/wait"), late).await), ["go", "hello"]);
    server.close().await;
    // Who speaks anew to a thread as it was before does not answer what it asks now.
    let (server, id) = asked(&["hello"]).await;
    let states = server.post(&format!("/threads/{id}/history"), json!({"limit": 20})).await;
    let start = states.as_array().unwrap().last().unwrap()["checkpoint_id"].clone();
    let config = json!({"configurable": {"checkpoint_id": start}});
    let edited = json!({"assistant_id": "agent", "input": user("come"), "config": config});
    let edited = json!({"id": 1, "method": "run.start", "params": edited});
    server.post(&format!("/threads/{id}/commands"), edited).await;
    let run = server.get(&format!("/threads/{id}/runs")).await[0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(said(&server.get(&format!("/threads/{id}/runs/{run}/join")).await), ["come", "hello"]);
    server.close().await;
}

#[tokio::test]
async fn what_is_said_to_come_next_comes_next() {
    let call = |id: &str| {
        let args = json!({"question": "Deploy?"}).as_object().unwrap().clone();
        hart_types::ToolCall::new(id, "ask_human", args)
    };
    let turns = || vec![ScriptedTurn::calls([call("a"), call("b")]), ScriptedTurn::text("done")];
    let server = Server::playing(turns()).await;
    let id = server.thread().await;
    let start = json!({"assistant_id": "agent", "input": user("go")});
    server.post(&format!("/threads/{id}/runs/wait"), start).await;
    let done =
        json!({"messages": [{"role": "tool", "tool_call_id": "a", "name": "ask_human", "content": "yes"}]});
    server.post(&format!("/threads/{id}/state"), json!({"values": done, "as_node": "tools"})).await;
    let state = server.get(&format!("/threads/{id}/state")).await;
    assert_eq!(state["next"], json!(["tools"]), "the other call waits");
    // An answer to nothing answers nothing.
    let go_on = json!({"assistant_id": "agent", "input": null});
    server.post(&format!("/threads/{id}/runs/wait"), go_on.clone()).await;
    let nothing = json!({"assistant_id": "agent", "command": {"resume": {}}});
    let values = server.post(&format!("/threads/{id}/runs/wait"), nothing).await;
    assert_eq!(values["__interrupt__"].as_array().unwrap().len(), 1, "{values}");
    // A breakpoint does not stop whoever goes on with what it is in front of.
    let mut stepping =
        json!({"assistant_id": "agent", "command": {"resume": "no"}, "interrupt_after": ["tools"]});
    server.post(&format!("/threads/{id}/runs/wait"), stepping.clone()).await;
    assert_eq!(server.get(&format!("/threads/{id}/state")).await["next"], json!(["model"]));
    stepping = json!({"assistant_id": "agent", "input": null, "interrupt_before": ["model"]});
    let heard = said(&server.post(&format!("/threads/{id}/runs/wait"), stepping).await);
    assert_eq!(heard, ["go", "", "yes", "Human answered: no", "done"]);
    server.close().await;
}
