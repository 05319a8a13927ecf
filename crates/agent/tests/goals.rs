//! An agent that ends is judged by the goal of its thread, and sent on within bounds.

use std::sync::Arc;

use hart_agent::middleware::Goals;
use hart_agent::{Features, GoalConfig, SuperAgent, ThreadGoal};
use hart_kernel::{Agent, Limits, RunContext, RunReport};
use hart_testkit::{Dialect, ModelServer, RecordedRequest, Turn};
use hart_types::ThreadId;
use serde_json::{Value, json};

use crate::support::{MemoryLog, model};

async fn agent(answers: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static) -> (ModelServer, Agent) {
    let server = ModelServer::with(answers).await;
    let judged = model(&server, Dialect::OpenAi);
    let goals = Goals::new(GoalConfig::default(), Arc::clone(&judged));
    let features = Features { goals: goals.into(), title: false.into(), ..Features::default() };
    let builder = SuperAgent::builder(judged).features(features).checkpointer(Arc::new(MemoryLog::default()));
    (server, builder.build().unwrap())
}

async fn ask(agent: &Agent, input: Value, limits: &Limits) -> RunReport {
    let cx = RunContext::new(ThreadId::from("t1")).with_budget(hart_kernel::Budget::new(limits));
    let update = agent.input(input.as_object().unwrap().clone()).unwrap();
    agent.run(update, &cx).await
}

fn is_judge(request: &RecordedRequest) -> bool {
    request.system().contains("You judge whether")
}

fn verdict(satisfied: bool, blocker: &str, reason: &str) -> Turn {
    let verdict =
        json!({"satisfied": satisfied, "blocker": blocker, "reason": reason, "evidence_summary": ""});
    Turn::new().text(verdict.to_string()).usage(100, 20)
}

fn goal() -> Value {
    json!({"goal": "three files are written", "messages": [{"role": "user", "content": "go"}]})
}

#[tokio::test]
async fn an_agent_is_sent_on_until_the_goal_is_reached_and_the_goal_is_gone() {
    let answers = |request: &RecordedRequest| {
        let sent_on =
            request.texts_of("user").iter().filter(|text| text.contains("is not reached yet")).count();
        let said = request.texts_of("user").concat();
        match is_judge(request) {
            true if said.contains("part 2 done") => verdict(true, "none", "all there"),
            true => verdict(
                false,
                "goal_not_met_yet",
                if said.contains("part 1") { "one is missing" } else { "two are" },
            ),
            false => Turn::new().text(format!("part {sent_on} done")).usage(50, 5),
        }
    };
    let (server, agent) = agent(answers).await;
    let report = ask(&agent, goal(), &Limits::default()).await;
    assert_eq!(report.answer().as_deref(), Some("part 2 done"));
    assert_eq!(report.state().get::<ThreadGoal>(), Some(&None), "it is reached");
    assert_eq!(server.requests().len(), 6);
    let judged =
        server.requests().iter().find(|request| is_judge(request)).unwrap().texts_of("user").concat();
    assert!(judged.contains("three files are written") && judged.contains("agent: part 0 done"), "{judged}");

    // Without a goal nobody judges.
    let before = server.requests().len();
    ask(&agent, json!({"messages": [{"role": "user", "content": "thanks"}]}), &Limits::default())
        .await
        .outcome
        .unwrap();
    assert_eq!(server.requests().len(), before + 1);
}

