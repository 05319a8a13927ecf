//! A conversation read, rated, counted, and gone on with from an earlier point.

use hart_testkit::Turn;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::World;

fn texts(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["content"]["content"].as_str().unwrap_or("…")).collect()
}

fn said(values: &Value) -> Vec<&str> {
    let messages = values["messages"].as_array().unwrap().iter();
    let shown = messages.filter(|message| message["additional_kwargs"]["hide_from_ui"] != true);
    shown.map(|message| message["content"].as_str().unwrap()).collect()
}

async fn talk() -> (World, String) {
    let ls = json!({"description": "l", "path": "/mnt/user-data/workspace"});
    let world = World::new([
        Turn::new().text("Hello.").usage(100, 10),
        Turn::new().tool_call("c1", "ls", ls).usage(200, 20),
        Turn::new().text("It is empty.").usage(300, 30),
    ])
    .await;
    let thread = world.thread().await;
    world.say(&thread, "Hi").await;
    world.say(&thread, "What is there?").await;
    (world, thread)
}

#[tokio::test]
async fn pages_of_what_was_said() {
    let (world, thread) = talk().await;
    let at = format!("/api/threads/{thread}/messages");
    let all = world.get(&at).await;
    assert_eq!(texts(&all)[..2], ["Hi", "Hello."]);
    let kinds: Vec<_> =
        all.as_array().unwrap().iter().map(|row| row["event_type"].as_str().unwrap()).collect();
    let (human, ai, tool) = ("llm.human.input", "llm.ai.response", "llm.tool.result");
    assert_eq!(kinds, [human, ai, human, ai, tool, ai]);
    assert_eq!(all[5]["metadata"]["usage"]["total_tokens"], 330);
    assert!(all[5]["feedback"].is_null() && all[3].get("feedback").is_none());
    let took = |row: usize| all[row]["content"]["additional_kwargs"].get("turn_duration");
    assert!(
        took(5).is_some_and(Value::is_u64) && took(3).is_none(),
        "the last answer says how long its run took"
    );
    // Backwards, every row once.
    let (mut met, mut before) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{at}/page?limit=4{before}")).await;
        let data = page["data"].as_array().unwrap().clone();
        met.splice(0..0, data);
        if page["has_more"] == false {
            assert!(page["next_before_seq"].is_null());
            break;
        }
        before = format!("&before_seq={}", page["next_before_seq"]);
    }
    assert_eq!(json!(met), all);
    let seq = &all[1]["seq"];
    assert_eq!(texts(&world.get(&format!("{at}?after_seq={seq}&limit=1")).await), ["What is there?"]);
    let run = all[5]["run_id"].as_str().unwrap();
    let of_run = world.get(&format!("/api/threads/{thread}/runs/{run}/messages")).await;
    assert_eq!(of_run["data"].as_array().unwrap().len(), 4);
    assert_eq!(world.get(&format!("/api/runs/{run}/messages")).await, of_run);
    let events =
        world.get(&format!("/api/threads/{thread}/runs/{run}/events?event_types=run.end,run.start")).await;
    let kinds: Vec<_> = events.as_array().unwrap().iter().map(|row| &row["event_type"]).collect();
    assert_eq!(kinds, ["run.start", "run.end"]);
    for wrong in ["?limit=0", "?limit=201", "?before_seq=x", "/page?after_seq=1"] {
        let (status, _) = world.call(Method::GET, &format!("{at}{wrong}"), Value::Null).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    }
}

