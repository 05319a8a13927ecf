//! How much is delegated, and how a subagent that does not end is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hart_agent::approval::{InterruptOn, ToolReview};
use hart_agent::middleware::{Budget, HumanInTheLoop};
use hart_agent::{BudgetConfig, Features, OnExcess, Status, Subagent, SubagentsConfig, TokenBudget};
use hart_kernel::{
    Ended, Limits, Resume, RunError, RunReport, ToolContext, ToolError, ToolOutput, Typed, TypedTool, Update,
    async_trait,
};
use hart_testkit::{RecordedRequest, Turn};
use hart_types::Message;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::delegation::{Office, first_words, is_lead, ledger, task, tasks};

fn result(office: &Office, id: &str) -> String {
    office.server.last_request().tool_result(id).unwrap().content
}

async fn ask_within(office: &Office, limits: &Limits) -> RunReport {
    let cx = office.cx().with_budget(hart_kernel::Budget::new(limits));
    office.agent.run(Update::none().messages(Message::human("go")), &cx).await
}

/// Five at once, then two more.
fn many(request: &RecordedRequest) -> Turn {
    match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks((0..5).map(|n| task(&format!("a{n}"), &format!("do {n}")))),
        (true, 5) => tasks((0..2).map(|n| task(&format!("b{n}"), &format!("do more {n}")))),
        (true, _) => Turn::new().text("Done."),
        (false, _) => Turn::new().text("Report."),
    }
}

#[tokio::test]
async fn those_of_an_answer_beyond_the_limit_wait_and_those_of_a_run_are_refused() {
    let office = Office::new(many, Features::default(), |builder| builder).await;
    let report = office.ask("go").await;
    report.outcome.as_ref().unwrap();
    assert_eq!(ledger(&report).len(), 6, "five and one");
    assert!(result(&office, "a4").starts_with("Task Succeeded"), "it waited for its turn");
    assert!(result(&office, "b0").starts_with("Task Succeeded"));
    assert!(result(&office, "b1").contains("nobody was sent: 6 delegations are the limit of a run"));
    assert_eq!(office.told("task_started").len(), 6);
}

#[tokio::test]
async fn the_limit_of_a_run_holds_whatever_the_ledger_keeps_and_the_calls_are_called() {
    // More than the ledger remembers.
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, n) if n < 80 => tasks((0..10).map(|k| task(&format!("c{}", n + k), "do"))),
        (true, _) => Turn::new().text("Done."),
        (false, _) => Turn::new().text("Report."),
    };
    let config = SubagentsConfig { max_total_per_run: 60, max_concurrent: 10, ..SubagentsConfig::default() };
    let features =
        || Features { call_limits: false.into(), loop_detection: false.into(), ..Features::default() };
    let office = Office::new(answers, features(), |builder| builder.delegation(config)).await;
    office.ask("go").await.outcome.unwrap();
    assert_eq!(office.told("task_completed").len(), 60);
    assert!(result(&office, "c79").contains("60 delegations are the limit of a run"));

    // The same id in every answer, as some models have it; and twice in one.
    let answers = |request: &RecordedRequest| match is_lead(request) {
        true if request.messages().iter().filter(|message| message["role"] == "assistant").count() < 8 => {
            tasks([task("call_0", "do"), task("call_0", "do")])
        }
        true => Turn::new().text("Done."),
        false => Turn::new().text("Report."),
    };
    let config = SubagentsConfig { max_total_per_run: 3, ..SubagentsConfig::default() };
    let office = Office::new(answers, features(), |builder| builder.delegation(config)).await;
    let report = office.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("Done."));
    assert_eq!(office.told("task_completed").len(), 3);
}

