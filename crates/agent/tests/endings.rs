//! Answers that do not end well, and tools and models that fail: what the thread is left with.

use hart_agent::Features;
use hart_agent::middleware::{
    ModelError, ModelErrorConfig, ToolError, ToolErrorConfig, ToolRetry, ToolRetryConfig,
};
use hart_kernel::{Ended, RunError};
use hart_testkit::{Dialect, Turn};
use serde_json::{Value, json};

use crate::bounds_support::Thread;
use crate::support::DIALECTS;

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_run_and_the_model_goes_on_in_pieces() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses] {
        let turns = [
            Turn::new()
                .text("Writing.")
                .tool_call_raw_args("c1", "look", "{\"how\": \"cha")
                .stop("max_tokens"),
            Turn::new().tool_call("c2", "look", json!({"how": "changing"})),
            Turn::new().text("Done."),
        ];
        let thread = Thread::new(dialect, turns).await;
        let report = thread.ask("go").await;
        report.outcome.as_ref().unwrap();
        assert_eq!(report.answer().as_deref(), Some("Done."));
        let told = thread.notes(1).concat();
        assert!(told.contains("[CUT OFF]") && told.contains("in the middle of a call of look"), "{told}");
        let last = thread.server.last_request();
        assert!(last.tool_result("c1").is_none(), "{dialect:?}: it is as if it had not been called");
        assert_eq!(last.tool_result("c2").unwrap().content, "it is 1 now");
        let cut = report.state().messages().iter().find(|message| message.as_ai().is_some()).unwrap();
        assert_eq!(cut.additional_kwargs["stop_reason"], "model_length_capped");
        assert_eq!(cut.text(), "Writing.");
    }
}

#[tokio::test]
async fn what_was_whole_is_run_before_the_model_is_told() {
    let turns = [
        Turn::new()
            .tool_call("c1", "look", json!({"how": "changing"}))
            .tool_call_raw_args("c2", "look", "{\"how\": \"cha")
            .stop("length"),
        Turn::new().text("Done."),
    ];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    thread.ask("go").await.outcome.unwrap();
    let last = thread.server.last_request();
    assert_eq!(last.tool_result("c1").unwrap().content, "it is 1 now");
    let roles: Vec<_> = last.messages().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert!(last.texts_of("user")[1].starts_with("[CUT OFF]"));
}

#[tokio::test]
async fn a_model_that_is_always_cut_off_is_let_go() {
    let cut = || Turn::new().tool_call_raw_args("c", "look", "{\"how").stop("length");
    let thread = Thread::new(Dialect::OpenAi, (0..4).map(|_| cut())).await;
    let report = thread.ask("go").await;
    assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Finished);
    assert!(report.answer().unwrap().contains("Raise the model's `max_tokens`"), "{:?}", report.answer());
    assert_eq!(thread.server.requests().len(), 4);
    let last = thread.server.last_request();
    assert!(
        last.messages().iter().all(|message| message["role"] != "assistant"),
        "no empty answer goes back"
    );
}

#[tokio::test]
async fn a_text_that_was_cut_off_says_so() {
    let thread = Thread::new(Dialect::Gemini, [Turn::new().text("Once upon").stop("MAX_TOKENS")]).await;
    let report = thread.ask("go").await;
    let last = report.state().messages().last().unwrap();
    assert_eq!(
        (last.text().as_str(), &last.additional_kwargs["stop_reason"]),
        ("Once upon", &json!("model_length_capped"))
    );
    assert_eq!(thread.server.requests().len(), 1);
}

#[tokio::test]
async fn a_model_that_has_not_finished_goes_on() {
    let turns = [Turn::new().text("Searching.").stop("pause_turn"), Turn::new().text("Found.")];
    let thread = Thread::new(Dialect::Anthropic, turns).await;
    let report = thread.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("Found."));
    assert_eq!(thread.server.last_request().messages().last().unwrap()["role"], "assistant");
}

