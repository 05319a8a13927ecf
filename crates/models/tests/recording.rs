//! Recording a model and playing it back.

use std::sync::Arc;
use std::time::Duration;

use hart_kernel::{ChatRequest, ModelError, ModelErrorKind};
use hart_models::{Cassette, Recorder, Replay, ScriptedModel, ScriptedTurn};
use hart_types::{Block, Message, ToolCallId, ToolStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{ask, fails, human, request, try_ask};

fn result(id: &str, text: &str) -> Message {
    Message::tool(&ToolCallId::from(id), "ls", ToolStatus::Success, text)
}

fn called(id: &str, run: &str) -> Message {
    match ScriptedTurn::call(id, "ls", json!({"path": format!("/tmp/{run}/x"), "a": 1})) {
        ScriptedTurn::Say(message) => message.with_id(run),
        other => panic!("{other:?}"),
    }
}

/// One run of an agent: a question, a call, its result. Ids, times and places are this run's.
fn second_request(call: &str, run: &str, time: &str) -> ChatRequest {
    request([
        Message::human("list it").with_id(run),
        called(call, run),
        result(call, &format!("{time} /tmp/{run}/x: done in 0.{}s ({call})", run.len())),
    ])
}

async fn recorded(path: &std::path::Path) {
    let mut reasoned =
        Message::ai(vec![Block::reasoning("hm"), Block::text("There is one file, and it is x.")]);
    reasoned.response_metadata.insert("finish_reason".into(), "stop".into());
    let script = ScriptedModel::new([
        ScriptedTurn::from(called("call_aaaa", "run-1")),
        reasoned.into(),
        ScriptedTurn::Fail(ModelError::cancelled()),
        ScriptedTurn::text("A title"),
    ]);
    let recorder = Recorder::new(Arc::new(script), path).unwrap();
    ask(&recorder, human("list it")).await;
    ask(&recorder, second_request("call_aaaa", "run-1", "2026-11-15T04:00:00Z")).await;
    assert!(try_ask(&recorder, human("fails")).await.is_err());
    // A second recorder continues the file.
    drop(recorder);
    let recorder =
        Recorder::new(Arc::new(ScriptedModel::new([ScriptedTurn::text("A title")])), path).unwrap();
    let mut title = human("list it");
    title.caller = "title".into();
    ask(&recorder, title).await;
}

#[tokio::test]
async fn what_was_recorded_is_played_back_in_another_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("demo.json");
    recorded(&path).await;
    let cassette = Cassette::load(&path).unwrap();
    assert_eq!(cassette.calls.len(), 3);
    assert_eq!((cassette.calls[1].after, cassette.calls[1].said.len()), (Some(0), 2));
    assert_eq!(Cassette::parse(&cassette.to_json()).unwrap(), cassette);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside the file");

    let replay = Replay::new(cassette).with_pace(Some(Duration::from_micros(1)));
    let mut first = human("list it");
    first.system = Some("a prompt that was rewritten since".into());
    first.tools = [crate::support::tool("new_tool")].into();
    let answer = ask(&replay, first).await;
    assert_eq!(answer.tool_calls()[0].name, "ls");
    let said = try_ask(&replay, second_request("toolu_zzzz", "run-22222", "2027-01-01T00:00:00+01:00"))
        .await
        .unwrap();
    assert_eq!((said.reasoning.as_str(), said.text.as_str()), ("hm", "There is one file, and it is x."));
    assert_eq!(said.message.unwrap().response_metadata["finish_reason"], "stop");
    let mut title = human("list it");
    title.caller = "title".into();
    assert_eq!(ask(&replay, title).await.text(), "A title");
}