#[tokio::test]
async fn no_more_work_at_a_time_than_may() {
    let gate = Arc::new(Semaphore::new(0));
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks((0..5).map(|n| task(&format!("a{n}"), &format!("do {n}")))),
        (true, _) => Turn::new().text("Done."),
        (false, 0) => Turn::new().tool_call("w", "wait", json!({})),
        (false, _) => Turn::new().text("Report."),
    };
    let waiting = Arc::new(AtomicUsize::new(0));
    let wait = Typed::shared(Wait { gate: Arc::clone(&gate), waiting: Arc::clone(&waiting) });
    let office = Office::new(answers, Features::default(), |builder| builder.tool(wait)).await;
    let (report, ()) = tokio::join!(office.ask("go"), async {
        // All that will come have come: the lead and three, each with its tool.
        while waiting.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(office.told("task_started").len(), 3);
        gate.add_permits(5);
    });
    report.outcome.as_ref().unwrap();
    assert_eq!(office.told("task_completed").len(), 5);
}

/// Waits until it is let through.
struct Wait {
    gate: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[async_trait]
impl TypedTool for Wait {
    const NAME: &'static str = "wait";
    const DESCRIPTION: &'static str = "Waits.";
    type Args = Nothing;

    async fn run(&self, _: &ToolContext<'_>, _: Nothing) -> Result<ToolOutput, ToolError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        Ok("through".into())
    }
}

#[tokio::test]
async fn those_of_an_answer_beyond_the_limit_are_refused_where_that_is_configured() {
    let config = SubagentsConfig { on_excess: OnExcess::Refuse, ..SubagentsConfig::default() };
    let office = Office::new(many, Features::default(), |builder| builder.delegation(config)).await;
    office.ask("go").await.outcome.unwrap();
    assert!(result(&office, "a2").starts_with("Task Succeeded"));
    assert!(
        result(&office, "a3").contains("3 delegations are the limit of an answer"),
        "{}",
        result(&office, "a3")
    );
}

/// A subagent that always finds one more thing to look at.
fn runaway(request: &RecordedRequest) -> Turn {
    match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "What is two and two?")]).usage(500, 50),
        (true, _) => Turn::new().text("Four, it seems.").usage(700, 20),
        (false, _) if request.body["tool_choice"] == "none" => {
            Turn::new().text("Four, I think.").usage(4000, 30)
        }
        (false, n) => {
            let args = json!({"path": format!("/mnt/user-data/workspace/{n}")});
            Turn::new().text("Let me see.").tool_call(format!("l{n}"), "ls", args).usage(4000, 100)
        }
    }
}

#[tokio::test]
async fn a_subagent_that_does_not_end_ends_at_its_turns() {
    let office = Office::new(runaway, Features::default(), |builder| {
        builder.delegation(SubagentsConfig { max_turns: Some(4), ..SubagentsConfig::default() })
    })
    .await;
    let report = office.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("Four, it seems."));
    let children = office.server.requests().iter().filter(|request| !is_lead(request)).count();
    assert_eq!(children, 4);
    let text = result(&office, "a");
    assert!(text.contains("Four, I think.") && text.contains("ended early: turn_capped"), "{text}");
}

#[tokio::test]
async fn a_runaway_subagent_ends_within_its_share_of_the_budget() {
    let office = Office::new(runaway, Features::default(), |builder| builder).await;
    let limits = Limits { tokens: Some(100_000), ..Limits::default() };
    let report = ask_within(&office, &limits).await;
    assert_eq!(report.answer().as_deref(), Some("Four, it seems."), "{:?}", report.outcome);
    let children = office.server.requests().iter().filter(|request| !is_lead(request)).count() as u64;
    assert!(children * 4100 <= 100_000 * 9 / 10, "{children} calls");
    let text = result(&office, "a");
    assert!(text.contains("it was ended early: token_capped"), "{text}");
    assert_eq!(ledger(&report), [("a".to_owned(), Status::Completed)]);

    let own = TokenBudget { enabled: true, max_tokens: 20_000 };
    let config = SubagentsConfig { token_budget: own, ..SubagentsConfig::default() };
    let office = Office::new(runaway, Features::default(), |builder| builder.delegation(config)).await;
    office.ask("go").await.outcome.unwrap();
    let children = office.server.requests().iter().filter(|request| !is_lead(request)).count() as u64;
    assert!(children * 4100 <= 20_000, "{children} calls");
}

