//! Consecutive requests of a thread begin with the same bytes, so that providers read the rest from their caches.

use hart_kernel::Update;
use hart_testkit::{Dialect, RecordedRequest, Turn};
use hart_types::Message;
use serde_json::{Value, json};

use crate::attachments::PNG;
use crate::stage::Stage;
use crate::support::DIALECTS;

/// What stands before the conversation, and the conversation, as bytes; without Anthropic's marks, which move.
fn prefix(request: &RecordedRequest) -> (String, String) {
    let raw = String::from_utf8(request.raw.to_vec()).unwrap();
    let raw = raw.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let body: Value = serde_json::from_str(&raw).unwrap();
    let list = ["messages", "input", "contents"].into_iter().find(|key| body[*key].is_array()).unwrap();
    let said: Vec<String> = body[list].as_array().unwrap().iter().map(ToString::to_string).collect();
    let said = said.join(",");
    let start = format!("\"{list}\":[");
    let at = raw.find(&start).unwrap() + start.len();
    assert!(raw.get(at..).unwrap().starts_with(&said), "these are the bytes that went out");
    let fixed = ["system", "instructions", "systemInstruction", "tools"].map(|key| body[key].to_string());
    (fixed.concat(), said)
}

fn assert_grows(requests: &[std::sync::Arc<RecordedRequest>], dialect: Dialect) {
    for (at, pair) in requests.windows(2).enumerate() {
        let ((fixed, said), (next_fixed, next_said)) = (prefix(&pair[0]), prefix(&pair[1]));
        assert_eq!(fixed, next_fixed, "{dialect:?}: prompt and tools of request {}", at + 1);
        let same = said.bytes().zip(next_said.bytes()).take_while(|(a, b)| a == b).count();
        let show = |text: &str| {
            text.get(same.saturating_sub(80)..(same + 80).min(text.len())).unwrap_or("").to_owned()
        };
        assert!(
            next_said.starts_with(&said),
            "{dialect:?}: request {} is not continued by the next:\n  {}\n  {}",
            at + 1,
            show(&said),
            show(&next_said)
        );
    }
}

/// A thread in which everything speaks up: files, images, thoughts, broken calls, repeated ids, plans and reminders.
fn turns() -> Vec<Turn> {
    let todos = |status: &str| json!({"todos": [{"content": "look", "status": status}]});
    vec![
        Turn::new()
            .reasoning("Let me see.")
            .signature("sig")
            .text("Looking.")
            .tool_call(
                "c1",
                "view_image",
                json!({"description": "d", "paths": ["/mnt/user-data/uploads/a.png"]}),
            )
            .tool_call("c2", "write_todos", todos("pending")),
        Turn::new().tool_call_raw_args("c3", "bash", "{\"command\": "),
        // The same id again.
        Turn::new().tool_call("c3", "bash", json!({"description": "d", "command": "echo hi"})),
        Turn::new().text("That is all."),
        Turn::new().tool_call("c5", "write_todos", todos("completed")),
        Turn::new().text("Now it is."),
        // The next run.
        Turn::new().tool_call("c6", "ls", json!({"description": "d", "path": "/mnt/user-data/uploads"})),
        Turn::new().text("Nothing new."),
    ]
}

fn with_file(text: &str, name: &str) -> Update {
    let mut message = Message::human(text);
    message.additional_kwargs.insert("files".into(), json!([{"filename": name, "size": 1}]));
    Update::none().messages(message)
}

#[tokio::test]
async fn requests_share_their_start_within_a_run_and_with_the_next() {
    for dialect in DIALECTS {
        let stage = Stage::full(dialect, turns()).await;
        stage.put("uploads/a.png", PNG);
        stage.put("uploads/b.csv", "x,y\n1,2\n");
        let first = stage.run(with_file("What is in it?", "a.png")).await;
        first.outcome.unwrap();
        assert_eq!(stage.requests().len(), 6, "{dialect:?}");
        stage.run(with_file("And in this?", "b.csv")).await.outcome.unwrap();
        assert_eq!(stage.requests().len(), 8, "{dialect:?}");
        let requests = stage.requests();
        assert_grows(&requests, dialect);
        let last = requests[7].body.to_string();
        assert!(last.contains("columns: x, y") && last.contains("open steps"), "{dialect:?}: {last}");
        assert_eq!(last.matches("<current_date>").count(), 1);
    }
}

#[tokio::test]
async fn a_new_day_changes_nothing_that_was_said() {
    for dialect in DIALECTS {
        let stage = Stage::full(dialect, [Turn::new().text("one"), Turn::new().text("two")]).await;
        stage.ask("first").await.outcome.unwrap();
        stage.set_time("2026-12-24T12:00:00Z");
        stage.ask("second").await.outcome.unwrap();
        assert_grows(&stage.requests(), dialect);
        assert!(stage.server.last_request().body.to_string().contains("2026-12-24, Thursday"));
    }
}

#[tokio::test]
async fn so_it_is_for_a_model_that_takes_one_system_message() {
    let one = |entry: &mut hart_models::ModelEntry| {
        entry.supports_vision = Some(true);
        entry.capabilities = serde_json::from_value(json!({"single_system_message": true})).unwrap();
    };
    let stage = Stage::with(Dialect::OpenAi, turns(), one, |builder| builder.plan_mode(true)).await;
    stage.put("uploads/a.png", PNG);
    stage.run(with_file("What is in it?", "a.png")).await.outcome.unwrap();
    stage.set_time("2026-12-24T12:00:00Z");
    stage.ask("And now?").await.outcome.unwrap();
    assert_grows(&stage.requests(), Dialect::OpenAi);
    for request in stage.requests() {
        assert_eq!(request.texts_of("system").len(), 1);
    }
}
