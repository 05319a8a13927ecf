//! Limits of a run: where it pauses, how it goes on, how it ends.

use hart_agent::middleware::{Budget, CallLimits, RunUsage};
use hart_agent::{BudgetConfig, CallLimit, CallLimitsConfig, ExitBehavior, Features, OnLimit};
use hart_kernel::{Ended, Limits, RunError, RunReport};
use hart_testkit::{Dialect, Turn};
use serde_json::{Value, json};

use crate::bounds_support::Thread;

fn tokens(tokens: u64) -> Limits {
    Limits { tokens: Some(tokens), ..Limits::default() }
}

fn look(id: &str, how: &str) -> Turn {
    Turn::new().tool_call(id, "look", json!({"how": how}))
}

fn question(report: &RunReport) -> &Value {
    assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Paused);
    &report.values.interrupts()[0].value
}

fn stop_reason(report: &RunReport) -> Value {
    let last = report.state().messages().last().unwrap();
    last.additional_kwargs.get("stop_reason").cloned().unwrap_or_default()
}

fn ending() -> Features {
    let budget = Budget::new(BudgetConfig { on_limit: OnLimit::End, ..BudgetConfig::default() });
    Features { budget: budget.into(), ..Features::default() }
}

#[tokio::test]
async fn a_thousand_tokens_pause_are_extended_and_go_on() {
    let thread = Thread::new(Dialect::OpenAi, [Turn::new().text("Hi.").usage(900, 20)]).await;
    let limits = tokens(1000);
    let report = thread.ask_within("go", &limits).await;
    let message = question(&report)["message"].as_str().unwrap();
    assert!(message.contains("0 of 1000 tokens are used and the next call may take "), "{message}");
    let report = thread.answer_within(json!({"extend": {"tokens": 1000}}), &limits).await;
    assert_eq!(report.answer().as_deref(), Some("Hi."));
}

#[tokio::test]
async fn a_run_pauses_where_the_next_call_does_not_fit() {
    for dialect in crate::support::DIALECTS {
        let turns = [
            look("c1", "changing").usage(1300, 200),
            look("c2", "changing").usage(1400, 100),
            Turn::new().text("Done.").usage(1500, 20),
        ];
        let thread = Thread::new(dialect, turns).await;
        let limits = tokens(2000);
        let report = thread.ask_within("go", &limits).await;
        let asked = question(&report);
        assert_eq!((&asked["type"], &asked["resource"]), (&json!("budget"), &json!("tokens")), "{asked}");
        assert_eq!((&asked["used"]["tokens"], &asked["limits"]["tokens"]), (&json!(1500), &json!(2000)));
        assert_eq!(asked["answers"], json!([{"extend": {"tokens": 2000}}, "stop"]));
        assert_eq!(thread.server.requests().len(), 1, "no call was made that does not fit");

        // What cannot be read is asked again.
        let report = thread.answer_within(json!({"extend": {"tokns": 1}}), &limits).await;
        assert!(question(&report)["problem"].as_str().unwrap().contains("tokns"), "{dialect:?}");
        assert_eq!(question(&report)["used"]["tokens"], 1500);
        // Too little is asked for again, with what is there now.
        let report = thread.answer_within(json!({"extend": {"tokens": 1}}), &limits).await;
        assert_eq!(question(&report)["limits"]["tokens"], 2001);

        let report = thread.answer_within(json!({"extend": {"tokens": 5000}}), &limits).await;
        assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Finished);
        assert_eq!(report.answer().as_deref(), Some("Done."));
        assert_eq!(thread.server.last_request().tool_results().len(), 2);
        assert_eq!(stop_reason(&report), Value::Null);
    }
}

#[tokio::test]
async fn a_run_that_may_not_go_on_ends_with_an_answer_and_the_next_message_starts_anew() {
    let turns = [look("c1", "").usage(1900, 50), Turn::new().text("Hello.").usage(100, 5)];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    let limits = tokens(2000);
    question(&thread.ask_within("go", &limits).await);
    let report = thread.answer_within(json!("stop"), &limits).await;
    assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Finished);
    let text = report.answer().unwrap();
    assert!(text.starts_with("[BUDGET] The run was ended at its budget: 1950 of 2000 tokens"), "{text}");
    assert_eq!(stop_reason(&report), "token_capped");
    let report = thread.ask_within("hello?", &tokens(3000)).await;
    assert_eq!(report.answer().as_deref(), Some("Hello."));
}