#[tokio::test]
async fn those_of_one_answer_have_equal_shares_of_the_budget() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "first"), task("b", "second")]).usage(500, 50),
        _ => runaway(request),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    let limits = Limits { tokens: Some(100_000), ..Limits::default() };
    ask_within(&office, &limits).await.outcome.unwrap();
    for name in ["first", "second"] {
        let requests = office.server.requests();
        let of_it = requests.iter().filter(|request| !is_lead(request) && first_words(request) == name);
        let used = of_it.count() as u64 * 4100;
        assert!((20_000..=45_000).contains(&used), "{name}: {used}");
    }
}

/// Three that never find an end, whose conversations grow with every look: a trivial task that costs millions of tokens.
fn three_runaways(request: &RecordedRequest) -> Turn {
    match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks((0..3).map(|n| task(&format!("a{n}"), "What is two and two?"))).usage(3000, 50),
        (true, 3) => tasks([task("b", "And once more?")]).usage(4000, 50),
        (true, _) => Turn::new().text("Four, it seems.").usage(4000, 20),
        (false, _) if request.body["tool_choice"] == "none" => {
            Turn::new().text("Four, I think.").usage(read_by(request), 30)
        }
        (false, n) => {
            let args = json!({"path": format!("/mnt/user-data/workspace/{n}")});
            let look = Turn::new().text(format!("Looking at {n}.")).tool_call(format!("l{n}"), "ls", args);
            look.usage(read_by(request), 100)
        }
    }
}

/// What a subagent's provider counts: more with each look.
fn read_by(request: &RecordedRequest) -> u64 {
    4000 + 400 * request.tool_results().len() as u64
}

fn used_by_subagents(office: &Office) -> u64 {
    office.server.requests().iter().filter(|request| !is_lead(request)).map(|one| read_by(one) + 100).sum()
}

#[tokio::test]
async fn subagents_that_run_away_end_within_what_they_have_together_and_nobody_configured_it() {
    let office = Office::new(three_runaways, Features::default(), |builder| builder).await;
    let report = office.ask("What is two and two?").await;
    assert_eq!(report.answer().as_deref(), Some("Four, it seems."), "{:?}", report.outcome);
    let used = used_by_subagents(&office);
    assert!((500_000..=1_000_000).contains(&used), "{used} tokens");
    for id in ["a0", "a1", "a2"] {
        let text = result(&office, id);
        assert!(text.contains("Four, I think.") && text.contains("ended early: token_capped"), "{text}");
    }
}

#[tokio::test]
async fn what_subagents_have_together_is_configured_or_switched_off() {
    let with = |max_tokens_per_run| SubagentsConfig {
        max_tokens_per_run,
        max_turns: Some(20),
        ..SubagentsConfig::default()
    };
    let office =
        Office::new(three_runaways, Features::default(), |builder| builder.delegation(with(90_000))).await;
    office.ask("go").await.outcome.unwrap();
    assert!(used_by_subagents(&office) <= 90_000, "{}", used_by_subagents(&office));

    let office =
        Office::new(three_runaways, Features::default(), |builder| builder.delegation(with(0))).await;
    let report = office.ask("go").await;
    assert_eq!(ledger(&report).len(), 4, "nothing but their turns ends them");
    assert!(result(&office, "b").contains("turn_capped"), "{}", result(&office, "b"));
}

