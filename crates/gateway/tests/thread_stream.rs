//! Joining a thread: all its runs, and what is changed between them.

use hart_models::ScriptedTurn;
use reqwest::Method;
use serde_json::{Value, json};

use crate::lines::{Line, Lines};
use crate::support::Server;

fn says(text: &str, modes: &[&str]) -> Value {
    let input = json!({"messages": [{"role": "user", "content": text}]});
    json!({"assistant_id": "agent", "input": input, "stream_mode": modes})
}

async fn join(server: &Server, thread: &str, query: &str, last: Option<&str>) -> Lines {
    let request = server.request(Method::GET, &format!("/threads/{thread}/stream{query}"));
    Lines::open(match last {
        Some(last) => request.header("last-event-id", last),
        None => request,
    })
    .await
}

fn is_done(line: &Line) -> bool {
    line.data["status"] == "run_done"
}

#[tokio::test]
async fn all_runs_are_told_live_and_again() {
    let server =
        Server::playing(vec![ScriptedTurn::text("one two"), ScriptedTurn::text("three four five")]).await;
    let thread = server.thread().await;
    let mut live = join(&server, &thread, "", None).await;
    let runs = format!("/threads/{thread}/runs/wait");
    server.post(&runs, says("a", &["updates"])).await;
    let mut told = live.until(is_done).await;
    // The old mode repeats what was said so far; it must be right for whoever comes back in its middle.
    server.post(&runs, says("b", &["messages"])).await;
    told.extend(live.until(is_done).await);
    let names: Vec<&str> = told.iter().map(|line| line.event.as_str()).collect();
    assert_eq!(names[..4], ["metadata", "updates", "metadata", "metadata"]);
    assert!(names[4..].iter().all(|name| name.starts_with("messages/") || *name == "metadata"), "{names:?}");
    assert!(told.iter().all(|line| line.event != "end"));
    let last = &told.last().unwrap().id;
    let mut again = join(&server, &thread, "?stream_mode=run_modes", Some("-")).await;
    assert_eq!(again.until(|line| line.id == *last).await, told);
    for (at, line) in told.iter().enumerate().rev().skip(1) {
        let mut rest = join(&server, &thread, "", Some(&line.id)).await;
        assert_eq!(rest.until(|line| line.id == *last).await, told[at + 1..], "after {}", line.id);
    }
    server.close().await;
}

#[tokio::test]
async fn beginnings_ends_and_changes_of_state() {
    let server = Server::playing(vec![ScriptedTurn::text("one")]).await;
    let thread = server.thread().await;
    let mut lines = join(&server, &thread, "?stream_modes=lifecycle,state_update", None).await;
    server.post(&format!("/threads/{thread}/runs/wait"), says("a", &["values", "messages-tuple"])).await;
    let values = json!({"messages": [{"role": "user", "content": "edited"}]});
    server.post(&format!("/threads/{thread}/state"), json!({ "values": values })).await;
    let told = lines.until(|line| line.event == "state_update").await;
    let names: Vec<&str> = told.iter().map(|line| line.event.as_str()).collect();
    assert_eq!(names, ["metadata", "metadata", "state_update"]);
    assert!(told[0].data["run_id"].is_string() && is_done(&told[1]));
    let update = &told[2].data;
    assert_eq!(update["thread_id"], thread.as_str());
    assert_eq!(update["state"]["values"]["messages"].as_array().unwrap().len(), 3);
    assert_eq!(update["state"]["metadata"]["source"], "update");
    // Whoever was away for it is told when coming back, and nobody twice.
    let modes = "?stream_modes=lifecycle,state_update";
    let mut back = join(&server, &thread, modes, Some(&told[1].id)).await;
    assert_eq!(back.until(|line| line.event == "state_update").await.last().unwrap().data, told[2].data);
    let mut back = join(&server, &thread, modes, Some(&told[2].id)).await;
    server.post(&format!("/threads/{thread}/state"), json!({ "values": values })).await;
    let next = back.until(|line| line.event == "state_update").await;
    let messages = next.iter().find(|line| line.event == "state_update").unwrap();
    assert_eq!(messages.data["state"]["values"]["messages"].as_array().unwrap().len(), 4);
    server.close().await;
}

#[tokio::test]
async fn what_is_refused_and_who_may_wait() {
    let server = Server::playing(Vec::new()).await;
    let thread = server.thread().await;
    let path = format!("/threads/{thread}/stream");
    let (status, answer) = server.call(Method::GET, &format!("{path}?stream_modes=zz"), Value::Null).await;
    assert_eq!((status.as_u16(), &answer["detail"]), (422, &json!("Invalid stream mode: zz")));
    for bad in ["abc", "1", "1-", "-2", "1-2-3", "99999999999999999999-1"] {
        let answer = server.request(Method::GET, &path).header("last-event-id", bad).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 422, "{bad}");
        assert!(answer.text().await.unwrap().contains("Invalid last-event-id"));
    }
    // A thread that is still to be made.
    let mut lines = join(&server, "0b5a9d6e-6a1c-4a53-9a6c-3a54c1f3a003", "", Some("-")).await;
    assert_eq!(lines.next().await.unwrap().event, ":");
    server.close().await;
}