#[tokio::test]
async fn a_refusal_ends_the_run_with_words_and_without_calls() {
    let cases = [
        (Dialect::OpenAi, "content_filter"),
        (Dialect::Anthropic, "refusal"),
        (Dialect::Gemini, "SAFETY"),
        (Dialect::Responses, "content_filter"),
    ];
    for (dialect, word) in cases {
        let turn = Turn::new().text("Well,").tool_call("c1", "look", json!({})).stop(word);
        let thread = Thread::new(dialect, [turn]).await;
        let report = thread.ask("go").await;
        assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Finished, "{dialect:?}");
        let last = report.state().messages().last().unwrap();
        assert!(
            last.text().starts_with("Well,") && last.text().contains("The model declined to go on"),
            "{last:?}"
        );
        assert!(last.tool_calls().is_empty());
        assert_eq!(last.additional_kwargs["stop_reason"], "safety_capped");
        let events = thread.ears.0.lock().unwrap();
        assert_eq!(events[0]["type"], "safety_termination", "{dialect:?}");
        assert_eq!(events[0]["dropped_tool_calls"], json!(["look"]));
    }
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_once_more() {
    for dialect in DIALECTS {
        let look = || Turn::new().tool_call("c1", "look", json!({}));
        let thread = Thread::new(dialect, [look(), Turn::new(), Turn::new().text("Done.")]).await;
        let report = thread.ask("go").await;
        assert_eq!(report.answer().as_deref(), Some("Done."), "{dialect:?}: {:?}", report.outcome);
        assert!(thread.notes(2).concat().contains("[NO ANSWER]"));
        let blank = report.state().messages().iter().filter(|m| m.as_ai().is_some() && m.text().is_empty());
        assert_eq!(blank.count(), 1, "only the call");

        let thread = Thread::new(dialect, [look(), Turn::new(), Turn::new(), Turn::new().text("Hi.")]).await;
        let report = thread.ask("go").await;
        assert!(report.answer().unwrap().starts_with("The model gave no answer"), "{dialect:?}");
        let last = report.state().messages().last().unwrap();
        assert_eq!(last.additional_kwargs["deerflow_error_fallback"], true);
        assert_eq!(thread.ask("hello?").await.answer().as_deref(), Some("Hi."), "the thread goes on");
    }
}

/// The result of one call of `look`, and its stamp.
async fn result(how: &str, features: Features) -> Result<(String, Value), RunError> {
    let turns = [Turn::new().tool_call("c1", "look", json!({"how": how})), Turn::new().text("Done.")];
    let thread = Thread::with(Dialect::OpenAi, turns, features, |builder| builder).await;
    let report = thread.ask("go").await;
    let state = report.state().clone();
    report.outcome?;
    let message = state.messages().iter().find(|m| m.as_tool_result().is_some()).unwrap();
    let meta = message.additional_kwargs.get("deerflow_tool_meta").cloned().unwrap_or_default();
    Ok((message.text(), meta))
}

#[tokio::test]
async fn failures_of_tools_are_the_models_to_read() {
    let (text, meta) = result("fatal", Features::default()).await.unwrap();
    assert!(text.starts_with("Error: `look` failed: disk on fire\nGo on with what you have"), "{text}");
    assert_eq!((&meta["status"], &meta["source"]), (&json!("error"), &json!("exception")));
    let (text, meta) = result("panic", Features::default()).await.unwrap();
    assert!(text.contains("crashed (as asked)"), "{text}");
    assert_eq!(meta["error_type"], "internal");
    let (text, meta) = result("wrong", Features::default()).await.unwrap();
    assert_eq!(text, "Error: no such file: /a");
    let expected = json!({"status": "error", "error_type": "not_found", "recoverable_by_model": true,
        "recommended_next_action": "rewrite_query", "source": "tool_return"});
    assert_eq!(meta, expected);
    assert_eq!(result("", Features::default()).await.unwrap().1, Value::Null);
    let strict = ToolError::new(ToolErrorConfig { strict: true });
    let features = Features { tool_error: strict.into(), ..Features::default() };
    result("fatal", features).await.unwrap_err();
}

#[tokio::test]
async fn what_may_pass_is_tried_again_where_that_is_asked_for() {
    let (text, meta) = result("flaky", Features::default()).await.unwrap();
    assert!(text.contains("the line is busy"), "{text}");
    assert_eq!(meta["error_type"], "transient");
    let config = ToolRetryConfig { initial_delay: 0.001, ..ToolRetryConfig::default() };
    let retry = |config: ToolRetryConfig| Features {
        tool_retry: ToolRetry::new(config).into(),
        ..Features::default()
    };
    let (text, meta) = result("flaky", retry(config.clone())).await.unwrap();
    assert_eq!((text.as_str(), meta), ("nothing new", Value::Null));
    let other = ToolRetryConfig { tools: vec!["other".into()], ..config };
    assert!(result("flaky", retry(other)).await.unwrap().0.contains("busy"));
}

#[tokio::test]
async fn a_model_that_failed_leaves_a_thread_that_goes_on() {
    for fallback_message in [false, true] {
        let error = ModelError::new(ModelErrorConfig { fallback_message });
        let features = Features { model_error: error.into(), ..Features::default() };
        let turns = [
            Turn::new().text("Half an answer").cut_after(2),
            Turn::status(401).message("bad key"),
            Turn::new().text("Hello."),
        ];
        let thread = Thread::with(Dialect::OpenAi, turns, features, |builder| builder).await;
        let report = thread.ask("go").await;
        assert!(matches!(report.outcome, Err(RunError::Model(_))), "{:?}", report.outcome);
        let last = report.state().messages().last().unwrap();
        assert!(last.text().starts_with("Half an answer"), "{}", last.text());
        assert_eq!(last.additional_kwargs.contains_key("deerflow_error_fallback"), fallback_message);
        assert_eq!(last.text().contains("The model could not answer: `test`"), fallback_message);
        let report = thread.ask("and now?").await;
        report.outcome.unwrap_err();
        let report = thread.ask("hello?").await;
        assert_eq!(report.answer().as_deref(), Some("Hello."));
    }
}