#[tokio::test]
async fn what_subagents_have_together_is_the_same_after_a_question() {
    // One asks before it looks; another has used most of its part meanwhile.
    let answers = |request: &RecordedRequest| match (is_lead(request), first_words(request).as_str()) {
        (true, _) if request.tool_results().is_empty() => {
            tasks([task("ask", "ask"), task("look", "look")]).usage(3000, 50)
        }
        (true, _) if request.tool_results().len() == 2 => tasks([task("more", "look")]).usage(3000, 50),
        (true, _) => Turn::new().text("Done.").usage(3000, 50),
        (false, "ask") if request.tool_results().is_empty() => {
            let args = json!({"path": "/mnt/user-data/workspace/a", "content": "a"});
            Turn::new().tool_call("w", "write_file", args).usage(15_000, 100)
        }
        (false, "ask") => Turn::new().text("Written.").usage(16_000, 100),
        (false, _) => Turn::new().text("Looked.").usage(18_000, 100),
    };
    let review = HumanInTheLoop::new(InterruptOn::default().tool("write_file", ToolReview::new()));
    let features = Features { human_in_the_loop: Some(review), ..Features::default() };
    let config = SubagentsConfig { max_tokens_per_run: 50_000, ..SubagentsConfig::default() };
    let office = Office::new(answers, features, |builder| builder.delegation(config)).await;
    let report = office.ask("go").await;
    assert_eq!(*report.outcome.as_ref().unwrap(), Ended::Paused);
    let approved = Resume::from_json(json!({"decisions": [{"type": "approve"}]}));
    let report = office.agent.run(approved, &office.cx()).await;
    assert_eq!(report.answer().as_deref(), Some("Done."), "{:?}", report.outcome);
    let asked = result(&office, "ask");
    assert!(asked.starts_with("Task Succeeded. Result: Written."), "{asked}");
    assert!(
        asked.contains("[BUDGET] Nobody can be sent after it: the subagents of a run may use 50000"),
        "{asked}"
    );
    let more = result(&office, "more");
    assert!(more.contains("nobody was sent: the subagents of a run may use 50000 tokens together"), "{more}");
}

#[tokio::test]
async fn a_subagent_that_goes_on_after_a_question_has_its_share_of_what_is_left() {
    // It has used more than half of what the run may use when it asks, and a fifth behind it.
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "write")]).usage(500, 50),
        (true, _) => Turn::new().text("Done.").usage(700, 20),
        (false, 0) => {
            let args = json!({"path": "/mnt/user-data/workspace/a", "content": "a"});
            Turn::new().tool_call("w", "write_file", args).usage(35_000, 100)
        }
        (false, 1) => {
            let args = json!({"path": "/mnt/user-data/workspace/a"});
            Turn::new().tool_call("r", "read_file", args).usage(6000, 100)
        }
        (false, _) => Turn::new().text("Written and read.").usage(6000, 100),
    };
    let review = HumanInTheLoop::new(InterruptOn::default().tool("write_file", ToolReview::new()));
    let config = BudgetConfig { enabled: true, max_tokens: Some(60_000), ..BudgetConfig::default() };
    let features = Features {
        human_in_the_loop: Some(review),
        budget: Budget::new(config).into(),
        ..Features::default()
    };
    let office = Office::new(answers, features, |builder| builder).await;
    assert_eq!(*office.ask("go").await.outcome.as_ref().unwrap(), Ended::Paused);
    let approved = Resume::from_json(json!({"decisions": [{"type": "approve"}]}));
    let report = office.agent.run(approved, &office.cx()).await;
    assert_eq!(report.answer().as_deref(), Some("Done."), "{:?}", report.outcome);
    assert_eq!(result(&office, "a"), "Task Succeeded. Result: Written and read.");
}

#[tokio::test]
async fn a_subagent_that_repeats_itself_is_ended_as_its_lead_would_be() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => tasks([task("a", "look")]),
        (true, _) => Turn::new().text("Enough."),
        (false, _) if request.body["tool_choice"] == "none" => Turn::new().text("It stays the same."),
        (false, n) => Turn::new().tool_call(format!("l{n}"), "ls", json!({"path": "/mnt/user-data"})),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    office.ask("go").await.outcome.unwrap();
    let text = result(&office, "a");
    assert!(text.contains("It stays the same.") && text.contains("loop_capped"), "{text}");
}