#[tokio::test]
async fn where_nobody_is_asked_the_last_call_is_for_an_answer() {
    let turns = [
        look("c1", "changing").usage(1000, 400),
        look("c2", "changing").usage(1500, 500),
        Turn::new().text("So far: 2.").usage(2000, 30),
    ];
    let thread = Thread::with(Dialect::OpenAi, turns, ending(), |builder| builder).await;
    let report = thread.ask_within("go", &tokens(6000)).await;
    assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Finished);
    assert!(report.answer().unwrap().starts_with("So far: 2."), "{:?}", report.answer());
    assert_eq!(stop_reason(&report), "token_capped");
    let last = thread.server.last_request();
    assert_eq!(last.body["tool_choice"], "none");
    assert!(last.texts_of("user").concat().contains("[BUDGET] This is the last call"));
}

#[tokio::test]
async fn an_answer_is_asked_for_no_longer_than_what_is_left() {
    let thread = Thread::new(Dialect::Anthropic, [Turn::new().text("Hi.").usage(100, 5)]).await;
    thread.ask_within("hi", &tokens(3000)).await.outcome.unwrap();
    let most = thread.server.last_request().body["max_tokens"].as_u64().unwrap();
    assert!((256..3000).contains(&most), "{most}");
}

#[tokio::test]
async fn the_providers_count_goes_before_the_estimate() {
    // By its length the second request would fit; by what the first one took it does not.
    let turns = [look("c1", "changing").usage(2500, 100), Turn::new().text("Done.")];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    let report = thread.ask_within("go", &tokens(5000)).await;
    assert_eq!(question(&report)["used"]["tokens"], 2600);
}

#[tokio::test]
async fn at_four_fifths_the_model_is_told_once() {
    let turns = [
        look("c1", "changing").usage(1000, 200),
        look("c2", "changing").usage(2000, 13_000),
        look("c3", "changing").usage(100, 5),
        Turn::new().text("Done.").usage(100, 5),
    ];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    thread.ask_within("go", &tokens(20_000)).await.outcome.unwrap();
    let told = |request: usize| thread.notes(request).concat().matches("[BUDGET] Most of what").count();
    assert_eq!((0..4).map(told).collect::<Vec<_>>(), [0, 0, 1, 0]);
    assert!(thread.notes(2).concat().contains("16200 of 20000 tokens"));
}

#[tokio::test]
async fn calls_are_limited_too() {
    let turns = [
        Turn::new().tool_call("a", "look", json!({})).tool_call("b", "look", json!({})).tool_call(
            "c",
            "look",
            json!({}),
        ),
        Turn::new().text("Enough."),
    ];
    let limits = Limits { tool_calls: Some(2), ..Limits::default() };
    let thread = Thread::new(Dialect::OpenAi, turns.clone()).await;
    let report = thread.ask_within("go", &limits).await;
    assert_eq!(question(&report)["resource"], "tool_calls");
    let report = thread.answer_within(json!({"extend": {"tool_calls": 5}}), &limits).await;
    assert_eq!(report.answer().as_deref(), Some("Enough."));
    let refused = thread.server.last_request().tool_result("c").unwrap().content;
    assert!(refused.contains("nothing was run: 2 of 2 tool calls are used"), "{refused}");

    let thread = Thread::with(Dialect::OpenAi, turns.clone(), ending(), |builder| builder).await;
    let report = thread.ask_within("go", &limits).await;
    assert!(report.answer().unwrap().starts_with("Enough."));
    assert_eq!(thread.server.last_request().body["tool_choice"], "none");

    let calls = Limits { model_calls: Some(1), ..Limits::default() };
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    assert_eq!(question(&thread.ask_within("go", &calls).await)["resource"], "model_calls");
}

#[tokio::test]
async fn what_hangs_is_ended_when_the_time_is_over_and_the_thread_goes_on() {
    let limits = Limits { seconds: Some(0.3), ..Limits::default() };
    for first in [Turn::hang(), Turn::hang_before_headers(), look("c1", "hang")] {
        let thread = Thread::new(Dialect::OpenAi, [first, Turn::new().text("Hello.")]).await;
        let report = thread.ask_within("go", &limits).await;
        let error = report.outcome.unwrap_err();
        assert!(matches!(error, RunError::OutOfTime { .. }), "{error:?}");
        assert!(error.to_string().contains("the time limit of 300ms is over"), "{error}");
        let report = thread.ask("still there?").await;
        assert_eq!(report.answer().as_deref(), Some("Hello."));
    }
}

#[tokio::test]
async fn what_was_used_before_another_question_still_counts() {
    let turns = [look("c1", "ask").usage(1300, 200), Turn::new().text("Done.").usage(1400, 20)];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    let limits = tokens(2000);
    let report = thread.ask_within("go", &limits).await;
    assert_eq!(*question(&report), json!("?"));
    let report = thread.answer_within(json!("yes"), &limits).await;
    assert_eq!(question(&report)["used"]["tokens"], 1500);
    let report = thread.answer_within(json!({"extend": {"tokens": 2000}}), &limits).await;
    assert_eq!(report.answer().as_deref(), Some("Done."));
}