#[tokio::test]
async fn a_miss_shows_where_the_conversation_parts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("demo.json");
    recorded(&path).await;
    let replay = Replay::new(Cassette::load(&path).unwrap());

    let other = request([Message::human("list it"), called("c", "r"), result("c", "something else")]);
    let error = fails(&replay, other).await.to_string();
    assert!(
        error.starts_with(
            "`replay` has no recorded answer here\n`lead` parts from recorded call 1 at message 2 (tool)\n"
        ),
        "{error}"
    );
    assert!(
        error.contains("recorded: ")
            && error.contains("\"text\":\"<time> <path>/x: done in <duration> (<call 0>)\""),
        "{error}"
    );
    assert!(error.contains("found:    ") && error.contains("something else"), "{error}");

    let longer = request([Message::human("list it"), Message::ai("no"), Message::human("why")]);
    let error = fails(&replay, longer).await.to_string();
    assert!(error.contains("at message 1 (ai)"), "{error}");

    let mut stranger = human("list it");
    stranger.caller = "researcher".into();
    let error = fails(&replay, stranger).await.to_string();
    assert!(error.contains("`researcher` was never recorded, only: lead, title"), "{error}");
}

#[tokio::test]
async fn equal_conversations_are_answered_in_order_and_the_last_is_repeated() {
    let mut cassette = Cassette::default();
    let asked = hart_models::replay::normalise(&[Arc::new(Message::human("again"))]);
    for text in ["one", "two"] {
        cassette.record("lead", asked.clone(), Message::ai(text));
    }
    let replay = Replay::new(cassette);
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(ask(&replay, human("again")).await.text());
    }
    assert_eq!(heard, ["one", "two", "two", "two"]);
}

#[tokio::test]
async fn a_call_played_twice_in_one_thread_gets_a_fresh_id() {
    let mut cassette = Cassette::default();
    let first = Arc::new(Message::human("go"));
    let conversation = [first, Arc::new(called("call_1", "r")), Arc::new(result("call_1", "x"))];
    cassette.record("lead", hart_models::replay::normalise(&conversation), called("call_1", "r"));
    let replay = Replay::new(cassette);
    let answer = ask(&replay, request(conversation.iter().map(|m| (**m).clone()))).await;
    assert_eq!(answer.tool_calls()[0].id.as_ref().unwrap().as_str(), "call_1-2");
}

#[tokio::test]
async fn playback_can_be_cancelled() {
    let mut cassette = Cassette::default();
    let asked = hart_models::replay::normalise(&[Arc::new(Message::human("hi"))]);
    cassette.record("lead", asked, Message::ai("a text that never comes"));
    let replay = Replay::new(cassette).with_pace(Some(Duration::from_secs(3600)));
    let cancel = CancellationToken::new();
    let stream = hart_kernel::ChatModel::stream(&replay, human("hi"), &cancel).await.unwrap();
    cancel.cancel();
    assert!(crate::support::collect(stream).await.unwrap_err().kind == ModelErrorKind::Cancelled);
}

#[test]
fn a_bad_file_is_refused_with_a_reason() {
    assert!(Cassette::parse("[]").unwrap_err().to_string().contains("not a recording"));
    assert!(Cassette::parse(r#"{"version":9,"calls":[]}"#).unwrap_err().to_string().contains("version 9"));
    let loops =
        r#"{"version":1,"calls":[{"caller":"a","after":0,"said":[],"answer":{"type":"ai","content":""}}]}"#;
    assert!(Cassette::parse(loops).unwrap_err().to_string().contains("comes later"));
}

#[tokio::test]
async fn a_scripted_model_keeps_what_it_was_asked() {
    let model = ScriptedModel::new([ScriptedTurn::text("hello there, this is text")]);
    assert_eq!(ask(&model, human("hi")).await.text(), "hello there, this is text");
    assert_eq!(model.requests()[0].messages.last().unwrap().text(), "hi");
    assert!(fails(&model, human("more")).await.to_string().contains("exhausted"));
    model.push(ScriptedTurn::Hang);
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(hart_kernel::ChatModel::stream(&model, human("hi"), &cancel).await.is_err());
    assert_eq!(model.remaining(), 0);
}