#[tokio::test]
async fn a_silent_subagent_is_ended_and_the_rest_goes_on() {
    let answers = |request: &RecordedRequest| match (is_lead(request), first_words(request).as_str()) {
        (true, _) if request.tool_results().is_empty() => tasks([task("a", "hang"), task("b", "work")]),
        (true, _) => Turn::new().text("One of two."),
        (false, "hang") => Turn::hang(),
        (false, _) => Turn::new().text("Worked."),
    };
    // Long enough for the other one's first word, however busy the machine is.
    let config = SubagentsConfig { progress_timeout_seconds: 4.0, ..SubagentsConfig::default() };
    let office = Office::new(answers, Features::default(), |builder| builder.delegation(config)).await;
    let report = office.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("One of two."));
    assert_eq!(result(&office, "a"), "Task timed out. Error: it made no progress for 4 seconds");
    assert_eq!(result(&office, "b"), "Task Succeeded. Result: Worked.");
    assert_eq!(office.told("task_timed_out").len(), 1);
}

#[tokio::test]
async fn cancelling_the_run_cancels_its_subagents() {
    let answers = |request: &RecordedRequest| match is_lead(request) {
        true => tasks([task("a", "hang"), task("b", "hang too")]),
        false => Turn::hang(),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    let cx = office.cx();
    let cancel = cx.cancel.clone();
    let asked = Update::none().messages(Message::human("go"));
    let (report, ()) = tokio::join!(office.agent.run(asked, &cx), async {
        office.server.wait_for_requests(3).await;
        cancel.cancel();
    });
    assert!(matches!(report.outcome, Err(RunError::Cancelled)), "{:?}", report.outcome);
    assert_eq!(office.told("task_cancelled").len(), 2);
    let answered =
        report.state().messages().iter().filter(|message| message.as_tool_result().is_some()).count();
    assert_eq!(answered, 2, "every call has its result");
}

#[tokio::test]
async fn a_subagent_without_a_word_or_a_model_has_failed() {
    let answers = |request: &RecordedRequest| match (is_lead(request), first_words(request).as_str()) {
        (true, _) if request.tool_results().is_empty() => tasks([task("a", "fail"), task("b", "work")]),
        (true, _) => Turn::new().text("One of two."),
        (false, "fail") => Turn::status(401).message("bad key"),
        (false, _) => Turn::new().text("Worked."),
    };
    let office = Office::new(answers, Features::default(), |builder| builder).await;
    let report = office.ask("go").await;
    assert_eq!(report.answer().as_deref(), Some("One of two."));
    assert!(result(&office, "a").starts_with("Task failed. Error: "), "{}", result(&office, "a"));
    assert_eq!(office.told("task_failed").len(), 1);
}

#[tokio::test]
async fn a_report_that_does_not_fit_its_schema_is_a_failure() {
    let answers = |request: &RecordedRequest| match (is_lead(request), request.tool_results().len()) {
        (true, 0) => {
            let args = json!({"description": "d", "prompt": "count", "subagent_type": "counter"});
            Turn::new().tool_call("a", "task", args)
        }
        (true, _) => Turn::new().text("Done."),
        (false, _) => Turn::new().text(r#"{"count": "three"}"#),
    };
    let schema =
        json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]});
    let counter = Subagent::builder("counter", "Counts.").result_schema(schema).build().unwrap();
    let office = Office::new(answers, Features::default(), |builder| builder.subagent(counter)).await;
    let report = office.ask("go").await;
    assert_eq!(ledger(&report), [("a".to_owned(), Status::Failed)]);
    assert!(
        result(&office, "a").contains("`report.count` is string, not integer"),
        "{}",
        result(&office, "a")
    );
}