#[tokio::test]
async fn usage_adds_up_by_run_and_model() {
    let turns = [
        look("c1", "").usage(1000, 50).cached(400).reasoning_tokens(30),
        Turn::new().text("a").usage(1100, 10),
        Turn::new().text("b").usage(7, 3),
    ];
    let thread = Thread::new(Dialect::OpenAi, turns).await;
    let report = thread.ask("go").await;
    let usage = report.state().get::<RunUsage>().unwrap().clone();
    assert_eq!((usage.total.model_calls, usage.total.input_tokens, usage.total.output_tokens), (2, 2100, 60));
    assert_eq!((usage.total.cached_tokens, usage.total.reasoning_tokens), (400, 30));
    assert_eq!(usage.by_model["test"], usage.total);
    assert_eq!(report.values.to_json()["token_usage"]["input_tokens"], 2100);
    let again = thread.ask("go").await;
    let usage = again.state().get::<RunUsage>().unwrap();
    assert_eq!((usage.total.model_calls, usage.total.total_tokens), (1, 10), "another run");
}

fn limited(config: CallLimitsConfig) -> Features {
    Features { call_limits: CallLimits::new(config).into(), ..Features::default() }
}

#[tokio::test]
async fn model_calls_are_limited_per_run_and_thread() {
    let model = |run, thread, exit_behavior| CallLimitsConfig {
        model: Some(CallLimit { run_limit: run, thread_limit: thread, exit_behavior }),
        ..CallLimitsConfig::default()
    };
    let turns = || [look("c1", ""), Turn::new().text("a"), Turn::new().text("b")];
    let end = limited(model(Some(1), None, ExitBehavior::End));
    let thread = Thread::with(Dialect::OpenAi, turns(), end, |builder| builder).await;
    let report = thread.ask("go").await;
    assert!(report.answer().unwrap().starts_with("Model call limit reached: 1 calls are the limit of a run"));
    assert_eq!(stop_reason(&report), "call_limit_capped");
    let error = limited(model(None, Some(2), ExitBehavior::Error));
    let thread = Thread::with(Dialect::OpenAi, turns(), error, |builder| builder).await;
    assert_eq!(thread.ask("go").await.answer().as_deref(), Some("a"));
    let refused = thread.ask("again").await.outcome.unwrap_err();
    let source = std::error::Error::source(&refused).unwrap().to_string();
    assert!(source.contains("2 calls are the limit of this thread"), "{source}");
}

#[tokio::test]
async fn tool_calls_are_limited_by_name() {
    let tools = |exit_behavior| {
        let limit = CallLimit { run_limit: Some(1), thread_limit: Some(2), exit_behavior };
        limited(CallLimitsConfig { tools: [("look".into(), limit)].into(), ..CallLimitsConfig::default() })
    };
    let turns = |n: usize| {
        let ids = (0..n).map(|n| look(&format!("c{n}"), "changing"));
        ids.chain([Turn::new().text("a")]).collect::<Vec<_>>()
    };
    let thread =
        Thread::with(Dialect::OpenAi, turns(2), tools(ExitBehavior::Continue), |builder| builder).await;
    assert_eq!(thread.ask("go").await.answer().as_deref(), Some("a"));
    let last = thread.server.last_request();
    assert_eq!(last.tool_result("c0").unwrap().content, "it is 1 now");
    assert!(last.tool_result("c1").unwrap().content.contains("1 calls are the limit of a run"));
    thread.server.push_all(turns(1));
    thread.ask("again").await.outcome.unwrap();
    thread.server.push_all([look("c9", "changing"), Turn::new().text("b")]);
    thread.ask("and again").await.outcome.unwrap();
    let result = thread.server.last_request().tool_result("c9").unwrap().content;
    assert!(result.contains("2 calls are the limit of this thread"), "{result}");

    let thread = Thread::with(Dialect::OpenAi, turns(2), tools(ExitBehavior::End), |builder| builder).await;
    let report = thread.ask("go").await;
    assert!(report.answer().unwrap().starts_with("a\n\n[CALL LIMIT]"), "{:?}", report.answer());
    assert_eq!(thread.server.last_request().body["tool_choice"], "none");
    let thread = Thread::with(Dialect::OpenAi, turns(2), tools(ExitBehavior::Error), |builder| builder).await;
    thread.ask("go").await.outcome.unwrap_err();
}
