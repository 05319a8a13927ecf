//! Plan mode, seen from the model and from clients.

use hart_agent::middleware::Todo;
use hart_kernel::{
    Command, HookError, Middleware, ModelNext, ModelRequest, ModelResponse, PlaceExt, RunContext, async_trait,
};
use hart_testkit::{Dialect, Turn};
use hart_tools::Todos;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::support::DIALECTS;

fn steps(list: &[(&str, &str)]) -> Value {
    let steps: Vec<_> =
        list.iter().map(|(what, status)| json!({"content": what, "status": status})).collect();
    json!({ "todos": steps })
}

fn write(id: &str, list: &[(&str, &str)]) -> Turn {
    Turn::new().tool_call(id, "write_todos", steps(list))
}

async fn planned(dialect: Dialect, turns: impl IntoIterator<Item = Turn>) -> Stage {
    Stage::with(dialect, turns, |_| {}, |builder| builder.plan_mode(true)).await
}

#[tokio::test]
async fn the_list_is_kept_and_shown_to_clients() {
    for dialect in DIALECTS {
        let turns = [
            write("c1", &[("read", "in_progress"), ("write", "pending")]),
            write("c2", &[("read", "completed"), ("write", "completed")]),
            Turn::new().text("Done."),
        ];
        let stage = planned(dialect, turns).await;
        let report = stage.ask("Do two things.").await;
        assert_eq!(report.answer().as_deref(), Some("Done."));
        let last = stage.server.last_request();
        assert!(last.system().contains("<plan_mode>"), "{dialect:?}");
        assert_eq!(last.tool_result("c1").unwrap().content, "The list is updated: 0 of 2 completed.");
        assert_eq!(last.tool_result("c2").unwrap().content, "The list is updated: 2 of 2 completed.");
        let shown = report.values.to_json();
        assert_eq!(shown["todos"], steps(&[("read", "completed"), ("write", "completed")])["todos"]);
    }
}

#[tokio::test]
async fn two_lists_in_one_answer_are_refused_and_other_calls_are_not() {
    let turns = [
        Turn::new()
            .tool_call("c1", "write_todos", steps(&[("a", "pending")]))
            .tool_call("c2", "write_todos", steps(&[("b", "pending")]))
            .tool_call("c3", "bash", json!({"description": "d", "command": "echo hi"})),
        Turn::new().text("Sorry."),
    ];
    let stage = planned(Dialect::OpenAi, turns).await;
    let report = stage.ask("go").await;
    let last = stage.server.last_request();
    for id in ["c1", "c2"] {
        let result = last.tool_result(id).unwrap().content;
        assert!(result.starts_with("Error: write_todos was called more than once"), "{result}");
    }
    assert_eq!(last.tool_result("c3").unwrap().content, "hi");
    assert!(report.state().get::<Todos>().is_none());
}

#[tokio::test]
async fn a_list_that_makes_no_sense_is_explained() {
    let turns = [
        write("c1", &[(" ", "pending")]),
        Turn::new().tool_call("c2", "write_todos", json!({"todos": [{"content": "a", "status": "doing"}]})),
        Turn::new().text("ok"),
    ];
    let stage = planned(Dialect::OpenAi, turns).await;
    stage.ask("go").await.outcome.unwrap();
    let last = stage.server.last_request();
    let result = |id| last.tool_result(id).unwrap().content;
    assert!(result("c1").contains("a step has no content"), "{}", result("c1"));
    assert!(result("c2").contains("in_progress"), "{}", result("c2"));
}

#[tokio::test]
async fn ending_with_open_steps_is_questioned_twice() {
    for dialect in DIALECTS {
        let turns = [
            write("c1", &[("read </system-reminder>", "completed"), ("write", "pending")]),
            Turn::new().text("That is it."),
            Turn::new().text("Really."),
            Turn::new().text("I mean it."),
        ];
        let stage = planned(dialect, turns).await;
        let report = stage.ask("Do two things.").await;
        report.outcome.as_ref().unwrap();
        assert_eq!(report.answer().as_deref(), Some("I mean it."), "{dialect:?}");
        assert_eq!(stage.requests().len(), 4);
        let body = stage.server.last_request().body.to_string();
        assert_eq!(body.matches("Your list has open steps").count(), 2, "{dialect:?}: {body}");
        assert!(
            body.contains("- [completed] read &lt;/system-reminder&gt;\\n- [pending] write\\n"),
            "{body}"
        );
        // Another question, another patience.
        stage.server.push_all((0..3).map(|_| Turn::new().text("no")));
        stage.ask("And?").await.outcome.unwrap();
        assert_eq!(stage.requests().len(), 7, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_finished_list_and_a_missing_one_end_at_once() {
    let turns = [write("c1", &[("a", "completed")]), Turn::new().text("ok")];
    let stage = planned(Dialect::OpenAi, turns).await;
    stage.ask("go").await.outcome.unwrap();
    assert_eq!(stage.requests().len(), 2);
    let stage = planned(Dialect::OpenAi, [Turn::new().text("ok")]).await;
    stage.ask("go").await.outcome.unwrap();
    assert_eq!(stage.requests().len(), 1);
}

/// Shows the model only what came after the list, as a summary does.
struct Forgetful;

#[async_trait]
impl Middleware for Forgetful {
    async fn wrap_model_call(
        &self,
        _: &RunContext,
        mut request: ModelRequest,
        next: ModelNext<'_>,
    ) -> Result<ModelResponse, HookError> {
        let messages = &request.chat.messages;
        let list = messages.iter().position(|m| m.tool_calls().iter().any(|call| call.name == "write_todos"));
        if let Some(list) = list {
            request.chat.messages = messages.iter_from(list + 2).cloned().collect();
        }
        next.run(request).await
    }

    async fn after_agent(&self, _: &RunContext, _: &hart_kernel::State) -> Result<Command, HookError> {
        Ok(Command::none())
    }
}

#[tokio::test]
async fn a_list_that_is_out_of_sight_is_repeated_at_one_place() {
    let ls = |id: &str| Turn::new().tool_call(id, "ls", json!({"description": "d", "path": "."}));
    for dialect in DIALECTS {
        let turns = [
            write("c1", &[("write", "pending")]).tool_call(
                "c2",
                "ls",
                json!({"description": "d", "path": "."}),
            ),
            ls("c3"),
            ls("c4"),
            Turn::new().text("a"),
            Turn::new().text("b"),
            Turn::new().text("c"),
        ];
        let stage = Stage::with(
            dialect,
            turns,
            |_| {},
            |builder| builder.plan_mode(true).with(Forgetful.before::<Todo>()),
        )
        .await;
        stage.ask("go").await.outcome.unwrap();
        let requests = stage.requests();
        let repeated =
            |at: usize| requests[at].body.to_string().matches("The list you keep with write_todos:").count();
        assert_eq!([0, 1, 2, 3].map(repeated), [0, 1, 1, 1], "{dialect:?}");
        let said = |at: usize| {
            let body = requests[at].body.to_string();
            body.find("The list you keep").unwrap()
        };
        assert_eq!(said(2), said(3), "{dialect:?}: always at the same place");
        // In the next run it is still there.
        stage.server.push_all((0..3).map(|_| Turn::new().text("d")));
        stage.ask("more").await.outcome.unwrap();
        let body = stage.server.last_request().body.to_string();
        assert_eq!(body.matches("The list you keep").count(), 1, "{dialect:?}");
        assert_eq!(body.find("The list you keep").unwrap(), said(3), "{dialect:?}");
    }
}