#[tokio::test]
async fn what_a_thread_has_used() {
    let (world, thread) = talk().await;
    let usage = world.get(&format!("/api/threads/{thread}/token-usage")).await;
    assert_eq!((&usage["total_input_tokens"], &usage["total_output_tokens"]), (&json!(600), &json!(60)));
    assert_eq!((&usage["total_tokens"], &usage["total_runs"]), (&json!(660), &json!(2)));
    let models = usage["by_model"].as_object().unwrap();
    assert_eq!(models.values().collect::<Vec<_>>(), [&json!({"tokens": 660, "runs": 2})]);
    assert_eq!(usage["by_caller"], json!({"lead_agent": 660, "subagent": 0, "middleware": 0}));
    assert_eq!(usage["context_usage"]["token_count"], 330);
    let empty = world.thread().await;
    let usage = world.get(&format!("/api/threads/{empty}/token-usage")).await;
    assert_eq!((&usage["total_tokens"], &usage["context_usage"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn feedback_is_kept_shown_and_taken_back() {
    let (world, thread) = talk().await;
    let rows = world.get(&format!("/api/threads/{thread}/messages")).await;
    let run = rows[5]["run_id"].as_str().unwrap();
    let at = format!("/api/threads/{thread}/runs/{run}/feedback");
    let (status, kept) = world.call(Method::PUT, &at, json!({"rating": 1, "comment": "good"})).await;
    assert_eq!((status, &kept["rating"], &kept["run_id"]), (StatusCode::OK, &json!(1), &json!(run)));
    let (_, again) = world.call(Method::PUT, &at, json!({"rating": -1})).await;
    assert_eq!(again["feedback_id"], kept["feedback_id"], "it is the same one");
    world.post(&at, json!({"rating": 1, "message_id": "m"})).await;
    let stats = world.get(&format!("{at}/stats")).await;
    assert_eq!(stats, json!({"run_id": run, "total": 2, "positive": 1, "negative": 1}));
    let shown = world.get(&format!("/api/threads/{thread}/messages/page")).await;
    assert_eq!(shown["data"][5]["feedback"]["rating"], 1);
    assert_eq!(world.get(&format!("/api/runs/{run}/feedback")).await.as_array().unwrap().len(), 2);
    let one = format!("{at}/{}", kept["feedback_id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &one, Value::Null).await.0, StatusCode::OK);
    assert_eq!(world.call(Method::DELETE, &one, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.call(Method::DELETE, &at, Value::Null).await.0, StatusCode::OK);
    assert_eq!(world.get(&at).await, json!([]));
    let (status, answer) = world.call(Method::PUT, &at, json!({"rating": 5})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
}

#[tokio::test]
async fn an_answer_is_given_again_and_a_question_asked_in_other_words() {
    let (world, thread) = talk().await;
    let rows = world.get(&format!("/api/threads/{thread}/messages")).await;
    let answer = rows[5]["content"]["id"].as_str().unwrap();
    let prepare = format!("/api/threads/{thread}/runs/regenerate/prepare");
    let again = world.post(&prepare, json!({"message_id": answer})).await;
    assert_eq!(again["input"]["messages"][0]["content"], "What is there?");
    assert_eq!(again["target_run_id"], rows[5]["run_id"]);
    world.model.push(Turn::new().text("Nothing at all."));
    let run = json!({"assistant_id": "lead_agent", "input": again["input"], "checkpoint": again["checkpoint"],
        "metadata": again["metadata"]});
    let values = world.post(&format!("/threads/{thread}/runs/wait"), run).await;
    assert_eq!(said(&values), ["Hi", "Hello.", "What is there?", "Nothing at all."]);
    // The old way is not shown any more, but its run can still be read.
    let page = world.get(&format!("/api/threads/{thread}/messages/page")).await;
    assert_eq!(texts(&page["data"]), ["Hi", "Hello.", "What is there?", "Nothing at all."]);
    let old = rows[5]["run_id"].as_str().unwrap();
    let old = world.get(&format!("/api/threads/{thread}/runs/{old}/messages")).await;
    assert_eq!(texts(&old["data"]).last(), Some(&"It is empty."));

    // Both ways can be gone on with: a state that is written at the end of the old one makes it the thread's own again.
    let at = format!("/api/threads/{thread}/branches");
    let forks = world.get(&at).await["forks"].clone();
    assert_eq!((forks.as_array().unwrap().len(), &forks[0]["current"]), (1, &json!(1)), "{forks}");
    assert_eq!(forks[0]["message_id"], rows[2]["content"]["id"]);
    assert_eq!(forks[0]["ways"][0]["run_id"], rows[5]["run_id"]);
    let end = forks[0]["ways"][0]["checkpoint_id"].as_str().unwrap();
    let state = format!("/threads/{thread}/state");
    world.post(&state, json!({"values": null, "checkpoint_id": end, "as_node": "__end__"})).await;
    assert_eq!(said(&world.get(&state).await["values"]).last(), Some(&"It is empty."));
    assert_eq!(world.get(&at).await["forks"][0]["current"], 0);

    let first = rows[0]["content"]["id"].as_str().unwrap();
    let prepare = format!("/api/threads/{thread}/runs/edit-regenerate/prepare");
    let body = json!({"human_message_id": first, "replacement_text": "Good morning"});
    let edited = world.post(&prepare, body).await;
    let human = &edited["input"]["messages"][0];
    assert_eq!(human["content"], "Good morning");
    assert_eq!(human["id"], edited["replacement_human_message_id"]);
    assert_ne!(human["id"], first);
    assert_eq!(edited["source_message_ids"][0], first);
    world.model.push(Turn::new().text("Morning."));
    let run =
        json!({"assistant_id": "lead_agent", "input": edited["input"], "checkpoint": edited["checkpoint"]});
    let values = world.post(&format!("/threads/{thread}/runs/wait"), run).await;
    assert_eq!(said(&values), ["Good morning", "Morning."]);

    let none = json!({"message_id": "none"});
    let regenerate = format!("/api/threads/{thread}/runs/regenerate/prepare");
    assert_eq!(world.call(Method::POST, &regenerate, none).await.0, StatusCode::NOT_FOUND);
    let blank = json!({"human_message_id": first, "replacement_text": " "});
    assert_eq!(world.call(Method::POST, &prepare, blank).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    world.model.push(Turn::hang());
    let run = json!({"assistant_id": "lead_agent", "input": {"messages": "hi"}});
    world.post(&format!("/threads/{thread}/runs"), run).await;
    let busy = json!({"message_id": human["id"]});
    assert_eq!(world.call(Method::POST, &regenerate, busy).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_branch_goes_its_own_way() {
    let (world, thread) = talk().await;
    world.upload(&thread, &[("note.txt", b"note")]).await;
    let rows = world.get(&format!("/api/threads/{thread}/messages")).await;
    let (hello, run) = (rows[1]["content"]["id"].as_str().unwrap(), &rows[0]["run_id"]);
    let at = format!("/api/threads/{thread}/branches");
    let made = world.post(&at, json!({"message_id": hello, "message_ids": [], "title": "Other way"})).await;
    let branch = made["thread_id"].as_str().unwrap();
    assert_eq!(made["parent_thread_id"], json!(thread));
    let state = world.get(&format!("/threads/{branch}/state")).await;
    assert_eq!(
        (said(&state["values"]), &state["values"]["title"]),
        (vec!["Hi", "Hello."], &json!("Other way"))
    );
    let history = world.post(&format!("/threads/{branch}/history"), json!({"limit": 100})).await;
    let of_others = |step: &&Value| step["metadata"]["run_id"] != *run;
    assert_eq!(history.as_array().unwrap().iter().filter(of_others).count(), 1, "only the title is new");
    assert_eq!(world.get(&format!("/api/threads/{branch}/uploads/list")).await["count"], 1);
    // The frontend asks this of every answer that it shows, also of those the branch took over.
    let changes = format!("/api/threads/{branch}/runs/{}/workspace-changes", run.as_str().unwrap());
    assert_eq!(world.get(&changes).await["available"], false);
    let (status, _) = world
        .call(Method::GET, &format!("/api/threads/{branch}/runs/none/workspace-changes"), json!({}))
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    world.model.push(Turn::new().text("Elsewhere."));
    let values = world.say(branch, "And here?").await;
    assert_eq!(said(&values), ["Hi", "Hello.", "And here?", "Elsewhere."]);
    let original = world.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(said(&original["values"]).last(), Some(&"It is empty."));
    let (status, _) = world.call(Method::POST, &at, json!({"message_id": "none"})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_a_subagent_did_can_be_read_later() {
    let work = json!({"description": "Look around", "prompt": "Look.", "subagent_type": "general-purpose"});
    let ls = json!({"description": "l", "path": "/mnt/user-data/workspace"});
    let settings = json!({"subagents": {"enabled": true}, "title": {"enabled": false}});
    let world = World::with(
        settings,
        [
            Turn::new().tool_call("a", "task", work),
            Turn::new().text("Looking.").tool_call("l", "ls", ls),
            Turn::new().text("Nothing there."),
            Turn::new().text("Done."),
        ],
    )
    .await;
    let thread = world.thread().await;
    world.say(&thread, "Go").await;
    let rows = world.get(&format!("/api/threads/{thread}/messages")).await;
    let events = format!("/api/threads/{thread}/runs/{}/events", rows[0]["run_id"].as_str().unwrap());
    let steps = world.get(&format!("{events}?event_types=subagent.step&task_id=a&limit=500")).await;
    let said: Vec<_> = steps.as_array().unwrap().iter().map(|row| &row["content"]["text"]).collect();
    assert_eq!((said.first(), said.last()), (Some(&&json!("Looking.")), Some(&&json!("Nothing there."))));
    assert_eq!(steps[0]["content"]["tool_calls"][0]["name"], "ls");
    assert_eq!((&steps[0]["metadata"]["task_id"], &steps[0]["category"]), (&json!("a"), &json!("subagent")));
    // By pages, as the card asks for them.
    let first = world.get(&format!("{events}?event_types=subagent.step&limit=1")).await;
    let behind = format!("{events}?event_types=subagent.step&after_seq={}", first[0]["seq"]);
    assert_eq!(world.get(&behind).await.as_array().unwrap().len() + 1, said.len());
    assert_eq!(world.get(&format!("{events}?event_types=subagent.step&task_id=b")).await, json!([]));
    let ends = world.get(&format!("{events}?event_types=subagent.start,subagent.end")).await;
    let began = ends[0]["content"]["started_at"].clone();
    assert!(began.is_string(), "{ends}");
    assert_eq!(
        ends[0]["content"],
        json!({"task_id": "a", "description": "Look around", "subagent_type": "general-purpose", "started_at": began})
    );
    assert_eq!(ends[1]["content"]["status"], "completed");
}

#[tokio::test]
async fn a_thread_is_compacted_on_request() {
    let long = "with many words, ".repeat(100);
    let world = World::new((0..6).map(|n| Turn::new().text(format!("Answer {n} {long}")))).await;
    let thread = world.thread().await;
    let at = format!("/api/threads/{thread}/compact");
    let fresh = world.post(&at, json!({})).await;
    assert_eq!((&fresh["compacted"], &fresh["reason"]), (&json!(false), &json!("nothing_to_compact")));
    for n in 0..6 {
        world.say(&thread, &format!("Question {n} {long}")).await;
    }
    world.model.push(Turn::new().text("They talked about numbers."));
    let keep = json!({"keep": {"type": "messages", "value": 2}});
    let done = world.post(&at, keep).await;
    assert_eq!((&done["compacted"], &done["summary_updated"]), (&json!(true), &json!(true)), "{done}");
    assert!(done["removed_message_count"].as_u64().unwrap() > 4, "{done}");
    world.model.push(Turn::new().text("Yes."));
    world.say(&thread, "Still there?").await;
    let shown = String::from_utf8_lossy(&world.model.last_request().raw).into_owned();
    assert!(shown.contains("They talked about numbers.") && !shown.contains("Question 1"), "{shown}");
    let all = world.get(&format!("/api/threads/{thread}/messages")).await;
    assert!(texts(&all)[0].starts_with("Question 0"), "nothing is lost");
}

#[tokio::test]
async fn questions_to_ask_next_and_better_words() {
    let (world, thread) = talk().await;
    let config = world.get("/api/suggestions/config").await;
    assert_eq!(config, json!({"enabled": true, "max_suggestions": 3}));
    world.model.push(Turn::new().text(r#"["Why?", "How?", "When?", "Where?"]"#));
    let at = format!("/api/threads/{thread}/suggestions");
    let spoken = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]);
    let found = world.post(&at, json!({"messages": spoken, "n": 2})).await;
    assert_eq!(found, json!({"suggestions": ["Why?", "How?"]}));
    assert!(world.model.last_request().texts_of("user")[0].contains("assistant: Hello."));
    world.model.push(Turn::status(401));
    assert_eq!(world.post(&at, json!({"messages": spoken})).await, json!({"suggestions": []}));
    assert_eq!(world.post(&at, json!({"messages": []})).await, json!({"suggestions": []}));
    world.model.push(Turn::new().text("Please list the files."));
    let polished = world.post("/api/input-polish", json!({"text": "list files pls"})).await;
    assert_eq!(polished, json!({"rewritten_text": "Please list the files.", "changed": true}));

    let off = json!({"suggestions": {"enabled": false}, "input_polish": {"enabled": false}});
    let world = World::with(off, []).await;
    let thread = world.thread().await;
    assert_eq!(world.get("/api/suggestions/config").await["enabled"], false);
    let at = format!("/api/threads/{thread}/suggestions");
    assert_eq!(world.post(&at, json!({"messages": spoken})).await, json!({"suggestions": []}));
    let (status, answer) = world.call(Method::POST, "/api/input-polish", json!({"text": "t"})).await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{answer}");
}

#[tokio::test]
async fn what_subagents_did_is_read_again_step_by_step() {
    let task = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    let world = World::with(
        json!({"subagents": {"enabled": true}}),
        [
            Turn::new().tool_call("t1", "task", task),
            Turn::new().text("Looking.").tool_call("c1", "ls", json!({"path": "/mnt/user-data/workspace"})),
            Turn::new().text("Nothing there."),
            Turn::new().text("Done."),
        ],
    )
    .await;
    let thread = world.thread().await;
    world.say(&thread, "Go").await;
    let runs = world.get(&format!("/threads/{thread}/runs")).await;
    let at = format!("/api/threads/{thread}/runs/{}/events", runs[0]["run_id"].as_str().unwrap());
    let steps = world.get(&format!("{at}?event_types=subagent.step&task_id=t1&limit=200")).await;
    let steps = steps.as_array().unwrap();
    let told: Vec<_> =
        steps.iter().map(|step| (&step["content"]["kind"], &step["content"]["message_index"])).collect();
    let (ai, tool) = (json!("ai"), json!("tool"));
    assert_eq!(told, [(&ai, &json!(1)), (&tool, &json!(2)), (&ai, &json!(3))]);
    assert_eq!(steps[0]["content"]["tool_calls"][0]["name"], "ls");
    assert_eq!(
        (&steps[1]["content"]["tool_name"], &steps[1]["metadata"]["task_id"]),
        (&json!("ls"), &json!("t1"))
    );
    assert_eq!(steps[2]["content"]["text"], "Nothing there.");
    // Page by page, every step once.
    let mut after = String::new();
    let mut met = Vec::new();
    loop {
        let page = world.get(&format!("{at}?event_types=subagent.step&task_id=t1&limit=1{after}")).await;
        let Some(step) = page.as_array().unwrap().first().cloned() else { break };
        after = format!("&after_seq={}", step["seq"]);
        met.push(step);
    }
    assert_eq!(&met, steps);
    let ends = world.get(&format!("{at}?event_types=subagent.start,subagent.end")).await;
    assert_eq!(
        (&ends[0]["content"]["description"], &ends[1]["content"]["status"]),
        (&json!("look"), &json!("completed"))
    );
    assert_eq!(world.get(&format!("{at}?event_types=subagent.step&task_id=nobody")).await, json!([]));
}