#[tokio::test]
async fn nobody_is_sent_on_for_ever() {
    // The same is missing every time.
    let same = |request: &RecordedRequest| match is_judge(request) {
        true => verdict(false, "goal_not_met_yet", "all of it"),
        false => Turn::new().text("I tried."),
    };
    let (server, agent_a) = agent(same).await;
    let report = ask(&agent_a, goal(), &Limits::default()).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(server.requests().iter().filter(|request| !is_judge(request)).count(), 3);
    let goal_left = report.state().get::<ThreadGoal>().cloned().flatten().unwrap();
    assert_eq!((goal_left.continuation_count, goal_left.no_progress_count), (2, 2));

    // Something else is missing every time.
    let other = |request: &RecordedRequest| match is_judge(request) {
        true => verdict(false, "goal_not_met_yet", &request.texts_of("user").concat().len().to_string()),
        false => Turn::new().text("I tried."),
    };
    let (server, agent_b) = agent(other).await;
    let report = ask(&agent_b, goal(), &Limits::default()).await;
    report.outcome.as_ref().unwrap();
    assert_eq!(server.requests().iter().filter(|request| !is_judge(request)).count(), 9, "eight times more");
    let told = report.state().get::<ThreadGoal>().cloned().flatten().unwrap();
    assert_eq!((told.max_continuations, told.max_no_progress_continuations), (Some(8), Some(2)));
    assert!(told.created_at.is_some() && told.updated_at >= told.created_at);

    // A goal may ask for less, not for more.
    for (asked, times) in [(1, 2), (0, 1), (100, 9)] {
        let (server, agent_d) = agent(other).await;
        let goal = json!({"objective": "three files are written", "max_continuations": asked});
        let input = json!({"goal": goal, "messages": [{"role": "user", "content": "go"}]});
        ask(&agent_d, input, &Limits::default()).await.outcome.unwrap();
        let answers = server.requests().iter().filter(|request| !is_judge(request)).count();
        assert_eq!(answers, times, "{asked}");
    }

    // Only the user can say; or nobody understands the judge.
    for verdicts in [("needs_user_input", "which files?"), ("nonsense", "?")] {
        let asks = move |request: &RecordedRequest| match is_judge(request) {
            true => verdict(false, verdicts.0, verdicts.1),
            false => Turn::new().text("Which files?"),
        };
        let (server, agent_c) = agent(asks).await;
        let report = ask(&agent_c, goal(), &Limits::default()).await;
        assert_eq!(report.answer().as_deref(), Some("Which files?"));
        assert_eq!(server.requests().len(), 2);
        assert!(report.state().get::<ThreadGoal>().unwrap().is_some(), "it stays");
    }
}

#[tokio::test]
async fn what_judging_costs_is_the_runs() {
    let answers = |request: &RecordedRequest| match is_judge(request) {
        true => verdict(false, "goal_not_met_yet", "more"),
        false => Turn::new().text("I tried.").usage(50, 5),
    };
    let (server, agent) = agent(answers).await;
    let limits = Limits { model_calls: Some(1), ..Limits::default() };
    let report = ask(&agent, goal(), &limits).await;
    assert_eq!(report.answer().as_deref(), Some("I tried."));
    assert_eq!(server.requests().len(), 1, "there was no call left for a judge");
}

fn said(words: &str) -> Value {
    json!({"messages": [{"role": "user", "content": words}]})
}

#[tokio::test]
async fn a_user_sets_asks_for_and_clears_the_goal_in_words() {
    let answers = |request: &RecordedRequest| match is_judge(request) {
        true => verdict(false, "needs_user_input", "which files?"),
        false => Turn::new().text("Which?"),
    };
    let (server, agent) = agent(answers).await;
    let none = Limits::default();
    let report = ask(&agent, said("/goal three files are written"), &none).await;
    assert_eq!(report.answer().as_deref(), Some("Which?"));
    let goal = report.state().get::<ThreadGoal>().cloned().flatten().unwrap();
    assert_eq!((goal.objective.as_str(), goal.max_continuations), ("three files are written", Some(8)));
    let told = server.requests()[0].texts_of("user").concat();
    assert!(told.contains("Work towards it now:\nthree files are written"), "{told}");

    // These need no model.
    let before = server.requests().len();
    for (words, says) in [
        ("/goal", "three files are written"),
        ("/goal clear", "There is no goal any more."),
        ("/goal", "There is no goal."),
    ] {
        let report = ask(&agent, said(words), &none).await;
        assert!(report.answer().unwrap().contains(says), "{words}: {:?}", report.answer());
    }
    assert_eq!(server.requests().len(), before);
    let report = ask(&agent, said("/goalkeeper?"), &none).await;
    assert_eq!(
        (report.answer().as_deref(), report.state().get::<ThreadGoal>()),
        (Some("Which?"), Some(&None))
    );
}

#[tokio::test]
async fn where_goals_are_off_whoever_sets_one_is_told_and_nobody_is_judged() {
    let server = ModelServer::with(|_| Turn::new().text("Done.")).await;
    let judged = model(&server, Dialect::OpenAi);
    let goals = Goals::new(GoalConfig { enabled: false, ..GoalConfig::default() }, Arc::clone(&judged));
    let features = Features { goals: goals.into(), title: false.into(), ..Features::default() };
    let agent = SuperAgent::builder(judged).features(features).build().unwrap();
    let report = ask(&agent, said("/goal win"), &Limits::default()).await;
    assert!(report.answer().unwrap().contains("`goal: {enabled: true}`"));
    let report = ask(&agent, goal(), &Limits::default()).await;
    assert_eq!(report.answer().as_deref(), Some("Done."));
    assert!(report.state().get::<ThreadGoal>().unwrap().is_some(), "it is kept");
    assert_eq!(server.requests().len(), 1);
}
