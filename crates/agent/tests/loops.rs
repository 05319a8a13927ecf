//! An agent that goes round in circles, seen from the model.

use hart_agent::Features;
use hart_kernel::{Command, HookResult, Middleware, RunContext, State, Update, async_trait};
use hart_testkit::{Dialect, Turn};
use hart_types::{Ai, Body, Message, ToolCall, ToolStatus};
use serde_json::{Map, json};

use crate::bounds_support::Thread;
use crate::support::{DIALECTS, World};

fn look(n: usize, how: &str) -> Turn {
    Turn::new().tool_call(format!("c{n}"), "look", json!({"how": how}))
}

#[tokio::test]
async fn three_times_the_same_is_corrected_and_the_run_finishes() {
    for dialect in DIALECTS {
        let turns = (0..3).map(|n| look(n, "")).chain([Turn::new().text("I see.")]);
        let thread = Thread::new(dialect, turns).await;
        let report = thread.ask("go").await;
        report.outcome.as_ref().unwrap();
        assert_eq!(report.answer().as_deref(), Some("I see."));
        for early in 0..3 {
            assert_eq!(thread.notes(early).concat().matches("[LOOP").count(), 0, "{dialect:?} {early}");
        }
        let told = thread.notes(3).concat();
        assert!(told.contains("[LOOP DETECTED] You are repeating yourself"), "{dialect:?}: {told}");
        assert!(told.contains("`look` 3 times"), "{told}");
        assert_eq!(thread.server.last_request().tool_results().len(), 3, "every call has its result");
        let kept = report.state().messages().iter().any(|message| message.text().contains("LOOP"));
        assert!(!kept, "the correction is no part of the thread");
    }
}

#[tokio::test]
async fn polling_a_file_that_changes_is_left_alone() {
    let poll = json!({"command": "n=$(cat n 2>/dev/null || echo 0); echo $n; echo $((n+1)) > n"});
    let turns = (0..8).map(|n| Turn::new().tool_call(format!("c{n}"), "bash", poll.clone()));
    let world = World::new(Dialect::OpenAi, turns.chain([Turn::new().text("It is 7.")])).await;
    let report = world.ask("Wait for 7.").await;
    assert_eq!(report.answer().as_deref(), Some("It is 7."));
    assert_eq!(world.server.last_request().tool_result("c7").unwrap().content.trim(), "7");
    for request in world.server.requests() {
        assert!(!String::from_utf8_lossy(&request.raw).contains("[LOOP"));
    }
}

#[tokio::test]
async fn the_fifth_time_it_has_to_answer() {
    for dialect in DIALECTS {
        // Even then it calls once more.
        let last = Turn::new().text("I found nothing.").tool_call("c5", "look", json!({"how": ""}));
        let thread = Thread::new(dialect, (0..5).map(|n| look(n, "")).chain([last])).await;
        let report = thread.ask("go").await;
        report.outcome.as_ref().unwrap();
        let answer = report.state().messages().last().unwrap();
        let text = answer.text();
        assert!(text.starts_with("I found nothing."), "{dialect:?}: {text}");
        assert!(
            text.contains("[FORCED STOP] The run was ended: the agent had called `look` 5 times"),
            "{text}"
        );
        assert_eq!(answer.additional_kwargs["stop_reason"], "loop_capped");
        assert!(answer.tool_calls().is_empty());
        assert_eq!(thread.server.requests().len(), 6);
        assert!(thread.notes(5).concat().contains("[FORCED STOP] You have called"));
        let last = thread.server.last_request();
        match dialect {
            Dialect::OpenAi | Dialect::Responses => assert_eq!(last.body["tool_choice"], "none"),
            Dialect::Anthropic => assert_eq!(last.body["tool_choice"]["type"], "none"),
            Dialect::Gemini => {
                assert_eq!(last.body["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
            }
            Dialect::Ollama => assert!(last.tool_names().is_empty()),
        }
    }
}

#[tokio::test]
async fn a_new_question_starts_from_nothing() {
    let round = |at: usize| (0..2).map(move |n| look(10 * at + n, "")).chain([Turn::new().text("done")]);
    let thread = Thread::new(Dialect::OpenAi, round(0).chain(round(1)).chain(round(2))).await;
    for question in ["one", "two", "three"] {
        thread.ask(question).await.outcome.unwrap();
    }
    for request in 0..9 {
        assert!(!thread.notes(request).concat().contains("[LOOP"), "request {request}");
    }
}

#[tokio::test]
async fn a_run_that_goes_on_knows_what_was_done_before() {
    let thread = Thread::new(Dialect::OpenAi, [Turn::new().text("I see.")]).await;
    let mut history = vec![Message::human("go")];
    for n in 0..3 {
        let call = ToolCall::new(format!("c{n}"), "look", Map::new());
        history.push(Message::new(Body::Ai(Ai { tool_calls: vec![call], ..Ai::default() }), ""));
        history.push(Message::tool(&format!("c{n}").into(), "look", ToolStatus::Success, "nothing new"));
    }
    thread.agent.run(Update::none().messages(history), &thread.cx()).await.outcome.unwrap();
    assert!(thread.notes(0).concat().contains("[LOOP DETECTED]"));
}

#[tokio::test]
async fn the_same_output_in_another_file_is_the_same() {
    let poll = json!({"command": "i=0; while [ $i -lt 6000 ]; do echo same; i=$((i+1)); done"});
    let turns = (0..3).map(|n| Turn::new().tool_call(format!("c{n}"), "bash", poll.clone()));
    let world = World::new(Dialect::OpenAi, turns.chain([Turn::new().text("I see.")])).await;
    world.ask("go").await.outcome.unwrap();
    let last = world.server.last_request();
    let (first, second) = (last.tool_result("c0").unwrap().content, last.tool_result("c1").unwrap().content);
    assert!(first.contains("/.tool-results/") && first != second, "{first}");
    assert!(last.texts_of("user").concat().contains("[LOOP DETECTED]"));
}

/// Somebody speaks while the run is at work.
struct Steer;

#[async_trait]
impl Middleware for Steer {
    async fn before_model(&self, _: &RunContext, state: &State) -> HookResult {
        let results = state.messages().iter().filter(|message| message.as_tool_result().is_some()).count();
        let spoken = state.messages().iter().filter(|message| message.text() == "look again").count();
        if results == 2 && spoken == 0 {
            return Ok(Update::none().messages(Message::human("look again")).into());
        }
        Ok(Command::none())
    }
}

#[tokio::test]
async fn words_in_between_start_from_nothing_too() {
    let turns = (0..4).map(|n| look(n, "")).chain([Turn::new().text("done")]);
    let thread =
        Thread::with(Dialect::OpenAi, turns, Features::default(), |builder| builder.with(Steer)).await;
    thread.ask("look").await.outcome.unwrap();
    for request in 0..5 {
        assert!(!thread.notes(request).concat().contains("[LOOP"), "request {request}");
    }
}
